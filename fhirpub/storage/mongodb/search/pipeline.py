"""How a MongoDB store is searched: one pipeline for a page and its total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fhirpub.storage.contract import SearchQuery
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
    alternatives,
    filter_of,
    has_range,
    is_in_order,
    is_range_of_times,
    is_without_end,
    match_identified,
    match_one_of,
    may_be_owned,
)
from fhirpub.storage.mongodb.search.order import ordering_of
from fhirpub.storage.mongodb.search.sources import Alone, Members, Source
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
    sources: list[Source] = [Alone(tenant, query, conditions, index=index)]
    if query.has_members and (query.ids is None or any(map(is_member_id, query.ids))):
        sources.append(Members(tenant, query, conditions))
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
    this order, or else all. Nothing is counted.
    """
    ordering = ordering_of(query)
    is_page = query.limit and ordering.is_usual
    is_alone = not (query.identifiers or query.ids is not None or query.has_members)
    if not (is_page and is_alone and any(map(is_range_of_times, query.criteria))):
        return None
    everywhere: Filter = {"tenant": tenant, "type": query.type}
    conditions = [filter_of(one, tenant, query.type) for one in query.criteria]
    in_order = [number for number, one in enumerate(query.criteria) if is_in_order(one)]
    leading = [conditions[number] for number in in_order[:1]]
    index = BY_SEARCH_VALUE if leading else BY_TIME
    candidates = Alone(tenant, query, [everywhere, *leading], index=index)
    matching: Pipeline = [{"$limit": most}, {"$match": {"$and": conditions}}]
    return Plan(candidates.newest_first(ordering, matching=matching), index, is_exact=False)


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
