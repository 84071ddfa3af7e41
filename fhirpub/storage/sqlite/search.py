"""How a SQLite store is searched: the statements for a page and for its total.

The rows of `search_value` find candidates, by a token's code, a time's end or a text. What is
stored in a version decides; there the values stand as JSON, in which a quotation mark that follows
a bracket can only be the beginning of a value. See ADR 18.
"""

# ruff: noqa: S608 - statements are put together from names in this file, never from values

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import orjson

from fhirpub.storage.contract import SearchQuery, Version
from fhirpub.storage.criteria import (
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    Condition,
    Either,
    Match,
    Order,
    SortKey,
    TextMatch,
    TimeMatch,
    TokenMatch,
    field_number,
)
from fhirpub.storage.sqlite.parameters import json_list
from fhirpub.storage.sqlite.search_conditions import (
    COLUMNS,
    Parameters,
    match_condition,
    match_identified,
    match_one_of,
)
from fhirpub.tenant import is_member_id

_BEST_FIRST = ("version_key", "version_by_value", "version_by_system", "version_by_time")
FIRST_COUNT = 1_000
COUNTS = (FIRST_COUNT, 10_000, 100_000)
"""The numbers up to which candidates are counted, one after another, to find the best source."""
_LATER = """
    SELECT 1 FROM version AS n INDEXED BY version_key
    WHERE n.id = v.id AND n.version = v.version + 1 AND n.tenant = v.tenant
"""
_BROUGHT = """
    SELECT iif(m.last >= w.rowid, m.owner, NULL) FROM members AS m
    WHERE m.owner < w.rowid ORDER BY m.owner DESC LIMIT 1
"""
"""The number of the version that a member came with, by the member's own."""
_MAX_FIELDS = 2_000
_PARAMETER = re.compile(r":([a-z]\w*)")
Entry = tuple[int, str | int]
"""A field, and one of the values that a version has in it."""
_SORT_COLUMNS = {ID: "v.id", IDENTIFIER: "v.value", LAST_UPDATED: "v.updated"}


def index_entries(tenant: str, version: Version) -> list[Entry]:
    """Return what a version is to be found by, but for its members: they lead to it."""
    fields = _fields_of(tenant, version.type)
    values = orjson.loads(version.search)
    if version.members:
        own = {each.id: each.type for each in version.members if is_member_id(each.id)}
        values = [value for value in values if own.get(value[1]) != (value[2] or "")]
    return [
        (fields[name], second if type(first) is int else first)
        for name, first, second in values
        if (first or first == 0) and second is not None
    ]


class _Fields(dict[str, int]):
    """The numbers of the names of a tenant's type, each found when it is first asked for."""

    def __init__(self, tenant: str, type_name: str) -> None:
        super().__init__()
        self._of = tenant, type_name

    def __missing__(self, name: str) -> int:
        number = field_number(*self._of, name)
        if len(self) < _MAX_FIELDS:  # units and codes of composites are parts of names
            self[name] = number
        return number


_fields_of = lru_cache(maxsize=1024)(_Fields)


@dataclass(frozen=True, slots=True)
class Source:
    """Where all candidates of a criterion are: a query for their numbers.

    ``condition`` is set if they are the rows of `search_value` for one value, which stand in
    the order of ``updated``, each version once. ``range`` is set if they are such rows for many
    values, in no order.
    """

    numbers: str
    parameters: Parameters
    condition: str = ""
    newest: bool = False
    """Whether they are most likely the newest of all: times without an end."""
    range: str = ""

    def count(self, most: int) -> str:
        """Return the statement that counts them, up to a limit: enough to compare."""
        return f"SELECT count(*) FROM ({self.numbers} LIMIT {most})"

    def time_of(self, place: int) -> str:
        """Return the statement for the time of a candidate, counted from the newest one."""
        return (
            f"SELECT s.updated FROM search_value AS s WHERE {self.range} "
            f"ORDER BY s.updated DESC LIMIT 1 OFFSET {place}"
        )

    def since(self, updated: int) -> Source:
        """Return the source of the candidates that are as new as this, or newer."""
        parameters = {**self.parameters, "since": updated}
        return replace(
            self, numbers=f"{self.numbers} AND s.updated >= :since", parameters=parameters
        )

    def until(self, updated: int) -> Source:
        """Return the source of the candidates that are no newer than this."""
        older = " AND s.updated <= :before"
        return replace(
            self,
            numbers=self.numbers + older,
            range=self.range + older,
            parameters={**self.parameters, "before": updated},
        )


def sources_of(tenant: str, query: SearchQuery) -> list[Source]:
    """Return the sources that a query offers, none if it is better answered without."""
    by_value = any(all(match.value is not None for match in group) for group in query.identifiers)
    if query.ids is not None or by_value:
        return []
    fields = _fields_of(tenant, query.type)
    return [source for one in query.criteria for source in _sources_of(one, fields)]


