"""Pages of searches: what matches is found by a pipeline, and then read as one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pymongo.read_concern import ReadConcern

from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.fair_turns import FairTurns
from fhirpub.runtime.stages import yield_to_loop
from fhirpub.storage.contract import MAX_PAGE_BYTES, MAX_SEARCH_SHARE, Page, SearchQuery, Version
from fhirpub.storage.erasure.tombstones import is_erased
from fhirpub.storage.id_search import capped_total
from fhirpub.storage.mongodb.collections import one_batch
from fhirpub.storage.mongodb.documents import Document, Key, version_key_of, version_of
from fhirpub.storage.mongodb.errors import end_by_server
from fhirpub.storage.mongodb.member_reads import MemberReads
from fhirpub.storage.mongodb.primary import Primary
from fhirpub.storage.mongodb.projections import ALONE, listed_with
from fhirpub.storage.mongodb.removal.reuse import Reuse
from fhirpub.storage.mongodb.schema import VERSION_KEY, Cursor, Records, by_keys
from fhirpub.storage.mongodb.search.pipeline import Plan, count_plan, newest_plan, plan_of

_MAX_CONCURRENT_PAGES, _PAGES_PER_TENANT = 6, 4
"""So many pages are on their way at the same time: each may be large, see `MAX_PAGE_BYTES`."""
_EVER = 0
_MANY = 1_000
"""To sort so many takes the server longer than to count them."""
_NEWEST = 1_500
"""So many candidates of a range of times are looked at, before all are."""
_DECODED_AT_ONCE = 50
"""So many versions hold the event loop for less than a millisecond."""


class Pages:
    """Reads pages of versions, and single ones that are as large.

    Args:
        versions: The collection.
        one_moment: The read concern of what is found, all as it was at one moment.
        primary: Answers reads of it.
        members: Reads members.
        reuse: Whether some resources have no version 1.
        seconds: The deadline of a read.
    """

    def __init__(
        self,
        versions: Records,
        one_moment: ReadConcern,
        *,
        primary: Primary,
        members: MemberReads,
        reuse: Reuse,
        seconds: float,
    ) -> None:
        self._primary = primary
        self._reuse = reuse
        self._versions = versions
        self._of_one_moment = versions.with_options(read_concern=one_moment)
        self._members = members
        self._most_seconds = seconds * MAX_SEARCH_SHARE
        self._pages = FairTurns(max_turns=_MAX_CONCURRENT_PAGES, per_owner=_PAGES_PER_TENANT)

    async def search(self, tenant: str, query: SearchQuery) -> Page:
        """Return a page; raises SearchTooCostly and Throttled."""
        while True:
            found, total = await self._find(tenant, query)
            # Versions never change: what a page consists of is settled already, but for erasures.
            async with self._pages.turn(tenant, seconds=self._most_seconds):
                read = await self._page_of(found[: query.limit], query.needed_values)
            versions = tuple(version for version in read if not is_erased(version))
            more = len(found) > len(read)
            if versions or not more:
                return Page(versions, capped_total(total, query), more=more)
            # All of it was erased since: nothing would say where the next page begins.

    async def read_alone(self, tenant: str, place: Document) -> Version:
        """Return an existing version; raises Throttled."""
        async with self._pages.turn(tenant, seconds=self._most_seconds):
            return await self._one(place, listed=False)

    async def _find(self, tenant: str, query: SearchQuery) -> tuple[list[dict[str, Any]], int]:
        """Return the keys of a page and of one entry more, and the total that was counted."""
        counts_first = query.count_up_to != 0 and not (query.criteria or query.every_version)
        has_reuse = counts_first and await self._reuse.of(tenant)
        plan = partial(plan_of, tenant, query, has_reuse=has_reuse)
        found = await self._newest(tenant, query)
        if found:
            return found, await self._count(tenant, query, least=len(found))
        first = plan(by_time=await self._has_many(tenant, query))
        found, total = await self._run(first, query)
        if first.is_exact or len(found) <= query.limit or _ends_between_moments(found):
            return found, total
        # The page ends amid entries of one moment: all that are as new are put in order.
        oldest = found[-1]["updated"]
        found, total = await self._run(plan(since=oldest), query)
        if len(found) <= query.limit:  # some were updated in between
            found, total = await self._run(plan(since=_EVER), query)
        return found, total

    async def _newest(self, tenant: str, query: SearchQuery) -> list[dict[str, Any]]:
        """Return the keys of a page and of one entry more if the newest candidates have them."""
        newest = newest_plan(tenant, query, most=_NEWEST)
        found = [] if newest is None else await self._look(newest, query)
        is_whole = len(found) > query.limit and _ends_between_moments(found)
        return found if is_whole else []

    async def _count(self, tenant: str, query: SearchQuery, *, least: int) -> int:
        """Return the total, after a page was found with ``least`` entries of then."""
        if query.count_up_to == 0:
            return 0
        _, total = await self._run(plan_of(tenant, replace(query, limit=0)), query)
        return max(total, least)

    async def _has_many(self, tenant: str, query: SearchQuery) -> bool:
        """Return whether so many match that some of the newest of all versions will."""
        counting = count_plan(tenant, query, most=_MANY)
        if counting is None:
            return False
        _, counted = await self._run(counting, query)
        return counted >= _MANY

    async def _run(self, plan: Plan, query: SearchQuery) -> tuple[list[dict[str, Any]], int]:
        found = await self._look(plan, query)
        total = found.pop()["total"] if found and "total" in found[-1] else 0
        return found, total

    async def _look(self, plan: Plan, query: SearchQuery) -> list[dict[str, Any]]:
        pipeline = plan.pipeline
        # Where the server prefers to sort, it may hold more than it keeps in memory by default.
        options: dict[str, Any] = {"allowDiskUse": True}
        if plan.index is not None:
            options["hint"] = plan.index
        if query.max_seconds is None:
            return await self._answer(lambda: self._of_one_moment.aggregate(pipeline, **options))
        options["maxTimeMS"] = max(1, int(min(query.max_seconds, self._most_seconds) * 1000))

        async def look() -> list[dict[str, Any]]:
            with end_by_server():
                return await self._of_one_moment.aggregate(pipeline, **options).to_list(None)

        return await self._primary.answer(look)

    async def _page_of(
        self, places: Sequence[Document], needed: frozenset[str] | None
    ) -> tuple[Version, ...]:
        """Return versions in their order, up to the one with which they are enough for a page."""
        kept = await self._fetch(places, needed, at_once=True)
        page, left = [], MAX_PAGE_BYTES
        for number, place in enumerate(places, start=1):
            if number % _DECODED_AT_ONCE == 0:
                await yield_to_loop()
            found = kept.get(version_key_of(place))
            page.append(await self._one(place) if found is None else version_of(found))
            left -= page[-1].size
            if left <= 0:
                break
        return tuple(page)

    async def _one(self, place: Document, *, listed: bool = True) -> Version:
        if listed or "carrier" in place:
            found = await self._fetch([place], None)
        else:
            found = await self._fetch_alone([version_key_of(place)], ALONE, at_once=0)
        if (
            version_key_of(place) not in found
        ):  # behind a router another primary took over in between
            raise StoreUnavailable("a version is missing")
        return version_of(found[version_key_of(place)])

    async def _fetch(
        self,
        places: Sequence[Document],
        needed: frozenset[str] | None,
        *,
        at_once: bool = False,
    ) -> Mapping[Key, Document]:
        """Return versions; with ``at_once`` only those that are in one batch of the server."""
        members = [place for place in places if "carrier" in place]
        alone = [version_key_of(place) for place in places if "carrier" not in place]
        many = len(alone) if at_once else 0
        found = await self._fetch_alone(alone, listed_with(needed), at_once=many)
        return {**found, **await self._members.fetch(members, needed, at_once=at_once)}

    async def _fetch_alone(
        self, keys: Sequence[Key], shown: Mapping[str, Any], *, at_once: int
    ) -> Mapping[Key, Document]:
        if not keys:
            return {}
        wanted = by_keys(keys)
        options = {"hint": VERSION_KEY, **one_batch(at_once)}
        found = await self._answer(lambda: self._versions.find(wanted, shown, **options))
        return {version_key_of(document): document for document in found}

    async def _answer(self, ask: Callable[[], Cursor]) -> list[dict[str, Any]]:
        return await self._primary.answer(lambda: ask().to_list(None))


def _ends_between_moments(found: Sequence[Document]) -> bool:
    """Return whether the last entry of a page and the one behind it are of different moments."""
    return bool(found[-2]["updated"] != found[-1]["updated"])
