"""A page of a long list, and what of it is looked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fhirpub.console.visit import Visit
from fhirpub.runtime.turns import in_turns

ROWS = 50
"""So many records are on a page."""
_MAX_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of a list.

    Attributes:
        records: The records of the page.
        total: How many match.
        page: The number of the page.
        pages: The number of pages.
        find: The text that is looked for.
        query: The parameters by which the list was asked for.
    """

    records: Sequence[Any]
    total: int
    page: int
    pages: int
    find: str
    query: Mapping[str, str]

    def at(self, page: int) -> str:
        """Return the query that leads to another page of the list."""
        return f"?{urlencode({**self.query, 'page': str(page)})}"


async def page_of(visit: Visit, records: Sequence[Any]) -> Listing:
    """Return the page that a visit asks for, of the records that have the text it looks for.

    Other requests have their turn in between.
    """
    find = visit.query.get("find", "").strip()
    if find:
        has = await in_turns(lambda one: _has(one, find.casefold()), records)
        records = [one for one, found in zip(records, has, strict=True) if found]
    pages = max(1, -(-len(records) // ROWS))
    page = min(max(1, _number(visit.query.get("page", ""))), pages)
    return Listing(
        records=records[(page - 1) * ROWS : page * ROWS],
        total=len(records),
        page=page,
        pages=pages,
        find=find,
        query=visit.query,
    )


def _has(record: Any, text: str) -> bool:
    values = record.values() if isinstance(record, dict) else (record,)
    return any(text in one.casefold() for one in values if isinstance(one, str))


def _number(text: str) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
    return int(text) if is_number else 1