def _sources_of(condition: Condition, fields: Mapping[str, int]) -> Iterator[Source]:
    if isinstance(condition, Either):
        groups = [
            [source for one in group for source in _sources_of(one, fields)]
            for group in condition.groups
        ]
        if groups and all(groups):
            yield _unite([first for first, *_ in groups])
    elif not condition.negated and condition.name not in COLUMNS:
        field = fields[condition.name]
        texts = [item for item in condition.any_of if isinstance(item, TextMatch)]
        if not texts:
            yield from _sources_in(field, condition.any_of)
        elif len(texts) == len(condition.any_of):
            yield _source_of_texts(field, texts)


def _unite(sources: Sequence[Source]) -> Source:
    """Return the candidates of any of several sources, whose parameters are kept apart."""
    if len(sources) == 1:
        return sources[0]
    numbers: list[str] = []
    parameters: Parameters = {}
    for place, source in enumerate(sources):
        numbers.append(_PARAMETER.sub(rf":u{place}_\1", source.numbers))
        parameters |= {f"u{place}_{name}": item for name, item in source.parameters.items()}
    newest = any(source.newest for source in sources)
    return Source(" UNION ALL ".join(numbers), parameters, newest=newest)


def _source_of_texts(field: int, texts: Sequence[TextMatch]) -> Source:
    """Return the texts that begin in one of these ways; a blob stands behind all texts.

    What texts may have anywhere is sought in all of them.
    """
    if any(text.anywhere for text in texts):
        among = """
            SELECT s.number FROM search_value AS s WHERE s.field = :field
            AND EXISTS (SELECT 1 FROM json_each(:parts) AS p WHERE instr(s.value, p.value) > 0)
        """
        return Source(among, {"field": field, "parts": json_list([t.beginning for t in texts])})
    ranges = [(text.beginning, text.end) for text in texts]
    numbers = """
        SELECT s.number FROM json_each(:ranges) AS r CROSS JOIN search_value AS s
        WHERE s.field = :field AND s.value >= json_extract(r.value, '$[0]')
        AND s.value < ifnull(json_extract(r.value, '$[1]'), x'')
    """
    return Source(numbers, {"field": field, "ranges": json.dumps(ranges, ensure_ascii=False)})


def _sources_in(field: int, any_of: Sequence[Match]) -> Iterator[Source]:
    parameters: Parameters = {"field": field}
    owners = [item.of for item in any_of if isinstance(item, TokenMatch) and item.of is not None]
    tokens = [item for item in any_of if isinstance(item, TokenMatch) and item.of is None]
    values = [token.value for token in tokens]
    among = _in_list(values, parameters) or _in_range(any_of, parameters)
    if not among and (values or not owners):
        return
    condition = f"s.field = :field AND {among}"
    numbers = [f"SELECT s.number FROM search_value AS s WHERE {condition}"] if among else []
    if owners:
        owned = match_one_of("w.id", owners, "owners", parameters)
        numbers.append(f"SELECT w.rowid FROM version AS w INDEXED BY version_key WHERE {owned}")
    members = [value for value in values if value and is_member_id(value)]
    if members:
        wanted = match_one_of("w.id", members, "members", parameters)
        numbers.append(
            f"SELECT ({_BROUGHT}) FROM version AS w INDEXED BY version_key WHERE {wanted}"
        )
    is_indexed = bool(among) and not owners and not members
    one, many = (condition, "") if len(values) == 1 else ("", condition)
    newest = "after" in parameters and "until" not in parameters
    yield Source(
        " UNION ALL ".join(numbers),
        parameters,
        one if is_indexed else "",
        newest,
        many if is_indexed else "",
    )


def _in_list(values: Sequence[str | None], parameters: Parameters) -> str:
    texts = [value for value in values if value]
    if not texts or len(texts) < len(values):
        return ""
    if len(texts) == 1:
        parameters["sought"] = texts[0]
        return "s.value = :sought"
    parameters["sought"] = json_list(texts)
    return "s.value IN (SELECT value FROM json_each(:sought))"


def _in_range(any_of: Sequence[Match], parameters: Parameters) -> str:
    """Return a range for the ends of times, or nothing if it has no beginning."""
    times = [item for item in any_of if isinstance(item, TimeMatch)]
    lowest = [
        time_match.after if time_match.from_ is None else time_match.from_ for time_match in times
    ]
    known = [number for number in lowest if number is not None]
    if not known or len(known) < len(any_of):
        return ""
    parameters["after"] = min(known)
    highest = [time_match.until for time_match in times if time_match.until is not None]
    if len(highest) < len(times):
        return "s.value > :after"
    parameters["until"] = max(highest)
    return "s.value > :after AND s.value <= :until"


