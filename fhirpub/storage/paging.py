"""Searches that need no index of their own, whatever the engine: for nothing, or for few ids."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence

from fhirpub.storage.contract import Page, SearchQuery, Version

FEW = 4
"""So many resources are looked up by their ids, without a search."""


async def page_without_search(
    query: SearchQuery, latest: Callable[[Collection[str]], Awaitable[Sequence[Version | None]]]
) -> Page | None:
    """Return the page of a query that look-ups by id can answer; None: it must be searched for.

    ``latest`` returns the newest version of each id.
    """
    if not all(query.identifiers):  # a choice between no alternatives
        return Page((), 0, more=False)
    if query.ids is None or len(query.ids) > FEW or query.identifiers:
        return None
    found = await latest(query.ids)
    return _page_of([each for each in found if each and each.type == query.type], query)


def _page_of(found: Sequence[Version], query: SearchQuery) -> Page:
    """Return the page of all matches of a query, each in its newest version."""
    keyed = sorted((-each.updated, each.id, each) for each in found)
    if query.after is not None:
        start = (-query.after[0], query.after[1])
        keyed = [each for each in keyed if each[:2] > start]
    shown = tuple(each for *_key, each in keyed[: query.limit])
    return Page(shown, len(found), more=bool(query.limit) and len(keyed) > query.limit)
