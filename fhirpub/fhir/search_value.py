"""Values of search parameters: commas, bars and backslashes (R4 search, 3.1.1.3; D-128)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PIECE = re.compile(r"(?:[^\\,]|\\.)++", re.DOTALL)
_BAR = re.compile(r"((?:[^\\|]|\\.)*+)\|(.*)", re.DOTALL)
_TYPED = re.compile(r"((?:[^\\|]|\\.)*+)\|((?:[^\\|]|\\.)*+)\|((?:[^\\|]|\\.)*+)", re.DOTALL)
_DOLLAR = re.compile(r"((?:[^\\$]|\\.)++)\$((?:[^\\$]|\\.)++)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LONE_BACKSLASH = re.compile(r"(?:[^\\]|\\[,|$\\])*+\\(?![,|$\\])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """``system`` None: any; empty: none at all. ``value`` None: any."""

    system: str | None
    value: str | None


def values_of(text: str) -> list[str] | None:
    """Split at commas that no backslash escapes; the alternatives keep their escapes.

    None: a backslash stands before something that needs none.
    """
    if _LONE_BACKSLASH.match(text):
        return None
    return _PIECE.findall(text)


def token_of(text: str) -> Token | None:
    """Read one token: ``value``, ``system|value``, ``system|`` or ``|value``; else None."""
    match = _BAR.fullmatch(text)
    if match is None:
        return Token(None, plain(text)) if text else None
    system, value = plain(match[1]), plain(match[2])
    if not system and not value:
        return None
    return Token(system, value or None)


def typed_of(text: str) -> tuple[str, str, str] | None:
    """Read ``system|code|value`` of ``:of-type``, all three of which are needed; else None."""
    match = _TYPED.fullmatch(text)
    if match is None or not all(match.groups()):
        return None
    return plain(match[1]), plain(match[2]), plain(match[3])


def quantity_of(text: str) -> tuple[str, str, str] | None:
    """Read ``number``, ``number|system|code`` or ``number||code``, with a prefix; else None.

    HAPI FHIR writes ``number||`` for any unit.
    """
    if "|" not in text:
        return text, "", ""
    match = _TYPED.fullmatch(text)
    if match is None or not match[1] or (match[2] and not match[3]):
        return None
    return match[1], plain(match[2]), plain(match[3])


def pair_of(text: str) -> tuple[str, str] | None:
    """Split the two values of a composite at a dollar sign, both with their escapes; else None."""
    match = _DOLLAR.fullmatch(text)
    return (match[1], match[2]) if match else None


def plain(text: str) -> str:
    """Return a text without its escapes."""
    return _ESCAPE.sub(r"\1", text)
