"""Pages that end at a size: what is large takes no more memory than one page of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from fhirpub.storage.contract import MAX_PAGE_BYTES

T = TypeVar("T")


def up_to_size(
    rows: Iterable[T], size_of: Callable[[T], int], *, most: int = MAX_PAGE_BYTES
) -> Iterator[T]:
    """Yield rows up to the one with which they reach a size.

    Args:
        rows: The rows.
        size_of: Returns the size of one in bytes.
        most: The size in bytes.
    """
    left = most
    for row in rows:
        yield row
        left -= size_of(row)
        if left <= 0:
            return
