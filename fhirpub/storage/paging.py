"""The page of a search whose few matches are at hand already, whatever the engine."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.storage.contract import Page, SearchQuery, Version


def page_of(found: Sequence[Version], query: SearchQuery) -> Page:
    """Return the page of all matches of a query, each in its newest version."""
    keyed = sorted((-each.updated, each.id, each) for each in found)
    if query.after is not None:
        start = (-query.after[0], query.after[1])
        keyed = [each for each in keyed if each[:2] > start]
    shown = tuple(each for *_key, each in keyed[: query.limit])
    return Page(shown, len(found), more=bool(query.limit) and len(keyed) > query.limit)
