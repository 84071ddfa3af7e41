"""How many search values a resource may have, and how large they may be."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.errors import TooLarge
from fhirpub.problems import ContentProblem
from fhirpub.storage.criteria import SearchValue, encode

MAX_SEARCH_VALUES = 2_000
"""The maximum number of search values of a resource. Each is a row of an index: so many take the
writer of SQLite up to 20 ms, in which no other tenant can write. A real report has below 300."""
MAX_SEARCH_BYTES = 262_144
"""The maximum number of bytes that they take as JSON: long ones take the writer time as well."""


def encode_limited(values: Sequence[SearchValue], *, limited: bool) -> bytes:
    """Return values as they are stored. Raises TooLarge unless they may be too many."""
    encoded = encode(values)
    if limited:
        refuse_excess(len(values), len(encoded))
    return encoded


def refuse_excess(number: int, size: int) -> None:
    """Raise TooLarge for too many values, or too many bytes of them."""
    if number > MAX_SEARCH_VALUES or size > MAX_SEARCH_BYTES:
        what = f"{MAX_SEARCH_VALUES}" if number > MAX_SEARCH_VALUES else "256 KiB of"
        raise TooLarge.because(
            f"has more than {what} search values, which are the codings, identifiers, "
            "references, times, numbers and texts that searches compare: send fewer of them, or "
            "divide the content among several resources",
            details=ContentProblem.SEARCH_VALUES_TOO_MANY,
        )
