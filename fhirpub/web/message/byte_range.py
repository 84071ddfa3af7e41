"""Which part of a document a client asks for (RFC 9110 section 14)."""

from __future__ import annotations

import re

from fhirpub.errors import FhirpubError
from fhirpub.problems import RequestProblem

_ONE_RANGE = re.compile(r"bytes=[ \t]*([0-9]{0,15})-([0-9]{0,15})[ \t]*")


class RangeNotSatisfiable(FhirpubError):
    """The requested range does not exist. ``size`` is that of the whole, in bytes."""

    details = RequestProblem.RANGE_UNSATISFIABLE

    def __init__(self, size: int) -> None:
        super().__init__(f"the document has {size} bytes, and none in this range")
        self.size = size


def part_of(size: int, asked: str) -> slice | None:
    """Return the part that a Range header asks for, or None if all is to be sent.

    All is sent to who asks for several parts at once, or for something that is no range of
    bytes, as the RFC allows. Raises RangeNotSatisfiable.
    """
    match = _ONE_RANGE.fullmatch(asked.strip().lower())
    if match is None or match[1] == match[2] == "":
        return None
    if not match[1]:
        start, end = max(0, size - int(match[2])), size
        if not int(match[2]):
            raise RangeNotSatisfiable(size)
    else:
        start, end = int(match[1]), min(size, int(match[2] or size) + 1)
        if match[2] and int(match[2]) < start:
            return None
    if start >= size:
        raise RangeNotSatisfiable(size)
    return slice(start, end)
