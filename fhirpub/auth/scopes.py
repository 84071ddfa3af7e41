"""Scopes of SMART on FHIR: what a client may do to which resource type (D-23)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

_SCOPE_TOKEN = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]+")
_SYSTEM = re.compile(
    r"system/(?P<type>\*|[A-Z][A-Za-z]*)\.(?:(?P<v1>read|write|\*)|(?P<v2>c?r?u?d?s?))"
)
WEBHOOKS = ("webhooks.read", "webhooks.write")
_VERSION_1 = {"read": "rs", "write": "cud", "*": "cruds"}
_ANY = "*"
_BY_NAME_ONLY = frozenset({"AuditEvent"})
"""Types that ``*`` does not stand for: a scope names them (D-331)."""


def permits(scopes: Sequence[str], type_name: str, letter: str) -> bool:
    """Return whether scopes allow an interaction with a resource type.

    ``letter`` is one of SMART's: ``c`` create, ``r`` read, ``u`` update, ``d`` delete,
    ``s`` search. A scope that is not understood as a whole allows nothing.
    """
    granted = _permissions_by_type(tuple(scopes))
    general = () if type_name in _BY_NAME_ONLY else granted.get(_ANY, ())
    return letter in granted.get(type_name, ()) or letter in general


def narrow(held: Sequence[str], wanted: Iterable[str]) -> tuple[str, ...]:
    """Return those of the wanted scopes that what is held covers, each once."""
    return tuple(dict.fromkeys(name for name in wanted if _covers(held, name)))


def intersect(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return those scopes of either that the other covers, each once."""
    return tuple(dict.fromkeys((*narrow(some, others), *narrow(others, some))))


def is_scope(text: str) -> bool:
    """Return whether a text can be a scope (RFC 6749 section 3.3)."""
    return _SCOPE_TOKEN.fullmatch(text) is not None


def gives_something(text: str) -> bool:
    """Return whether a scope gives a right to anything that this service has."""
    return text in WEBHOOKS or bool(_permissions_by_type((text,)))


def _covers(held: Sequence[str], wanted: str) -> bool:
    if wanted in held:
        return True
    asked = _permissions_by_type((wanted,))
    return bool(asked) and all(
        permits(held, type_name, letter)
        for type_name, letters in asked.items()
        for letter in letters
    )


@lru_cache(maxsize=1024)
def _permissions_by_type(scopes: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """Return the letters allowed for each type, ``*`` standing for all types."""
    granted: dict[str, frozenset[str]] = {}
    for scope in scopes:
        match = _SYSTEM.fullmatch(scope)
        if match is None:
            continue
        letters = _VERSION_1.get(match["v1"] or "", match["v2"] or "")
        if letters:
            name = match["type"]
            granted[name] = granted.get(name, frozenset()) | frozenset(letters)
    return granted
