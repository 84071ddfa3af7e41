"""How a MongoDB store is searched: one pipeline for a page and its total."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import LAST_UPDATED
from fhirpub.storage.mongodb.documents import member_type
from fhirpub.storage.mongodb.schema import (
    BY_SEARCH_VALUE,
    BY_SYSTEM,
    BY_TIME,
    BY_VALUE,
    VERSION,
    VERSION_KEY,
    Filter,
    Pipeline,
)
from fhirpub.storage.mongodb.search.filters import (
    COLUMNS,
    alternatives,
    compares,
    filter_of,
    has_range,
    is_in_order,
    is_range_of_times,
    is_without_end,
    match_identified,
    match_one_of,
    may_be_owned,
    of_member,
)
from fhirpub.storage.mongodb.search.order import Ordering, ordering_of
from fhirpub.storage.mongodb.search.stages import KEY, LATER, LATER_OF_MEMBER, MEMBER, WHOLE
from fhirpub.tenant import is_member_id

_BEST_FIRST = (VERSION_KEY, BY_VALUE, BY_SEARCH_VALUE, BY_SYSTEM, BY_TIME)
_SUM: Pipeline = [{"$group": {"_id": None, "total": {"$sum": "$total"}}}]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a search is answered.

    Attributes:
        pipeline: What gives the id and version of each entry of the page and of one entry more,
            in their order, and then one document with the total, or none if that is 0 or not
            asked for. An entry that is a member has its ``carrier`` as well.
        index: The index that finds the candidates, None if several do together.
        is_exact: Whether entries of one moment are in their order. If they are not, entries are
            read in the order of an index, which has no ids, and some of the moment of the last
            entry may be missing. Each has its time then, as ``updated``.
    """

    pipeline: Pipeline
    index: str | None
    is_exact: bool


def plan_of(
    tenant: str,
    query: SearchQuery,
    *,
    since: int | None = None,
    by_time: bool = False,
    has_reuse: bool = False,
) -> Plan:
    """Return the plan of a query; it is exact with ``since``, the time of the oldest entry.

    With ``by_time`` the newest versions of all are looked at, until there are enough that match.
    With ``has_reuse`` some resources have no version 1, since they were registered again (ADR 36).
    """
    index, conditions = _conditions(tenant, query)
    if by_time:
        index = BY_TIME
    ordering = ordering_of(query)
    is_quick = ordering.is_usual and since is None
    sources: list[_Source] = [_Alone(tenant, query, conditions, index=index)]
    if query.has_members and (query.ids is None or any(map(is_member_id, query.ids))):
        sources.append(_Members(tenant, query, conditions))
    total = _merge([source.total(by_first=not has_reuse) for source in sources], _SUM)
    if not query.limit:
        return Plan(total, index, is_exact=True)
    if since is not None:
        ordering = replace(ordering, bounds=(*ordering.bounds, {"updated": {"$gte": since}}))
    quick = [source for source in sources if is_quick and source.is_by_time]
    pages = [
        source.newest_first(ordering)
        if source in quick
        else source.page(ordering, merged=len(sources) > 1)
        for source in sources
    ]
    page = _merge(pages, [{"$sort": ordering.sorting}, {"$limit": query.limit + 1}])
    totals = [_union_with(total)] if query.count_up_to != 0 else ()
    return Plan([*page, *totals], index, is_exact=not quick)


def newest_plan(tenant: str, query: SearchQuery, *, most: int) -> Plan | None:
    """Return what finds entries among the newest candidates alone, None if that saves nothing.

    It does where a range of times is wanted, which no index has newest first: if many versions
    match, some of the newest do. Candidates are those of another criterion that an index has in
    this order, or else all.
    """
    ordering = ordering_of(query)
    is_page = query.limit and ordering.is_usual
    is_alone = not (query.identifiers or query.ids is not None or query.has_members)
    # A total takes longer, and is counted again if these candidates are too few.
    is_cheap = query.count_up_to == 0 or len(query.criteria) == 1
    if not (is_page and is_alone and is_cheap and any(map(is_range_of_times, query.criteria))):
        return None
    everywhere: Filter = {"tenant": tenant, "type": query.type}
    conditions = [filter_of(one, tenant, query.type) for one in query.criteria]
    in_order = [number for number, one in enumerate(query.criteria) if is_in_order(one)]
    leading = [conditions[number] for number in in_order[:1]]
    index = BY_SEARCH_VALUE if leading else BY_TIME
    candidates = _Alone(tenant, query, [everywhere, *leading], index=index)
    matching: Pipeline = [{"$limit": most}, {"$match": {"$and": conditions}}]
    page = candidates.newest_first(ordering, matching=matching)
    counted = _Alone(tenant, query, [everywhere, *conditions], index=index)
    totals = [] if query.count_up_to == 0 else [_union_with(counted.total(by_first=False))]
    return Plan([*page, *totals], index, is_exact=False)


