"""Where the candidates of a search are: rows of values, and the criteria that they serve."""

# ruff: noqa: S608 - statements are put together from names in this file, never from values

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import (
    Condition,
    Either,
    Match,
    TextMatch,
    TimeMatch,
    TokenMatch,
)
from fhirpub.storage.sqlite.entries import fields_of
from fhirpub.storage.sqlite.parameters import json_list
from fhirpub.storage.sqlite.search.conditions import COLUMNS, Parameters, match_one_of
from fhirpub.tenant import is_member_id

_BROUGHT = """
    SELECT iif(m.last >= w.rowid, m.owner, NULL) FROM members AS m
    WHERE m.owner < w.rowid ORDER BY m.owner DESC LIMIT 1
"""
"""The number of the version that a member came with, by the member's own."""
_PARAMETER = re.compile(r":([a-z]\w*)")


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
    fields = fields_of(tenant, query.type)
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
    are_tokens = len(owners) + len(tokens) == len(any_of)
    among = _in_list(values, parameters) if are_tokens else _in_range(any_of, parameters)
    if not among and (len(owners) < len(any_of) or not owners):
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
