"""Searches that need no index of their own, whatever the engine: for nothing, or for few ids."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import cmp_to_key

from fhirpub.storage.contract import Page, SearchQuery, Version
from fhirpub.storage.criteria import (
    IDENTIFIER,
    Condition,
    Criterion,
    Either,
    SortKey,
    comes_after,
    holds,
    sort_key,
)

FEW = 4
"""So many resources are looked up by their ids, without a search."""


async def lookup_by_ids(
    query: SearchQuery, latest: Callable[[Collection[str]], Awaitable[Sequence[Version | None]]]
) -> Page | None:
    """Return the page of a query that look-ups by id can answer; None: it must be searched for.

    ``latest`` returns the newest version of each id.
    """
    if not all(query.identifiers) or not all(map(_has_choice, query.criteria)):
        return Page((), 0, more=False)  # a choice between no alternatives
    if query.ids is None or len(query.ids) > FEW or query.every_version:
        return None
    found = [
        version for version in await latest(query.ids) if version and version.type == query.type
    ]
    wanted = [
        *(Criterion(IDENTIFIER, identifier) for identifier in query.identifiers),
        *query.criteria,
    ]
    return _page_of(
        [version for version in found if all(holds(one, version) for one in wanted)], query
    )


def _has_choice(condition: Condition) -> bool:
    """Return whether there are alternatives, of which one must hold."""
    if isinstance(condition, Either):
        return bool(condition.groups)
    return bool(condition.any_of) or condition.negated


def _page_of(found: Sequence[Version], query: SearchQuery) -> Page:
    """Return the page of all matches of a query, each in its newest version."""
    keyed = [(sort_key(query.order, version), version) for version in found]
    if query.after is not None:
        after = query.after
        keyed = [item for item in keyed if comes_after(item[0], after, query.order)]

    def compared(one: tuple[SortKey, Version], other: tuple[SortKey, Version]) -> int:
        return 1 if comes_after(one[0], other[0], query.order) else -1

    keyed.sort(key=cmp_to_key(compared))
    shown = tuple(version for _key, version in keyed[: query.limit])
    total = capped_total(len(found), query)
    return Page(shown, total, more=bool(query.limit) and len(keyed) > query.limit)


def capped_total(counted: int, query: SearchQuery) -> int | None:
    """Return the total if it could be counted, at most one match more than the query asks for."""
    most = query.count_up_to
    return counted if most is None or 0 < most >= counted else None
