"""Pages of the audit trail: the records that match a search, the newest first, within bounds.

Blocks come in descending order of their first time, and the records of a block by their own. What
was sealed together is thus in the order of time; of two blocks the one that began later is first,
even if a record of the other one is newer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import orjson

from fhirpub.audit.chain import records_of, time_of
from fhirpub.audit.record import Members
from fhirpub.audit.search import MAX_BLOCKS, AuditSearch
from fhirpub.storage.audit_contract import AuditBlock, AuditQuery, AuditStore

MAX_BYTES = 4 * 1024 * 1024
"""After so many bytes of records a page ends, be it empty."""
_BLOCKS_AT_A_TIME = 8

Place = tuple[int, int, int]
"""Where a page begins: the first time and the number of a block, and how many of its records are
left to look at."""


@dataclass(frozen=True, slots=True)
class Found:
    """A record that matches, with its block, its place in it, and where the search goes on.

    ``size`` is that of its line in bytes.
    """

    record: Members
    block: int
    place: int
    after: Place
    size: int


@dataclass(frozen=True, slots=True)
class AuditPage:
    """What was found; ``next`` is None if there is nothing more to look at."""

    found: Sequence[Found]
    next: Place | None


Scan = Callable[[], list[Found]]
Run = Callable[[Scan, int], Awaitable[Sequence[Found]]]
"""Runs a pure function that looks at so many bytes, where that disturbs no other request."""


async def find_page(
    store: AuditStore, tenant: str, search: AuditSearch, *, after: Place | None, run: Run
) -> AuditPage:
    """Return the records that match, as many as the page may have.

    At most ``MAX_BLOCKS`` blocks are looked at: a page may have fewer records, or none, although
    there is a next one.
    """
    if search.ids is not None:
        return await _find_named(store, tenant, search, after=after, run=run)
    found: list[Found] = []
    count, size = 0, 0
    keys = search.keys
    while count < MAX_BLOCKS and size < MAX_BYTES:
        query = AuditQuery(
            since=search.since,
            until=search.until,
            before=None if after is None else _before(after),
            limit=_BLOCKS_AT_A_TIME,
            size=MAX_BYTES,
        )
        blocks = await find_candidates(store, tenant, query, keys)
        if not blocks:
            return AuditPage(found, None)
        bytes_now = sum(len(block.records) for block in blocks)
        scan = partial(
            _scan, blocks, search.matches, after=after, most=search.count + 1 - len(found)
        )
        found += await run(scan, bytes_now)
        if len(found) > search.count:
            return _cut(found, search.count)
        count, size = count + len(blocks), size + bytes_now
        after = (*blocks[-1].place, 0)
    return AuditPage(found, after)


async def read_record(store: AuditStore, tenant: str, place: tuple[int, int]) -> Members | None:
    """Return the record at a place of the chain: the number of a block, and the place in it."""
    number, position = place
    for block in await store.audit_chain(tenant, after=number - 1, limit=1):
        records = records_of(block) if block.number == number else []
        if position < len(records):
            members: Members = orjson.loads(records[position])
            return members
    return None


async def _find_named(
    store: AuditStore, tenant: str, search: AuditSearch, *, after: Place | None, run: Run
) -> AuditPage:
    """Return the page of a search by ids, which name their blocks."""
    ids = search.ids or frozenset()
    found: list[Found] = []
    for number in sorted({block for block, _place in ids}):
        blocks = await store.audit_chain(tenant, after=number - 1, limit=1)
        named = [block for block in blocks if block.number == number]
        places = frozenset(place for block, place in ids if block == number)
        scan = partial(_scan, named, search.matches, after=None, most=len(places), places=places)
        found += await run(scan, sum(len(block.records) for block in named))
    found.sort(key=lambda one: one.after, reverse=True)
    left = [one for one in found if after is None or one.after < after]
    return _cut(left, search.count) if len(left) > search.count else AuditPage(left, None)


def _cut(found: Sequence[Found], count: int) -> AuditPage:
    return AuditPage(found[:count], found[count - 1].after)


def _before(after: Place) -> tuple[int, int]:
    first, number, left = after
    return first, number + (left > 0)  # a block of which some records are left comes again


async def find_candidates(
    store: AuditStore, tenant: str, query: AuditQuery, alternatives: Collection[tuple[int, ...]]
) -> list[AuditBlock]:
    """Return the next blocks that may hold a match: those of each set of keys, merged.

    The sets share the size of a page, but each finds at least one block.
    """
    merged: dict[tuple[int, int], AuditBlock] = {}
    reached = (0, 0)
    for keys in alternatives:
        share = replace(query, keys=keys, size=query.size // len(alternatives))
        page = await store.find_audit_blocks(tenant, share)
        if page:
            reached = max(reached, page[-1].place)
        merged |= {block.place: block for block in page if block.place not in merged}
    # What one of the pages does not reach may be missing in it.
    return [merged[place] for place in sorted(merged, reverse=True) if place >= reached]


def _scan(
    blocks: Sequence[AuditBlock],
    matches: Callable[[Members], bool],
    *,
    after: Place | None,
    most: int,
    places: Collection[int] | None = None,
) -> list[Found]:
    """Return the records of blocks that match, in their order, at most so many; pure."""
    found: list[Found] = []
    for block in blocks:
        is_first = after is not None and after[:2] == block.place
        for one in _records_left(block, after[2] if after and is_first else None, places):
            if matches(one.record):
                found.append(one)
                if len(found) == most:
                    return found
    return found


def _records_left(
    block: AuditBlock, left: int | None, places: Collection[int] | None
) -> Iterator[Found]:
    """Yield the records of a block, the newest first; only the last ``left``, if it is given."""
    records = records_of(block)
    order = sorted(((time_of(line), place) for place, line in enumerate(records)), reverse=True)
    for passed, (_at, place) in enumerate(order, start=1):
        remaining = len(order) - passed
        if (left is None or remaining < left) and (places is None or place in places):
            members: Members = orjson.loads(records[place])
            after = (*block.place, remaining)
            yield Found(members, block.number, place, after, len(records[place]))
