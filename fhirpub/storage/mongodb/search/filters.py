"""The conditions of a search as filters of MongoDB, over versions as they are stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from fhirpub.storage.criteria import (
    ANYTHING,
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    Condition,
    Criterion,
    Either,
    Match,
    TextMatch,
    TimeMatch,
    TokenMatch,
    field_number,
)
from fhirpub.storage.mongodb.schema import BY_SYSTEM, BY_TIME, BY_VALUE, Filter

COLUMNS = {ID: "id", IDENTIFIER: "value", LAST_UPDATED: "updated"}
"""Fields that every version has, and by which it is sorted."""
_MAX_MERGED = 100
"""So many values are read from an index side by side; the server merges 200 at most."""
_NO_KEY = {"$exists": False}
"""What has no code has no key either, and is in no index."""
_NOTHING: Filter = {"id": {"$in": []}}
_SOME = {"$ne": None}
"""What an element without anything to search by does not have."""


def filter_of(condition: Condition, tenant: str, type_name: str) -> Filter:
    """Return the filter for versions that fulfil a condition."""
    if isinstance(condition, Either):
        groups = [
            {"$and": [filter_of(one, tenant, type_name) for one in group]}
            for group in condition.groups
        ]
        return {"$or": groups} if groups else _NOTHING
    criterion = condition
    either = list(alternatives(criterion, tenant, type_name))
    if criterion.negated:
        return {"$nor": either} if either else {}
    return either[0] if len(either) == 1 else {"$or": either}


def alternatives(criterion: Criterion, tenant: str, type_name: str) -> Iterator[Filter]:
    """Yield the conditions of which one must hold.

    Those on a key contain the field that the index over keys begins with.
    """
    field = field_number(tenant, type_name, criterion.name)
    for alternative in _unprefixed(criterion.name, criterion.any_of):
        wanted = alternative.get("search", {}).get("$elemMatch", {})
        if wanted.get("key", _NO_KEY) != _NO_KEY:
            wanted["field"] = field
        yield alternative


def _unprefixed(name: str, any_of: Sequence[Match]) -> Iterator[Filter]:
    """Yield the conditions of which one must hold; tokens of one form stand in one."""
    values: defaultdict[tuple[str | None, bool], list[str]] = defaultdict(list)
    owners: defaultdict[TokenMatch, list[str]] = defaultdict(list)
    for item in any_of:
        if isinstance(item, TimeMatch):
            yield _at_time(name, item)
        elif isinstance(item, TextMatch):
            yield _text(name, item)
        elif item.of is not None:
            owners[replace(item, of=None)].append(item.of)
        elif item.value is not None:
            values[item.system, bool(item.value)].append(item.value)
    for match, ids in owners.items():
        parts = {"key": match.value, "rest": match.system}
        stored = {field: part for field, part in parts.items() if part is not None}
        yield {**match_one_of("id", ids), **_match_stored(name, stored)}
    for (system, _with_code), texts in values.items():
        yield _token(name, {} if system is None else {"rest": system}, match_one_of("key", texts))
    yield from _without_code(name, any_of)


def _without_code(name: str, any_of: Sequence[Match]) -> Iterator[Filter]:
    if ANYTHING in any_of:
        yield {} if name in COLUMNS else _match_stored(name, {})
    tokens = [item for item in any_of if isinstance(item, TokenMatch) and item.of is None]
    systems = [one.system for one in tokens if one.value is None and one.system is not None]
    if systems:
        yield _token(name, match_one_of("rest", systems))


def _token(name: str, *conditions: Filter) -> Filter:
    wanted = {field: item for condition in conditions for field, item in condition.items()}
    if name == IDENTIFIER:
        fields = {"key": "value", "rest": "system"}
        return {fields[field]: item for field, item in wanted.items()}
    if name == ID:
        of_no_system = wanted.get("rest", "") == "" and "key" in wanted
        return {"id": wanted["key"]} if of_no_system else _NOTHING
    return _match_stored(name, wanted)


def _text(name: str, wanted: TextMatch) -> Filter:
    if wanted.anywhere:
        escaped = (one if one.isalnum() else f"\\x{{{ord(one):x}}}" for one in wanted.beginning)
        key = {"$regex": "".join(escaped)}
    else:
        key = {"$gte": wanted.beginning} | ({} if wanted.end is None else {"$lt": wanted.end})
    return _token(name, {"key": key}, {} if wanted.kind is None else {"rest": wanted.kind})


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


def compares(condition: Condition, *names: str) -> bool:
    """Return whether a criterion is about one of these names."""
    return isinstance(condition, Criterion) and condition.name in names


def may_be_owned(criterion: Condition) -> TypeGuard[Criterion]:
    """Return whether a criterion asks for values of resources whose ids are known."""
    return (
        isinstance(criterion, Criterion)
        and not criterion.negated
        and any(isinstance(item, TokenMatch) and item.of is not None for item in criterion.any_of)
    )


def has_range(criterion: Condition) -> bool:
    """Return whether an index over the values leads to all candidates of a condition."""
    if isinstance(criterion, Either):
        return bool(criterion.groups) and all(any(map(has_range, it)) for it in criterion.groups)
    if criterion.negated or criterion.name in COLUMNS:
        return False
    return all(
        isinstance(item, TextMatch)
        or (
            bool(item.value or item.of)  # what has no code is in no index
            if isinstance(item, TokenMatch)
            else item.after is not None or item.from_ is not None
        )
        for item in criterion.any_of
    )


def is_in_order(criterion: Condition) -> bool:
    """Return whether an index over the values has all candidates of a criterion newest first."""
    return (
        isinstance(criterion, Criterion)
        and has_range(criterion)
        and len(criterion.any_of) <= _MAX_MERGED
        and all(isinstance(item, TokenMatch) and item.of is None for item in criterion.any_of)
    )


def is_range_of_times(criterion: Condition) -> TypeGuard[Criterion]:
    """Return whether an index over the values leads to candidates of some time."""
    return (
        isinstance(criterion, Criterion)
        and has_range(criterion)
        and any(isinstance(item, TimeMatch) for item in criterion.any_of)
    )


def is_without_end(criterion: Condition) -> bool:
    """Return whether a criterion asks for times without an end: most likely the newest of all."""
    return is_range_of_times(criterion) and any(
        isinstance(item, TimeMatch) and item.until is None for item in criterion.any_of
    )


def of_member(filter_: Filter) -> Filter:
    """Return a filter of versions as one of versions with one member, without the tenant.

    Of a version with several, some must fulfil each part: not all parts need the same one.
    """
    found: Filter = {}
    for field, wanted in filter_.items():
        if field.startswith("$"):
            found[field] = [of_member(part) for part in wanted]
        elif field == "updated":
            found[field] = wanted
        elif field != "tenant":
            found[f"members.{field}"] = wanted
    return found


def match_identified(group: Sequence[TokenMatch]) -> dict[str, Filter]:
    """Return what must hold for one of the alternatives to match, by the index that serves it."""
    systems = [token_match.system for token_match in group if token_match.system is not None]
    values = [token_match.value for token_match in group if token_match.value is not None]
    needed: dict[str, Filter] = {}
    if ANYTHING in group:
        return needed
    if len(systems) == len(group):
        needed[BY_SYSTEM] = match_one_of("system", systems)
    if len(values) == len(group):
        needed[BY_VALUE] = match_one_of("value", values)
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
    either = [match_one_of(field, texts) for field, texts in alone.items() if texts]
    either += [{"system": pair, **match_one_of("value", values)} for pair, values in pairs.items()]
    return {"$or": either}


def match_one_of(field: str, texts: Collection[str]) -> Filter:
    """Return a condition; a single text is compared as such, so that the index keeps its order."""
    return {field: next(iter(texts)) if len(texts) == 1 else {"$in": list(texts)}}
