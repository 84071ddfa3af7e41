"""Where work goes on that is cut into several requests."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.errors import InvalidContent, Issue
from fhirpub.problems import OperationProblem

FROM = "What the response before it has in `following`: the same request with this goes on."
_RULE = "must be what the response before it has in `following`"
_MAX_DIGITS = 18
"""Any number of this length fits into 64 bits."""


def read_numbers(parts: Sequence[str], *, count: int, name: str) -> list[int]:
    """Return the numbers that a place consists of. Raises InvalidContent.

    Args:
        parts: The numbers as texts.
        count: How many there have to be.
        name: The parameter that has the place.
    """
    if len(parts) != count or not all(map(_is_number, parts)):
        raise InvalidContent([Issue.error(OperationProblem.FIELD_INVALID, _RULE, name)])
    return [int(part) for part in parts]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
