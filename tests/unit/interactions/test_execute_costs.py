"""What a search that takes too much work may leave out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import SearchTooCostly
from fhirpub.interactions.execute import search
from fhirpub.storage.contract import Page, SearchQuery
from fhirpub.storage.sqlite.store import SqliteStore
from tests.panels import result
from tests.unit.interactions.patients.people import NATIONAL, Ward, person
from tests.unit.interactions.searching import REPORT, Given, costs, may

COUNTED = "all matches are counted: leave it out"


@pytest.mark.parametrize(
    ("given", "further"),
    [
        ((), []),
        ((("_total", "none"),), []),
        ((("_total", "accurate"),), [("_total", f"{COUNTED}, or send none")]),
        ((("_count", "0"),), [("_count", COUNTED)]),
        ((("_summary", "count"),), [("_summary", COUNTED)]),
        ((("_count", "0"), ("_total", "accurate")), [("_count", COUNTED)]),
        (
            (("_sort", "date"),),
            [("_sort", "all matches are sorted: send fewer names, or leave it out")],
        ),
        ((("_sort", "-_lastUpdated"),), []),
        ((("status", "final"),), []),
        (
            (("status", "final,amended"), ("code", "a,b,c")),
            [("code", "send fewer values")],
        ),
    ],
)
async def test_what_costs_most_is_named(
    store: SqliteStore, given: tuple[Given, ...], further: list[tuple[str, str]]
) -> None:
    (place, rule), *others = await costs(Ward(store), *given)

    assert place == ""
    assert rule.startswith("the search takes more work than one search may: add a condition")
    assert others == further


class CostlyBehindMatches:
    """A store in which the search for matches is quick, and further ones take too much."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def search(self, tenant: str, query: SearchQuery) -> Page:
        if query.type != REPORT:
            raise SearchTooCostly.beyond_budget()
        return await self._store.search(tenant, query)


async def test_what_can_be_narrowed_is_named_where_what_is_included_costs_too_much(
    ward: Ward,
) -> None:
    await ward.report("R-1", person((NATIONAL, "1")), result("a"))
    store: Any = CostlyBehindMatches(ward.store)

    with pytest.raises(SearchTooCostly) as refused:
        await search(
            [("_include", "DiagnosticReport:result"), ("_total", "accurate")],
            resource_type=ward.context.types[REPORT],
            tenant=ward.tenant,
            context=replace(ward.context, resources=store),
            strict=True,
            may=may(),
        )

    assert [issue.expression for issue in refused.value.issues] == ["", "_total"]