def count_plan(tenant: str, query: SearchQuery, *, most: int) -> Plan | None:
    """Return what counts matches up to a number, if many of them speak for a plan by time.

    They do for times without an end alone: no index has them newest first, all would be sorted.
    """
    index, conditions = _conditions(tenant, query)
    is_page = query.limit and ordering_of(query).is_usual
    is_alone = [*map(is_without_end, query.criteria)] == [True]
    if index != BY_SEARCH_VALUE or not is_page or not is_alone:
        return None
    counting: Pipeline = [{"$match": {"$and": conditions}}, {"$limit": most}, {"$count": "total"}]
    return Plan(counting, index, is_exact=True)


def _merge(pipelines: Sequence[Pipeline], merging: Pipeline) -> Pipeline:
    """Return the results of all, behind which ``merging`` follows if they are several."""
    first, *others = pipelines
    return [*first, *map(_union_with, others), *merging] if others else first


def _union_with(pipeline: Pipeline) -> dict[str, Any]:
    return {"$unionWith": {"coll": VERSION, "pipeline": pipeline}}


def _conditions(tenant: str, query: SearchQuery) -> tuple[str | None, list[Filter]]:
    """Return the conditions on a version, and the index as `page_and_total` does."""
    index: str = BY_TIME
    everywhere: Filter = {"tenant": tenant, "type": query.type}
    conditions: list[Filter] = []
    owned: list[Filter] = []
    for group in query.identifiers:
        needed = match_identified(group)
        conditions += needed.values()
        index = min([index, *needed], key=_BEST_FIRST.index)
    if query.ids is not None:
        index = VERSION_KEY
        conditions.append(match_one_of("id", query.ids))
    for criterion in query.criteria:
        if may_be_owned(criterion) and index == BY_TIME and not owned:
            owned += alternatives(criterion, tenant, query.type)
            continue
        conditions.append(filter_of(criterion, tenant, query.type))
        if has_range(criterion):
            index = min(index, BY_SEARCH_VALUE, key=_BEST_FIRST.index)
    if not owned:
        return index, [everywhere, *conditions]
    # Each alternative has an index of its own: so all conditions stand in each.
    return None, [
        {"$or": [{"$and": [everywhere, alternative, *conditions]} for alternative in owned]}
    ]


class _Source(ABC):
    """Finds matches of a query in one form of storage."""

    later: ClassVar[dict[str, Any]]
    shown: ClassVar[dict[str, Any]]
    in_order = False
    """Whether candidates may be in the usual order; otherwise only what is needed is sorted."""
    is_by_time = False
    """Whether an index has them newest first, those of one moment in any order."""
    fetches = False
    """Whether conditions need versions that the index in the usual order leads to."""

    def __init__(self, tenant: str, query: SearchQuery, conditions: Sequence[Filter]) -> None:
        self._tenant = tenant
        self._query = query
        self._conditions = conditions

    @abstractmethod
    def _find(self, bounds: Sequence[Filter] = (), *, first: bool = False) -> Pipeline:
        """Return what finds candidates by bounds of their times; ``first``: only versions 1."""

    def total(self, *, by_first: bool) -> Pipeline:
        """Return what counts; identifiers never change, so that each match has one version 1."""
        most = self._query.count_up_to
        counting: Pipeline = [] if most is None else [{"$limit": most + 1}]
        counting.append({"$count": "total"})
        if by_first and not (self._query.criteria or self._query.every_version):
            return [*self._find(first=True), *counting]
        shown: Pipeline = [
            *([] if most is None else [WHOLE]),
            {"$project": {"_id": 0, **self.shown}},
        ]
        return [*self._find(), *shown, *self._latest(), *counting]

    def page(self, ordering: Ordering, *, merged: bool) -> Pipeline:
        """Return what finds the entries of a page, if ``merged`` with what they are sorted by."""
        needed: Pipeline = [{"$project": {**self.shown, **ordering.needed}}]
        ahead: Pipeline = []
        if self.in_order and ordering.is_usual:
            needed, ahead = [], [WHOLE] if self.fetches else []
        return [
            *self._find(ordering.bounds),
            *needed,
            {"$sort": ordering.sorting},
            *ahead,
            *self._entries(ordering, merged=merged),
            {"$limit": self._query.limit + 1},
        ]

    def newest_first(self, ordering: Ordering, *, matching: Sequence[Filter] = ()) -> Pipeline:
        """Return what finds the same as `page`, read from an index only as far as it is needed.

        ``matching`` chooses among the candidates.
        """
        found, *unwound = self._find(ordering.bounds)
        return [
            found,
            {"$sort": {"updated": -1}},
            *matching,
            WHOLE,
            *unwound,
            *self._entries(ordering, merged=True),
            {"$limit": self._query.limit + 1},
            {"$sort": ordering.sorting},
        ]

    def _entries(self, ordering: Ordering, *, merged: bool) -> Pipeline:
        """Return what leaves of candidates those of the page and behind it."""
        shown = {"_id": 0, **self.shown, **(ordering.kept if merged else {})}
        return [*ordering.show(shown), *self._latest()]

    def _latest(self) -> Pipeline:
        if self._query.every_version:
            return []
        return [{"$lookup": self.later}, {"$match": {"later.tenant": {"$ne": self._tenant}}}]


