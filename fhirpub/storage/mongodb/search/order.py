"""The order of a search in MongoDB, and the place behind which a page begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import NEWEST_FIRST, Order, SortKey
from fhirpub.storage.mongodb.schema import Filter, Pipeline
from fhirpub.storage.mongodb.search.filters import COLUMNS


@dataclass(frozen=True, slots=True)
class Ordering:
    """How candidates are put in order.

    ``needed`` is what decides the place of a candidate, ``bounds`` are conditions that all behind
    the previous page fulfil, and ``follows`` is whether a candidate is behind it, as a value.
    """

    needed: dict[str, Any]
    sorting: dict[str, int]
    bounds: tuple[Filter, ...] = ()
    follows: dict[str, Any] | None = None

    @property
    def is_usual(self) -> bool:
        """Whether it is the order that indexes have, newest first."""
        return "updated" in self.needed

    @property
    def kept(self) -> dict[str, int]:
        """The fields of a candidate that decide its place."""
        return dict.fromkeys(self.needed, 1)

    def show(self, shown: dict[str, Any]) -> Pipeline:
        """Return what leaves of candidates in order only these fields, and those of the page."""
        if self.follows is None:
            return [{"$project": shown}]
        return [{"$project": {**shown, "follows": self.follows}}, {"$match": {"follows": True}}]


def ordering_of(query: SearchQuery) -> Ordering:
    """Return the order of a query."""
    order, after = query.order, query.after
    if order == NEWEST_FIRST:
        usual = Ordering({"updated": 1}, {"updated": -1, "id": 1})
        if after is None:
            return usual
        bounds: tuple[Filter, ...] = ({"updated": {"$lte": after[0]}},)
        return replace(usual, bounds=bounds, follows=_follows(*after))
    places = {f"place{number}": _place(item) for number, item in enumerate(order)}
    sorting = {}
    for number, item in enumerate(order):
        sorting[f"place{number}.none"] = 1
        sorting[f"place{number}.value"] = -1 if item.descending else 1
    sorting["id"] = 1
    return Ordering(places, sorting, follows=None if after is None else _comes_after(after, order))


def _follows(updated: Any, resource_id: Any) -> dict[str, Any]:
    """Return whether an entry stands behind another, as a value.

    As a condition it would have every candidate fetched, for the sake of those of one moment.
    """
    return {"$or": [{"$lt": ["$updated", updated]}, {"$gt": ["$id", {"$literal": resource_id}]}]}


def _place(order: Order) -> dict[str, Any]:
    """Return where a version stands by one name: whether it has no value, and the extreme one."""
    if order.name in COLUMNS:
        return {"none": {"$literal": 0}, "value": f"${COLUMNS[order.name]}"}
    needed = [{"$eq": ["$$this.name", order.name]}, {"$ne": ["$$this.rest", None]}]
    if order.kind is not None:
        needed.append({"$eq": ["$$this.rest", {"$literal": order.kind}]})
    named = {"$filter": {"input": {"$ifNull": ["$search", []]}, "cond": {"$and": needed}}}
    is_time, start = {"$isNumber": "$$this.key"}, "$$this.rest"
    token = {"$ifNull": ["$$this.key", ""]}
    values = {"$map": {"input": named, "in": {"$cond": [is_time, start, token]}}}
    extreme = {"$max" if order.descending else "$min": values}
    return {"none": {"$cond": [{"$eq": [named, []]}, 1, 0]}, "value": extreme}


def _comes_after(after: SortKey, order: Sequence[Order]) -> dict[str, Any]:
    behind: dict[str, Any] = {"$gt": ["$id", {"$literal": after[-1]}]}
    for number in range(len(order) - 1, -1, -1):
        none, value = f"$place{number}.none", f"$place{number}.value"
        if after[number] is None:
            behind = {"$and": [{"$eq": [none, 1]}, behind]}
            continue
        place = {"$literal": after[number]}
        later = "$lt" if order[number].descending else "$gt"
        same = {"$and": [{"$eq": [value, place]}, behind]}
        behind = {
            "$or": [
                {"$eq": [none, 1]},
                {"$and": [{"$eq": [none, 0]}, {"$or": [{later: [value, place]}, same]}]},
            ]
        }
    return behind
