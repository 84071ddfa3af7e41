"""Names of properties and elements that FHIR does not have, and which ones were meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from heapq import nsmallest

from fhirpub.suggestion import nearest

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""A name that may be repeated to the sender."""
MAX_SUGGESTIONS = 10
"""So many problems of a body get a suggestion, since to find one takes time."""
_MAX_NAMES = 10
_MAX_SUGGESTED_NAMES = 3


def describe_unknown_names(kind: str, names: Sequence[str]) -> str:
    """Return the sentence about unknown names of a kind; only plain ones are repeated."""
    plain = nsmallest(_MAX_NAMES, filter(PLAIN_NAME.fullmatch, names))
    more = len(names) - len(plain)
    if not plain:
        return f"has unknown {kind}"
    others = f" and {more} more" if more else ""
    return f"has {kind} that FHIR R4 does not have here: {', '.join(plain)}{others}"


def suggest_name(names: Sequence[str], known: Iterable[str]) -> str:
    """Return the end of a sentence about unknown names; empty if none is near to a known one.

    It takes up to a millisecond, so that few problems of a body get one.
    """
    for name in nsmallest(_MAX_SUGGESTED_NAMES, filter(PLAIN_NAME.fullmatch, names)):
        near = "" if name.startswith("_") else nearest(name, known)
        if near:
            return f"; did you mean {near}?"
    return ""