@dataclass(frozen=True, slots=True)
class SearchStatements:
    """The statement for a page and one entry more, that for the total, and their parameters."""

    page: str
    total: str
    parameters: Parameters


def search_statements(
    tenant: str, query: SearchQuery, source: Source | None = None, *, has_reuse: bool = False
) -> SearchStatements:
    """Return what to ask for a search. ``has_reuse``: some were registered again (ADR 36).

    Each statement names the index that finds its candidates, since SQLite has no statistics
    here to choose by; the conditions that the index does not cover sort out some of them.
    """
    parameters: Parameters = {"tenant": tenant, "type": query.type}
    index, conditions = _conditions(query, parameters)
    table = f"version AS v INDEXED BY {index}"
    if source is not None:
        parameters |= source.parameters
        table = _through(source, conditions)
    found = f"FROM {table} WHERE {' AND '.join(conditions)}"
    latest = "1" if query.every_version else f"NOT EXISTS ({_LATER})"
    # Identifiers never change, so that each match has one version 1.
    by_first = not (query.criteria or query.every_version or has_reuse)
    matches = f"SELECT 1 {found} AND {'v.version = 1' if by_first else latest}"
    parameters["counted"] = -1 if query.count_up_to is None else query.count_up_to + 1
    total = f"SELECT count(*) FROM ({matches} LIMIT :counted)"
    updated = "s.updated" if source and source.condition else "v.updated"
    order = _Order(query.order, updated=updated)
    parameters |= order.parameters
    if query.after is not None:
        found += f" AND {order.after(query.after, parameters)}"
    page = f"SELECT v.rowid {found} AND {latest} ORDER BY {order.terms} LIMIT {query.limit + 1}"
    return SearchStatements(page, total, parameters)


def _conditions(query: SearchQuery, parameters: Parameters) -> tuple[str, list[str]]:
    """Return the index that finds candidates, and what must hold of them."""
    index, conditions = "version_by_time", ["v.tenant = :tenant", "v.type = :type"]
    for number, group in enumerate(query.identifiers):
        needed = match_identified(group, str(number), parameters)
        conditions += needed.values()
        index = min([index, *needed], key=_BEST_FIRST.index)
    if query.ids is not None:
        index = "version_key"
        conditions.append(match_one_of("v.id", query.ids, "ids", parameters))
    for number, criterion in enumerate(query.criteria):
        conditions.append(match_condition(criterion, f"c{number}", parameters))
    return index, conditions


def _through(source: Source, conditions: list[str]) -> str:
    if source.condition:
        conditions += ["v.rowid = s.number", source.condition]
        return "search_value AS s CROSS JOIN version AS v NOT INDEXED"
    conditions.append(f"v.rowid IN ({source.numbers})")
    return "version AS v NOT INDEXED"


class _Order:
    """The order of a page as SQL: its terms, and what comes after a place in it."""

    def __init__(self, order: Sequence[Order], *, updated: str) -> None:
        self.parameters: Parameters = {}
        self._keys = [(self._key(item, updated), item) for item in order] + [("v.id", Order(ID))]

    def _key(self, order: Order, updated: str) -> str:
        if order.name == LAST_UPDATED:
            return updated
        if order.name in _SORT_COLUMNS:
            return _SORT_COLUMNS[order.name]
        name = f"order{len(self.parameters)}"
        self.parameters[name] = order.name
        of_kind = ""
        if order.kind is not None:
            self.parameters[f"{name}kind"] = order.kind
            of_kind = f" AND json_extract(o.value, '$[2]') = :{name}kind"
        extreme = "max" if order.descending else "min"
        return (
            f"(SELECT {extreme}(json_extract(o.value, '$[1]')) FROM json_each(v.search) AS o "
            f"WHERE json_extract(o.value, '$[0]') = :{name}{of_kind})"
        )

    @property
    def terms(self) -> str:
        """What stands behind ORDER BY."""
        return ", ".join(
            key
            + (" DESC" if order.descending else "")
            + ("" if self._always(order) else " NULLS LAST")
            for key, order in self._keys
        )

    @staticmethod
    def _always(order: Order) -> bool:
        return order.name in _SORT_COLUMNS

    def after(self, place: SortKey, parameters: Parameters) -> str:
        """Return the condition for what comes after a place; sets its parameters."""
        condition = "0"
        for number in range(len(place) - 1, -1, -1):
            (key, each), value = self._keys[number], place[number]
            if value is None:
                condition = f"({key} IS NULL AND {condition})"
                continue
            name, later = f"after{number}", "<" if each.descending else ">"
            parameters[name] = value
            further = f"{key} {later}= :{name} AND ({key} {later} :{name} OR {condition})"
            condition = f"({further})" if self._always(each) else f"({key} IS NULL OR {further})"
        return condition
