"""What a walk along the statements about patients asks of a store."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from fhirpub.interactions.indexing.persons import StatementNames, marked
from fhirpub.interactions.patients import statements
from fhirpub.interactions.patients.parts import sources_of_type
from fhirpub.interactions.patients.statements import (
    Asked,
    Source,
    StatementWalk,
    sources_of,
    stating,
)
from fhirpub.storage.contract import Page, SearchQuery
from fhirpub.storage.criteria import ANYTHING, Criterion, encode
from fhirpub.storage.store import Store
from fhirpub.testing.samples import new_id
from tests.unit.interactions.patients.people import NATIONAL, Ward, person
from tests.unit.interactions.patients.test_statements import all_of, ids, walk_of


class NotingStore:
    """A store that notes what it is searched for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.queries: list[SearchQuery] = []

    async def search(self, tenant: str, query: SearchQuery) -> Page:
        self.queries.append(query)
        return await self._store.search(tenant, query)


async def test_each_search_of_a_walk_has_the_time_of_a_search_and_counts_nothing(
    ward: Ward,
) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    noting = NotingStore(ward.store)
    context = replace(ward.context, resources=cast("Store", noting))

    assert await all_of(walk_of(context)) == ids(report)

    seconds = ward.context.config.limits.search_seconds
    assert len(noting.queries) > len([*sources_of(context)])
    assert {(one.max_seconds, one.count_up_to) for one in noting.queries} == {(seconds, 0)}


async def test_no_statement_is_asked_for_beyond_the_number_that_is_taken(ward: Ward) -> None:
    for number in range(3):
        await ward.report(f"R-{number}", person((NATIONAL, f"{number}")))
    noting = NotingStore(ward.store)

    await walk_of(replace(ward.context, resources=cast("Store", noting))).take(2)

    limits = [one.limit for one in noting.queries]
    assert limits == [2, 2, statements._MOST_LATER]


async def test_a_walk_goes_on_behind_what_it_has_read(ward: Ward) -> None:
    reports = [await ward.report(f"R-{n}", person((NATIONAL, f"{n}"))) for n in range(3)]
    noting = NotingStore(ward.store)
    walk = walk_of(replace(ward.context, resources=cast("Store", noting)))
    await walk.take(1)
    noting.queries.clear()

    await walk.take(1)

    after = [one.after for one in noting.queries if one.after is not None]
    assert after == [(reports[2].updated, reports[2].id)]


async def test_a_walk_asks_for_its_own_statements_without_those_that_are_excluded(
    ward: Ward,
) -> None:
    noting = NotingStore(ward.store)
    walk = walk_of(replace(ward.context, resources=cast("Store", noting)))
    known = ward.tenant.person_id(NATIONAL, "1")
    walk.excluded = [known]

    await walk.take(1)

    for query, source in zip(noting.queries, sources_of(ward.context), strict=True):
        assert query.criteria == (
            Criterion(source.names.marker, (ANYTHING,)),
            stating([known], source, negated=True),
        )


async def test_each_part_of_a_type_has_its_own_later_statements(ward: Ward) -> None:
    (subject,) = sources_of_type("DiagnosticReport", ward.context)
    names = StatementNames.of("performer")
    performer = Source("DiagnosticReport", "performer", "performer", names)
    marker = (names.marker, *marked(ward.tenant.person_id(NATIONAL, "9")))
    other = replace(await ward.report("R-1", person((NATIONAL, "1"))), id=new_id())
    await ward.store.add(ward.tenant.id, replace(other, search=encode([marker]), members=()))
    report = await ward.report("R-2", person((NATIONAL, "2")))
    await ward.moved_to(report, NATIONAL, "3")
    asked = [
        Asked(source, (Criterion(source.names.marker, (ANYTHING,)),), frozenset(ids))
        for source, ids in ((subject, {report.id}), (performer, {other.id}))
    ]

    found = await StatementWalk(asked, tenant=ward.tenant, context=ward.context).take(50)

    assert [one.version_id for one in found] == [f"{report.id}.2", f"{other.id}.1"]