class _Alone(_Source):
    """Finds versions that were added alone."""

    later = LATER
    shown = KEY

    def __init__(
        self,
        tenant: str,
        query: SearchQuery,
        conditions: Sequence[Filter],
        *,
        index: str | None,
    ) -> None:
        super().__init__(tenant, query, conditions)
        self.in_order = index not in (None, BY_SEARCH_VALUE)
        self.fetches = index == BY_TIME and not all(
            compares(one, *COLUMNS) for one in query.criteria
        )
        self.is_by_time = index == BY_SEARCH_VALUE and any(map(is_in_order, query.criteria))

    def _find(self, bounds: Sequence[Filter] = (), *, first: bool = False) -> Pipeline:
        only = [{"version": 1}] if first else ()
        return [{"$match": {"$and": [*self._conditions, *bounds, *only]}}]


class _Members(_Source):
    """Finds members by their carriers: an index leads to those of which a member may match.

    No hint is possible within a union. So its filter leaves the planner one index, and the tenant
    is compared at the end: the server moves such a condition as far ahead as it can.
    """

    later = LATER_OF_MEMBER
    shown: ClassVar[dict[str, Any]] = {**KEY, "carrier": 1}

    def __init__(self, tenant: str, query: SearchQuery, conditions: Sequence[Filter]) -> None:
        super().__init__(tenant, query, conditions)
        leading = [one for one in query.criteria if has_range(one)]
        self.is_by_time = query.ids is None and (not leading or any(map(is_in_order, leading)))

    def _find(self, bounds: Sequence[Filter] = (), *, first: bool = False) -> Pipeline:
        if self._by_id and not first:
            return self._find_newest(bounds)
        only = [{"version": 1}] if first else ()
        wanted = [of_member(one) for one in (*self._conditions, *only)]
        return self._members_in([*self._carriers(), *bounds], wanted)

    def _find_newest(self, bounds: Sequence[Filter]) -> Pipeline:
        """Return what finds the newest version of each member of an id, if that matches.

        All versions of these are found in any case, and sorting them takes less time than looking
        for a later version of each.
        """
        ids = self._ids()
        return [
            *self._members_in([ids], [ids]),
            {"$sort": {"id": 1, "version": -1}},
            {"$group": {"_id": "$id", "newest": {"$first": "$$ROOT"}}},
            {"$replaceWith": "$newest"},
            {"$match": {"$and": [*self._conditions, *bounds]}},
        ]

    def _members_in(self, carriers: Sequence[Filter], members: Sequence[Filter]) -> Pipeline:
        """Return what finds members that match in carriers that match."""
        return [
            {"$match": {"$and": carriers}},
            {"$unwind": "$members"},
            {"$match": {"$and": members}},
            {"$replaceWith": MEMBER},
            {"$match": {"tenant": self._tenant}},
        ]

    def _latest(self) -> Pipeline:
        return [] if self._by_id else super()._latest()

    @property
    def _by_id(self) -> bool:
        """Whether the newest versions of known members are searched."""
        return self._query.ids is not None and not self._query.every_version

    def _ids(self) -> Filter:
        ids = self._query.ids or ()
        return of_member(match_one_of("id", [each for each in ids if is_member_id(each)]))

    def _carriers(self) -> list[Filter]:
        query, tenant = self._query, self._tenant
        leading = [one for one in query.criteria if has_range(one)]
        times = [one for one in query.criteria if compares(one, LAST_UPDATED)]
        if query.ids is not None:
            first, leading = self._ids(), []
        elif leading:
            first = {"members": {"$exists": True}}
        else:
            first = {"member_types": member_type(tenant, query.type)}
        known = [filter_of(one, tenant, query.type) for one in (*leading, *times)]
        return [first, *map(of_member, known)]
