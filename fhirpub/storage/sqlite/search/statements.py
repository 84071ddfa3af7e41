"""How a SQLite store is searched: the statements for a page and for its total.

The rows of `search_value` find candidates, by a token's code, a time's end or a text. What is
stored in a version decides; there the values stand as JSON, in which a quotation mark that follows
a bracket can only be the beginning of a value. See ADR 18.
"""

# ruff: noqa: S608 - statements are put together from names in this file, never from values

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import (
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    Order,
    SortKey,
)
from fhirpub.storage.sqlite.search.conditions import (
    Parameters,
    match_condition,
    match_identified,
    match_one_of,
)
from fhirpub.storage.sqlite.search.sources import Source

_BEST_FIRST = ("version_key", "version_by_value", "version_by_system", "version_by_time")
_LATER = """
    SELECT 1 FROM version AS n INDEXED BY version_key
    WHERE n.id = v.id AND n.version = v.version + 1 AND n.tenant = v.tenant
"""
_SORT_COLUMNS = {ID: "v.id", IDENTIFIER: "v.value", LAST_UPDATED: "v.updated"}


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
