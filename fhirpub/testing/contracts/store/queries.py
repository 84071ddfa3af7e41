"""Searches in short form for the tests of a store."""

from __future__ import annotations

from collections.abc import (
    Sequence,
)
from dataclasses import replace
from typing import Any

from fhirpub.storage.contract import (
    Page,
    SearchQuery,
    Version,
)
from fhirpub.storage.criteria import (
    Condition,
    Criterion,
    Match,
    SearchValue,
    TextMatch,
    TokenMatch,
    encode,
    sort_key,
)
from fhirpub.storage.store import Store
from fhirpub.testing.samples import (
    LAB,
    REPORT,
    a_version,
)


def match(system: str | None = None, value: str | None = None) -> tuple[TokenMatch, ...]:
    """Return a group of identifiers with one alternative; None matches anything."""
    return (TokenMatch(system, value),)


def query(
    *identifiers: tuple[TokenMatch, ...],
    ids: Sequence[str] | None = None,
    after: tuple[int, str] | None = None,
    limit: int = 20,
) -> SearchQuery:
    """Return a query for reports by identifier or id.

    Args:
        *identifiers: Groups of alternatives, of which each must match.
        ids: The ids that can match; None for any.
        after: The time in milliseconds and the id of the last entry of the previous page.
        limit: The maximum number of entries in the page.

    Returns:
        The query, newest first.
    """
    wanted = None if ids is None else frozenset(ids)
    return SearchQuery(type=REPORT, ids=wanted, identifiers=identifiers, after=after, limit=limit)


def found_by(*values: SearchValue, **changes: Any) -> Version:
    """Return version 1 of a new report that has search values.

    Args:
        *values: The search values.
        **changes: Other fields that differ from the sample.

    Returns:
        The version.
    """
    return a_version(search=encode(values), **changes)


def wanting(*criteria: Condition, **changes: Any) -> SearchQuery:
    """Return a query for reports that fulfil criteria.

    Args:
        *criteria: The conditions, all of which must hold.
        **changes: Other fields of the query.

    Returns:
        The query.
    """
    return replace(SearchQuery(type=REPORT, criteria=criteria), **changes)


def has(name: str, *any_of: Match, negated: bool = False) -> Criterion:
    """Return a criterion.

    Args:
        name: The name of the search parameter.
        *any_of: Alternatives, of which one must match.
        negated: Whether none of them may match instead.

    Returns:
        The criterion.
    """
    return Criterion(name, any_of, negated)


def token(value: str | None = None, system: str | None = None) -> TokenMatch:
    """Return one form of a token search; None matches anything."""
    return TokenMatch(system, value)


def text(beginning: str, kind: str | None = None) -> TextMatch:
    """Return what matches texts that begin so; None matches any kind."""
    return TextMatch(beginning, kind)


def part(some: str, kind: str | None = None) -> TextMatch:
    """Return what matches texts that have this anywhere; None matches any kind."""
    return TextMatch(some, kind, anywhere=True)


async def find_ids(store: Store, wanted: SearchQuery, tenant: str = LAB) -> set[str]:
    """Return the ids of all resources that a search finds.

    Raises:
        AssertionError: They are more than one page, or the total is not their number.
    """
    page = await store.search(tenant, wanted)
    assert page.total == len(page.versions)
    assert not page.more
    return {version.id for version in page.versions}


async def all_pages(store: Store, wanted: SearchQuery) -> list[Page]:
    """Return all pages of a search of the tenant ``LAB``, each requested behind the previous one.

    Returns:
        The pages in order, at least one.
    """
    pages = [await store.search(LAB, wanted)]
    while pages[-1].more:
        last = pages[-1].versions[-1]
        place = sort_key(wanted.order, last)
        pages.append(await store.search(LAB, replace(wanted, after=place)))
    return pages
