"""How a MongoDB store is searched: one pipeline for a page and its total."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
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
    alternatives,
    condition,
    has_member_range,
    has_range,
    match_identified,
    match_one_of,
    may_be_owned,
    of_member,
)
from fhirpub.storage.mongodb.search.order import Ordering, ordering_of
from fhirpub.tenant import is_member_id

_BEST_FIRST = (VERSION_KEY, BY_VALUE, BY_SEARCH_VALUE, BY_SYSTEM, BY_TIME)
_KEY: dict[str, Any] = {"id": 1, "version": 1, "next": {"$add": ["$version", 1]}}

_LATER = {
    "from": VERSION,
    "let": {"id": "$id", "next": "$next"},
    # The tenant is compared afterwards: it would let the planner consider all other indexes.
    "pipeline": [
        {
            "$match": {
                "$expr": {"$and": [{"$eq": ["$id", "$$id"]}, {"$eq": ["$version", "$$next"]}]}
            }
        },
        {"$project": {"_id": 0, "tenant": 1}},
    ],
    "as": "later",
}
"""What finds the version that took over from a candidate."""

_LATER_OF_MEMBER = {
    "from": VERSION,
    "localField": "id",
    "foreignField": "members.id",
    "let": {"carrier": "$carrier.version"},
    "pipeline": [
        {"$match": {"$expr": {"$gt": ["$version", "$$carrier"]}}},
        {"$project": {"_id": 0, "tenant": 1}},
    ],
    "as": "later",
}
"""What finds the versions that brought later versions of a member."""
_MEMBER = {
    **{
        name: f"$members.{name}" for name in ("id", "version", "type", "system", "value", "search")
    },
    "tenant": "$tenant",
    "updated": "$updated",
    "carrier": {"id": "$id", "version": "$version"},
}
"""What is needed of a member, and the key of its carrier: the version that brought it."""
_SINCE = {"from": VERSION, "let": {"oldest": "$oldest"}, "as": "entry"}
_AS_NEW_AS_OLDEST = {"$expr": {"$gte": ["$updated", "$$oldest"]}}
_SUM: Pipeline = [{"$group": {"_id": None, "total": {"$sum": "$total"}}}]


def page_and_total(tenant: str, query: SearchQuery) -> tuple[Pipeline, str | None]:
    """Return a pipeline and the index that finds its candidates, None if several do together.

    It gives the id and version of each entry of the page and of one entry more, in their
    order, and then one document with the total, or none if that is 0 or not asked for. An entry
    that is a member has its ``carrier`` as well.
    """
    index, conditions = _conditions(tenant, query)
    in_order = index not in (None, BY_SEARCH_VALUE)
    sources: list[_Source] = [_Alone(tenant, query, conditions, in_order=in_order)]
    if query.has_members and (query.ids is None or any(map(is_member_id, query.ids))):
        sources.append(_Members(tenant, query, conditions))
    total = _merge([source.total() for source in sources], _SUM)
    if not query.limit:
        return total, index
    ordering = ordering_of(query)
    pages = [source.page(ordering, merged=len(sources) > 1) for source in sources]
    page = _merge(pages, [{"$sort": ordering.sorting}, {"$limit": query.limit + 1}])
    return [*page, *([_union_with(total)] if query.count_up_to != 0 else ())], index


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
        conditions.append(condition(criterion, tenant, query.type))
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

    def __init__(self, tenant: str, query: SearchQuery, conditions: Sequence[Filter]) -> None:
        self._tenant = tenant
        self._query = query
        self._conditions = conditions

    @abstractmethod
    def _find(self, bounds: Sequence[Filter] = (), *, first: bool = False) -> Pipeline:
        """Return what finds candidates by bounds of their times; ``first``: only versions 1."""

    def total(self) -> Pipeline:
        """Return what counts; identifiers never change, so that each match has one version 1."""
        most = self._query.count_up_to
        counting: Pipeline = [] if most is None else [{"$limit": most + 1}]
        counting.append({"$count": "total"})
        if not (self._query.criteria or self._query.every_version):
            return [*self._find(first=True), *counting]
        shown: Pipeline = [{"$project": {"_id": 0, **self.shown}}]
        return [*self._find(), *shown, *self._latest(), *counting]

    def page(self, ordering: Ordering, *, merged: bool) -> Pipeline:
        """Return what finds the entries of a page, if ``merged`` with what they are sorted by."""
        needed: Pipeline = [{"$project": {**self.shown, **ordering.needed}}]
        if self.in_order and ordering.is_usual:
            needed = []
        return [
            *self._find(ordering.bounds),
            *needed,
            {"$sort": ordering.sorting},
            *self._entries(ordering, merged=merged),
            {"$limit": self._query.limit + 1},
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

    later = _LATER
    shown = _KEY

    def __init__(
        self, tenant: str, query: SearchQuery, conditions: Sequence[Filter], *, in_order: bool
    ) -> None:
        super().__init__(tenant, query, conditions)
        self.in_order = in_order

    def _find(self, bounds: Sequence[Filter] = (), *, first: bool = False) -> Pipeline:
        only = [{"version": 1}] if first else ()
        return [{"$match": {"$and": [*self._conditions, *bounds, *only]}}]


class _Members(_Source):
    """Finds members by their carriers: an index leads to those of which a member may match.

    No hint is possible within a union. So its filter leaves the planner one index, and the tenant
    is compared at the end: the server moves such a condition as far ahead as it can.
    """

    later = _LATER_OF_MEMBER
    shown: ClassVar[dict[str, Any]] = {**_KEY, "carrier": 1}

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
            {"$replaceWith": _MEMBER},
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
        leading = [one for one in query.criteria if has_member_range(one)]
        times = [one for one in query.criteria if one.name == LAST_UPDATED]
        if query.ids is not None:
            first, leading = self._ids(), []
        elif leading:
            first = {"members": {"$exists": True}}
        else:
            first = {"member_types": member_type(tenant, query.type)}
        known = [condition(one, tenant, query.type) for one in (*leading, *times)]
        return [first, *map(of_member, known)]

    def page(self, ordering: Ordering, *, merged: bool) -> Pipeline:
        """Return what finds the entries of a page, and maybe more."""
        query = self._query
        by_time = query.ids is None and not any(map(has_member_range, query.criteria))
        if not (ordering.is_usual and by_time):
            return super().page(ordering, merged=merged)

        def newest(*since: Filter) -> Pipeline:
            carriers, *members = self._find((*ordering.bounds, *since))
            entries = self._entries(ordering, merged=merged)
            return [carriers, {"$sort": {"updated": -1}}, *members, *entries]

        # Enough entries in the order of their carriers show how far back the page goes. Those of
        # its last moment have not been seen in their order: all are taken that are as new.
        return [
            *newest(),
            {"$limit": query.limit + 1},
            {"$group": {"_id": None, "oldest": {"$min": "$updated"}}},
            {"$lookup": {**_SINCE, "pipeline": newest(_AS_NEW_AS_OLDEST)}},
            {"$unwind": "$entry"},
            {"$replaceWith": "$entry"},
        ]
