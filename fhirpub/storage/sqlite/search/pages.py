"""A page of a search in a SQLite store: from the best source of candidates to its versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from fhirpub.storage.contract import Page, SearchQuery
from fhirpub.storage.criteria import NEWEST_FIRST
from fhirpub.storage.id_search import capped_total
from fhirpub.storage.page_size import up_to_size
from fhirpub.storage.sqlite import schema as sql
from fhirpub.storage.sqlite.blobs import put_back
from fhirpub.storage.sqlite.rows import Row, size_of, version_of
from fhirpub.storage.sqlite.search.sources import Source, sources_of
from fhirpub.storage.sqlite.search.statements import search_statements
from fhirpub.storage.sqlite.tables.erasure import HAS_REUSE

FIRST_COUNT = 1_000
COUNTS = (FIRST_COUNT, 10_000, 100_000)
"""The numbers up to which candidates are counted, one after another, to find the best source."""
_NEWEST_FACTORS = (20, 200)
"""So many times as many candidates as entries are looked at first, and then."""


def page_rows(rows: Iterable[Row]) -> list[Row]:
    """Return rows of versions up to the one with which they are enough for a page."""
    return [*up_to_size(rows, size_of)]


def find_page(connection: sqlite3.Connection, tenant: str, query: SearchQuery) -> Page:
    """Return a page of a search, within the transaction of the connection."""
    numbers: list[Row] = []
    counted = 0
    source, candidates = best_source(connection, tenant, query)
    ((has_reuse,),) = connection.execute(HAS_REUSE, (tenant,))
    statements = search_statements(tenant, query, source, has_reuse=bool(has_reuse))
    if query.limit:
        page = statements
        if source and candidates >= FIRST_COUNT:
            numbers = _newest_numbers(connection, tenant, query, source)
            if source.newest:
                # Most would be sorted in vain: going from the newest on meets some at once.
                page = search_statements(tenant, query)
        if not numbers:
            numbers = connection.execute(page.page, page.parameters).fetchall()
    if query.count_up_to != 0:
        ((counted,),) = connection.execute(statements.total, statements.parameters)
    # One by one, as many as are shown: to sort them would take all of them into memory.
    found = (
        connection.execute(sql.NUMBERED, number).fetchone() for number in numbers[: query.limit]
    )
    versions = tuple(version_of(put_back(connection, row)) for row in page_rows(found))
    return Page(versions, capped_total(counted, query), more=len(numbers) > len(versions))


def _newest_numbers(
    connection: sqlite3.Connection, tenant: str, query: SearchQuery, source: Source
) -> list[Row]:
    """Return the numbers of a page and one more among the newest candidates of a range.

    Nothing if they are not as many: then all must be looked at. To find the time of a candidate
    takes the index alone, and a twentieth of what it takes to compare it.
    """
    if not source.range or source.newest or query.order[0] != NEWEST_FIRST[0]:
        return []
    if query.after is not None and query.after[0] is not None:
        source = source.until(int(query.after[0]))
    for factor in _NEWEST_FACTORS:
        place = factor * (query.limit + 1)
        times = connection.execute(source.time_of(place), source.parameters).fetchall()
        if not times:
            break
        newest = search_statements(tenant, query, source.since(*times[0]))
        numbers = connection.execute(newest.page, newest.parameters).fetchall()
        if len(numbers) > query.limit:
            return numbers
    return []


def best_source(
    connection: sqlite3.Connection, tenant: str, query: SearchQuery
) -> tuple[Source | None, int]:
    """Return the source with the fewest candidates, and their number up to a limit.

    SQLite itself has no statistics to choose by. Where all have more than the limit, they are
    counted up to the next one: the order of the criteria must not decide.
    """

    def count(source: Source, most: int) -> int:
        ((number,),) = connection.execute(source.count(most), source.parameters)
        return int(number)

    sources = sources_of(tenant, query)
    best: Source | None = None
    fewest = 0
    for most in COUNTS if len(sources) > 1 else COUNTS[: len(sources)]:
        counted = [(count(source, most), source) for source in sources]
        fewest, best = min(counted, key=lambda each: each[0])
        if fewest < most:
            break
    return best, fewest
