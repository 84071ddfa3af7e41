"""Texts as searches compare them: without case, accents and the form of blanks."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from typing import Any

MAX_TEXT = 128
"""The maximum number of characters of a text that is stored or sought, after it is normalized."""
_MAX_READ = 16 * MAX_TEXT
"""The number of characters of a text that are looked at: marks are left out, and blanks."""
_MAX_KEPT, _MAX_TEXT_SHOWN = 512, 64
_MAX_WORDS = 16
"""The maximum number of words of a name as a text with which what is sought may begin."""

FAMILY, GIVEN, TEXT = "family", "given", "text"
"""The kinds of the texts of a HumanName; other texts have an empty kind."""

_LETTERS = str.maketrans(
    {
        **dict(zip("øłđħŧı", "oldhti", strict=True)),  # Unicode does not take these apart
        "æ": "ae",
        "œ": "oe",
        **dict.fromkeys("\u2018\u2019\u02bc", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)


def normalize_text(text: str) -> str:
    """Return a text as it is compared: at most `MAX_TEXT` characters, maybe none.

    Compatible characters become one, accents and other marks of letters are left out, as are
    characters of formatting; case is folded, and blanks become one space. A beginning of a text
    is normalized to a beginning of it.
    """
    text = text[:_MAX_READ]
    if text.isascii():
        folded = text.lower()
    else:
        letters = "".join(filter(_is_shown, unicodedata.normalize("NFKD", text)))
        folded = letters.casefold().translate(_LETTERS)
    return " ".join(folded.split())[:MAX_TEXT].rstrip()


def shorten(text: str) -> str:
    """Return a text that must be compared as it is, or what stands for a long one."""
    if len(text) <= _MAX_KEPT:
        return text
    return f"{text[:_MAX_TEXT_SHOWN]}#{hashlib.sha256(text.encode()).hexdigest()}"


def exact_under(name: str) -> str:
    """Return the name under which the texts under a name are stored as they were written."""
    return f"{name}:exact"


def exact_text(text: str, kind: str) -> str:
    """Return a text as it was written, with its kind."""
    return f"{kind}|{shorten(text)}"


def _is_shown(character: str) -> bool:
    return not unicodedata.combining(character) and unicodedata.category(character) != "Cf"


def texts_of(item: str | Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the texts of a string or a HumanName that searches find, each with its kind."""
    found: list[tuple[str, str]] = []
    for text, kind in written_texts(item):
        normalized = normalize_text(text)
        if kind != TEXT:
            found += [(normalized, kind)] if normalized else []
            continue
        words = normalized.split(" ", maxsplit=_MAX_WORDS - 1)
        found += [(" ".join(words[number:]), TEXT) for number in range(len(words)) if words[0]]
    return found


def written_texts(item: str | Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the same as they were written; a gap in a list of names is left out."""
    if isinstance(item, str):
        return [(item, "")]
    named = [(item.get(FAMILY), FAMILY), *((given, GIVEN) for given in item.get(GIVEN, ()))]
    named.append((item.get(TEXT), TEXT))
    return [(text, kind) for text, kind in named if text]
