"""What a search needs of the store."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.interactions.execute import search
from fhirpub.storage.contract import Page, SearchQuery
from tests.unit.interactions.patients.people import SYSTEMS, TENANT, context_of
from tests.unit.interactions.searching import REPORT, Given, may


class Asked:
    """A store without anything, and what it was asked."""

    def __init__(self) -> None:
        self.queries: list[SearchQuery] = []

    async def search(self, _tenant: str, query: SearchQuery) -> Page:
        self.queries.append(query)
        return Page((), 0, more=False)


async def query_for(*given: Given) -> SearchQuery:
    store: Any = Asked()
    context = context_of(store, *SYSTEMS)
    await search(
        given,
        resource_type=context.types[REPORT],
        tenant=TENANT,
        context=context,
        strict=True,
        may=may(),
    )
    query: SearchQuery = store.queries[0]
    return query


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ((), {"_lastUpdated"}),
        ((("_sort", "issued,-code"),), {"issued", "code"}),
        ((("_include", "DiagnosticReport:result"),), {"_lastUpdated", "result"}),
        (
            (("_sort", "issued"), ("_include", "DiagnosticReport:result")),
            {"issued", "result"},
        ),
    ],
)
async def test_a_page_needs_the_values_by_which_it_is_sorted_and_followed(
    given: tuple[Given, ...], needed: set[str]
) -> None:
    found = (await query_for(*given)).needed_values

    assert found is not None
    assert {*found} == needed


async def test_the_time_of_a_search_is_that_of_the_settings() -> None:
    query = await query_for()

    assert query.max_seconds == context_of(Asked(), *SYSTEMS).config.limits.search_seconds  # type: ignore[arg-type]
