"""Which of the known words was meant by another one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_WORD = 64
_NO_LETTERS = str.maketrans("", "", "-_ ")


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that was most likely meant, or nothing.

    Words that differ only in case, hyphens and underscores come first, then those that continue
    the word, as ``effectiveDateTime`` does ``effective``. It takes less than a millisecond for a
    hundred words, and nothing for a word that is too long to be a name.
    """
    if len(word) > _LONGEST_WORD:
        return ""
    words = list(known)
    letters = _letters(word)
    same = next((one for one in words if _letters(one) == letters), "")
    continuing = [one for one in words if _continues(one, word)]
    text = [one for one in continuing if one.endswith("String")]  # of many forms the plainest
    same = same or next(iter([*text, *continuing]), "")
    return same or next(iter(difflib.get_close_matches(word, words, n=1, cutoff=0.7)), "")


def _letters(word: str) -> str:
    return word.translate(_NO_LETTERS).lower()


def _continues(one: str, word: str) -> bool:
    return bool(word) and one.startswith(word) and one[len(word) :][:1].isupper()


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the question whether the nearest of the known words was meant, or nothing."""
    near = nearest(word, known)
    return f"did you mean {near}?" if near else ""
