"""Scopes of SMART on FHIR: what a client may do to which resource type (D-23)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

_SCOPE_TOKEN = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]+")
_SYSTEM = re.compile(
    r"system/(?P<type>\*|[A-Z][A-Za-z]*)\.(?:(?P<v1>read|write|\*)|(?P<v2>c?r?u?d?s?))"
)
WEBHOOKS = ("webhooks.read", "webhooks.write")
_VERSION_1 = {"read": "rs", "write": "cud", "*": "cruds"}
_LETTERS = "cruds"
_ANY = "*"
_BY_NAME_ONLY = frozenset({"AuditEvent"})
"""Types that ``*`` does not stand for: a scope names them (D-331)."""


def permits(scopes: Sequence[str], type_name: str, letter: str) -> bool:
    """Return whether scopes allow an interaction with a resource type.

    ``letter`` is one of SMART's: ``c`` create, ``r`` read, ``u`` update, ``d`` delete,
    ``s`` search. A scope that is not understood as a whole allows nothing.
    """
    return letter in _held(_permissions_by_type(tuple(scopes)), type_name)


def narrow(held: Sequence[str], wanted: Iterable[str]) -> tuple[str, ...]:
    """Return the wanted scopes as far as what is held covers them, each once.

    One that is covered as a whole stays as it is written; of another, the rest is written in the
    form of SMART App Launch 2: ``system/*.read`` is ``system/Patient.rs`` for one who holds
    ``system/Patient.cruds``.
    """
    return tuple(
        dict.fromkeys(scope for name in dict.fromkeys(wanted) for scope in _covered(held, name))
    )


def intersect(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return what both allow, as scopes of either as far as they are covered by the other."""
    kept = narrow(some, others)
    more = [name for name in narrow(others, some) if _covered(kept, name) != [name]]
    return (*kept, *more)


def is_scope(text: str) -> bool:
    """Return whether a text can be a scope (RFC 6749 section 3.3)."""
    return _SCOPE_TOKEN.fullmatch(text) is not None


def gives_something(text: str) -> bool:
    """Return whether a scope gives a right to anything that this service has."""
    return text in WEBHOOKS or bool(_permissions_by_type((text,)))


def _covered(held: Sequence[str], wanted: str) -> list[str]:
    asked = _permissions_by_type((wanted,))
    if wanted in held or not asked:
        return [wanted] if wanted in held else []
    ((type_name, letters),) = asked.items()
    granted = _permissions_by_type(tuple(held))
    general = letters & _held(granted, type_name)
    if general == letters:
        return [wanted]
    found = {type_name: general}
    if type_name == _ANY:
        named = sorted(granted.keys() - _BY_NAME_ONLY)
        found |= {name: letters & _held(granted, name) for name in named}
    return [
        f"system/{name}.{''.join(one for one in _LETTERS if one in kept)}"
        for name, kept in found.items()
        if kept and (name == type_name or kept > general)
    ]


def _held(granted: Mapping[str, frozenset[str]], type_name: str) -> frozenset[str]:
    """Return the letters that scopes allow for a type."""
    general = frozenset() if type_name in _BY_NAME_ONLY else granted.get(_ANY, frozenset())
    return granted.get(type_name, frozenset()) | general


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
