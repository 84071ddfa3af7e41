"""How a MongoDB store is searched: one pipeline for a page and its total."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import (
    ANYTHING,
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    NEWEST_FIRST,
    Criterion,
    Order,
    SortKey,
    TimeMatch,
    TokenMatch,
    field_number,
)
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

_BEST_FIRST = (VERSION_KEY, BY_VALUE, BY_SEARCH_VALUE, BY_SYSTEM, BY_TIME)
_COLUMNS = {ID: "id", IDENTIFIER: "value", LAST_UPDATED: "updated"}
"""Fields that every version has, and by which it is sorted."""
_NO_KEY = {"$exists": False}
"""What has no code has no key either, and is in no index."""
_SOME = {"$ne": None}
"""What an element without anything to search by does not have."""
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


def page_and_total(tenant: str, query: SearchQuery) -> tuple[Pipeline, str | None]:
    """Return a pipeline and the index that finds its candidates, None if several do together.

    It gives the id and version of each entry of the page and of one entry more, in their
    order, and then one document with the total, or none if that is 0 or not asked for.
    """
    index, conditions = _conditions(tenant, query)
    latest: Pipeline = [{"$lookup": _LATER}, {"$match": {"later.tenant": {"$ne": tenant}}}]
    if query.every_version:
        latest = []
    by_first = not (query.criteria or query.every_version)
    total = _total(conditions, None if by_first else latest, most=query.count_up_to)
    if not query.limit:
        return total, index
    page: Pipeline = [
        *_in_order(conditions, query, by_index=index not in (None, BY_SEARCH_VALUE)),
        *latest,
        {"$limit": query.limit + 1},
        *(
            [{"$unionWith": {"coll": VERSION, "pipeline": total}}]
            if query.count_up_to != 0
            else ()
        ),
    ]
    return page, index


def _conditions(tenant: str, query: SearchQuery) -> tuple[str | None, list[Filter]]:
    index: str = BY_TIME
    everywhere: Filter = {"tenant": tenant, "type": query.type}
    conditions: list[Filter] = []
    alternatives: list[Filter] = []
    for group in query.identifiers:
        needed = _match_identified(group)
        conditions += needed.values()
        index = min([index, *needed], key=_BEST_FIRST.index)
    if query.ids is not None:
        index = VERSION_KEY
        conditions.append(_match_one_of("id", query.ids))
    for criterion in query.criteria:
        if _may_be_owned(criterion) and index == BY_TIME and not alternatives:
            alternatives += _with_key_prefix(criterion, tenant, query.type)
            continue
        conditions.append(_condition(criterion, tenant, query.type))
        if _has_range(criterion):
            index = min(index, BY_SEARCH_VALUE, key=_BEST_FIRST.index)
    if not alternatives:
        return index, [everywhere, *conditions]
    # Each alternative has an index of its own: so all conditions stand in each.
    return None, [
        {"$or": [{"$and": [everywhere, alternative, *conditions]} for alternative in alternatives]}
    ]


def _total(conditions: Sequence[Filter], latest: Pipeline | None, *, most: int | None) -> Pipeline:
    """Return what counts; identifiers never change, so that each match has one version 1."""
    counting: Pipeline = [] if most is None else [{"$limit": most + 1}]
    counting.append({"$count": "total"})
    if latest is None:
        return [{"$match": {"$and": [*conditions, {"version": 1}]}}, *counting]
    found: Pipeline = [{"$match": {"$and": [*conditions]}}, {"$project": {"_id": 0, **_KEY}}]
    return [*found, *latest, *counting]


def _in_order(conditions: Sequence[Filter], query: SearchQuery, *, by_index: bool) -> Pipeline:
    """Return what finds candidates, and leaves those behind a place in their order.

    ``by_index``: an index may have the usual order already; otherwise only what is needed of
    the candidates is sorted.
    """
    order, after = query.order, query.after
    shown: dict[str, Any] = {"_id": 0, **_KEY}
    if order == NEWEST_FIRST:
        sorting: dict[str, int] = {"updated": -1, "id": 1}
        before: Pipeline = [] if by_index else [{"$project": {"updated": 1, **_KEY}}]
        if after is not None:
            conditions = [*conditions, {"updated": {"$lte": after[0]}}]
            shown["follows"] = _follows(*after)
    else:
        places = {f"place{number}": _place(item) for number, item in enumerate(order)}
        before = [{"$project": {**_KEY, **places}}]
        sorting = {}
        for number, item in enumerate(order):
            sorting[f"place{number}.none"] = 1
            sorting[f"place{number}.value"] = -1 if item.descending else 1
        sorting["id"] = 1
        if after is not None:
            shown["follows"] = _comes_after(after, order)
    return [
        {"$match": {"$and": [*conditions]}},
        *before,
        {"$sort": sorting},
        {"$project": shown},
        *([{"$match": {"follows": True}}] if after is not None else ()),
    ]


def _follows(updated: Any, resource_id: Any) -> dict[str, Any]:
    """Return whether an entry stands behind another, as a value.

    As a condition it would have every candidate fetched, for the sake of those of one moment.
    """
    return {"$or": [{"$lt": ["$updated", updated]}, {"$gt": ["$id", {"$literal": resource_id}]}]}


def _place(order: Order) -> dict[str, Any]:
    """Return where a version stands by one name: whether it has no value, and the extreme one."""
    if order.name in _COLUMNS:
        return {"none": {"$literal": 0}, "value": f"${_COLUMNS[order.name]}"}
    named = {
        "$filter": {
            "input": {"$ifNull": ["$search", []]},
            "cond": {
                "$and": [{"$eq": ["$$this.name", order.name]}, {"$ne": ["$$this.rest", None]}]
            },
        }
    }
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


def _condition(criterion: Criterion, tenant: str, type_name: str) -> Filter:
    either = list(_with_key_prefix(criterion, tenant, type_name))
    if criterion.negated:
        return {"$nor": either} if either else {}
    return either[0] if len(either) == 1 else {"$or": either}


def _with_key_prefix(criterion: Criterion, tenant: str, type_name: str) -> Iterator[Filter]:
    """Return the alternatives, those with a key with what the index over keys begins with."""
    field = field_number(tenant, type_name, criterion.name)
    for alternative in _alternatives(criterion.name, criterion.any_of):
        wanted = alternative.get("search", {}).get("$elemMatch", {})
        if wanted.get("key", _NO_KEY) != _NO_KEY:
            wanted["field"] = field
        yield alternative


def _alternatives(name: str, any_of: Sequence[TokenMatch | TimeMatch]) -> Iterator[Filter]:
    """Return the conditions of which one must hold; tokens of one form stand in one."""
    values: defaultdict[tuple[str | None, bool], list[str]] = defaultdict(list)
    owners: defaultdict[TokenMatch, list[str]] = defaultdict(list)
    for item in any_of:
        if isinstance(item, TimeMatch):
            yield _at_time(name, item)
        elif item.of is not None:
            owners[replace(item, of=None)].append(item.of)
        elif item.value is not None:
            values[item.system, bool(item.value)].append(item.value)
    for match, ids in owners.items():
        parts = {"key": match.value, "rest": match.system}
        stored = {field: part for field, part in parts.items() if part is not None}
        yield {**_match_one_of("id", ids), **_match_stored(name, stored)}
    for (system, _with_code), texts in values.items():
        yield _token(name, {} if system is None else {"rest": system}, _match_one_of("key", texts))
    yield from _without_code(name, any_of)


def _without_code(name: str, any_of: Sequence[TokenMatch | TimeMatch]) -> Iterator[Filter]:
    if ANYTHING in any_of:
        yield {} if name in _COLUMNS else _match_stored(name, {})
    tokens = [item for item in any_of if isinstance(item, TokenMatch) and item.of is None]
    systems = [one.system for one in tokens if one.value is None and one.system is not None]
    if systems:
        yield _token(name, _match_one_of("rest", systems))


def _token(name: str, *conditions: Filter) -> Filter:
    wanted = {field: item for condition in conditions for field, item in condition.items()}
    if name == IDENTIFIER:
        fields = {"key": "value", "rest": "system"}
        return {fields[field]: item for field, item in wanted.items()}
    if name == ID:
        of_no_system = wanted.get("rest", "") == "" and "key" in wanted
        return {"id": wanted["key"]} if of_no_system else {"id": {"$in": []}}
    return _match_stored(name, wanted)


def _at_time(name: str, wanted: TimeMatch) -> Filter:
    start = {"$gte": wanted.from_, "$lt": wanted.before}
    # What starts then ends later, which the index knows.
    after = [number for number in (wanted.after, wanted.from_) if number is not None]
    end = {"$gt": max(after, default=None), "$lte": wanted.until}
    if name == LAST_UPDATED:
        ended = {"$gt": "$gte", "$lte": "$lt"}  # a moment ends a millisecond later
        bounds = [start, {ended[compared]: number for compared, number in end.items()}]
        return {
            "$and": [{"updated": _known_bounds(bound)} for bound in bounds if _known_bounds(bound)]
            or [{}]
        }
    fields = {"rest": _known_bounds(start) or _SOME, "key": _known_bounds(end)}
    return _match_stored(name, {field: document for field, document in fields.items() if document})


def _known_bounds(bounds: Mapping[str, int | None]) -> dict[str, int]:
    return {compared: bound for compared, bound in bounds.items() if bound is not None}


def _match_stored(name: str, wanted: Filter) -> Filter:
    """Return the condition that one of the values under a name is as wanted."""
    known = {"rest": _SOME, **wanted, "key": _NO_KEY} if wanted.get("key") == "" else wanted
    return {"search": {"$elemMatch": {"name": name, **known}}}


def _may_be_owned(criterion: Criterion) -> bool:
    return not criterion.negated and any(
        isinstance(item, TokenMatch) and item.of is not None for item in criterion.any_of
    )


def _has_range(criterion: Criterion) -> bool:
    """Return whether an index over the values leads to all candidates of a criterion."""
    if criterion.negated or criterion.name in _COLUMNS:
        return False
    return all(
        item.value is not None
        if isinstance(item, TokenMatch)
        else item.after is not None or item.from_ is not None
        for item in criterion.any_of
    )


def _match_identified(group: Sequence[TokenMatch]) -> dict[str, Filter]:
    """Return what must hold for one of the alternatives to match, by the index that serves it."""
    systems = [token_match.system for token_match in group if token_match.system is not None]
    values = [token_match.value for token_match in group if token_match.value is not None]
    needed: dict[str, Filter] = {}
    if ANYTHING in group:
        return needed
    if len(systems) == len(group):
        needed[BY_SYSTEM] = _match_one_of("system", systems)
    if len(values) == len(group):
        needed[BY_VALUE] = _match_one_of("value", values)
    if systems and values and len(group) > 1:
        needed[BY_TIME] = _match_mixed(group)
    return needed


def _match_mixed(group: Sequence[TokenMatch]) -> Filter:
    """Return the condition for alternatives of several forms, or of several pairs."""
    alone: dict[str, list[str]] = {"system": [], "value": []}
    pairs: defaultdict[str, list[str]] = defaultdict(list)
    for token_match in group:
        if token_match.system is not None and token_match.value is not None:
            pairs[token_match.system].append(token_match.value)
        elif token_match.system is not None:
            alone["system"].append(token_match.system)
        elif token_match.value is not None:
            alone["value"].append(token_match.value)
    either = [_match_one_of(field, texts) for field, texts in alone.items() if texts]
    either += [
        {"system": pair, **_match_one_of("value", values)} for pair, values in pairs.items()
    ]
    return {"$or": either}


def _match_one_of(field: str, texts: Collection[str]) -> Filter:
    """Return a condition; a single text is compared as such, so that the index keeps its order."""
    return {field: next(iter(texts)) if len(texts) == 1 else {"$in": list(texts)}}
