"""What is asked of a store for a walk along statements: each search has its limits."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from fhirpub.interactions.patients import statements
from fhirpub.interactions.patients.statements import Asked, StatementWalk, sources_of
from fhirpub.storage.contract import Page, SearchQuery
from fhirpub.storage.criteria import ANYTHING, Criterion
from fhirpub.storage.store import Store
from tests.unit.interactions.patients.people import NATIONAL, TENANT, Ward, person


async def test_each_search_of_a_walk_has_the_time_and_the_length_of_a_search(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1")))
    queries: list[SearchQuery] = []

    async def search(tenant: str, query: SearchQuery) -> Page:
        queries.append(query)
        return await ward.store.search(tenant, query)

    resources = cast("Store", SimpleNamespace(search=search))
    asked = [
        Asked(source, (Criterion(source.names.marker, (ANYTHING,)),))
        for source in sources_of(ward.context)
    ]
    context = replace(ward.context, resources=resources)
    await StatementWalk(asked, tenant=TENANT, context=context).take(7)

    seconds = ward.context.config.limits.search_seconds
    assert {(one.max_seconds, one.count_up_to) for one in queries} == {(seconds, 0)}
    assert [one.limit for one in queries] == [7, 7, statements._MOST_LATER]
