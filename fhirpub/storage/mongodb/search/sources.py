"""Where a search of a MongoDB store finds its candidates: versions, and members of versions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import LAST_UPDATED
from fhirpub.storage.mongodb.documents import member_type
from fhirpub.storage.mongodb.schema import BY_SEARCH_VALUE, BY_TIME, Filter, Pipeline
from fhirpub.storage.mongodb.search.filters import (
    COLUMNS,
    compares,
    filter_of,
    has_range,
    is_in_order,
    match_one_of,
    of_member,
)
from fhirpub.storage.mongodb.search.order import Ordering
from fhirpub.storage.mongodb.search.stages import KEY, LATER, LATER_OF_MEMBER, MEMBER, WHOLE
from fhirpub.tenant import is_member_id


class Source(ABC):
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


class Alone(Source):
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


class Members(Source):
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
