"""Patients that match by the newest statement about them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import InvalidSearch
from fhirpub.interactions.indexing.resolution import IDENTIFIERS
from fhirpub.interactions.patients import search as search_module
from fhirpub.interactions.patients.search import place_of, search_patients
from fhirpub.storage.contract import Page, SearchQuery
from fhirpub.storage.criteria import (
    ANYTHING,
    ID,
    LAST_UPDATED,
    NEWEST_FIRST,
    Criterion,
    Either,
    Order,
    TextMatch,
    TimeMatch,
    TokenMatch,
)
from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.interactions.patients.people import (
    DAY,
    EVERYTHING,
    HOSPITAL,
    NATIONAL,
    OTHER,
    START,
    Ward,
    called,
    families,
    id_of,
    may,
    person,
)

QUERY = SearchQuery(type="Patient", order=NEWEST_FIRST, limit=20, count_up_to=0)


def named(beginning: str) -> Criterion:
    return Criterion("name", (TextMatch(beginning),))


def by(system: str, value: str, *, negated: bool = False) -> Criterion:
    return Criterion(IDENTIFIERS, (TokenMatch(system, value),), negated)


def with_id(*ids: str, negated: bool = False) -> Criterion:
    return Criterion(ID, tuple(TokenMatch(None, one) for one in ids), negated)


async def search(
    ward: Ward, *criteria: Any, allowed: Collection[str] = EVERYTHING, **changes: Any
) -> Page:
    query = replace(QUERY, criteria=criteria, **changes)
    return await search_patients(query, may=may(*allowed), **ward.named)


async def found(ward: Ward, *criteria: Any, **changes: Any) -> list[str]:
    return families((await search(ward, *criteria, **changes)).versions)


async def test_a_page_that_is_full_after_a_batch_has_more_behind_it(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "_BATCH", 1)
    for number in range(3):
        await ward.report(f"R-{number}", person((NATIONAL, f"{number}")))

    pages = [await search(ward, limit=limit) for limit in (2, 3)]

    assert [(len(one.versions), one.more) for one in pages] == [(2, True), (3, False)]


async def test_a_patient_of_one_report_is_found_by_its_id_if_all_else_holds(plain: Ward) -> None:
    report = await plain.report("R-1", person(name=called("Ash")))
    ids = frozenset({id_of(report)})

    assert await found(plain, named("ash"), ids=ids) == ["Ash"]
    assert await found(plain, named("birch"), ids=ids) == []


async def a_few(ward: Ward) -> None:
    """Register reports of three persons, the first under two names."""
    await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")))
    await ward.report("R-2", person((NATIONAL, "2"), (HOSPITAL, "x"), name=called("Birch")))
    await ward.vaccination("V-1", person((NATIONAL, "3"), name=called("Cedar")))
    await ward.report("R-4", person((NATIONAL, "1"), name=called("Oak")))


async def test_patients_come_by_their_newest_statements(ward: Ward) -> None:
    await a_few(ward)

    assert await found(ward) == ["Oak", "Cedar", "Birch"]


async def test_an_older_statement_does_not_match(ward: Ward) -> None:
    await a_few(ward)

    assert await found(ward, named("oak")) == ["Oak"]
    assert await found(ward, named("ash")) == []


async def test_patients_are_found_by_what_is_stated(ward: Ward) -> None:
    await a_few(ward)
    await ward.report("R-5", person((NATIONAL, "5"), name=called("Pine"), birthDate="1991-05-05"))
    born = Criterion("birthDate", (TimeMatch(from_=673_400_000_000),))

    assert await found(ward, by(HOSPITAL, "x")) == ["Birch"]
    assert await found(ward, by(NATIONAL, "x")) == []
    assert await found(ward, born) == ["Pine"]
    assert await found(ward, named("birch"), by(HOSPITAL, "x")) == ["Birch"]
    assert await found(ward, named("cedar"), by(HOSPITAL, "x")) == []


async def test_patients_are_found_by_one_of_several_groups(ward: Ward) -> None:
    await a_few(ward)
    either = Either(((named("birch"), by(HOSPITAL, "x")), (named("cedar"),), (named("elm"),)))

    assert await found(ward, either) == ["Cedar", "Birch"]


async def test_a_name_is_found_as_it_was_written(ward: Ward) -> None:
    await a_few(ward)

    exact = [
        Criterion("name:exact", (TokenMatch(text, ""),)) for text in ("family|Oak", "family|oak")
    ]

    assert await found(ward, exact[0]) == ["Oak"]
    assert await found(ward, exact[1]) == []


async def test_an_empty_id_is_that_of_nobody(ward: Ward, plain: Ward) -> None:
    await a_few(ward)
    await plain.report("R-9", person(), day=9)

    assert await found(ward, with_id("")) == []


async def test_patients_without_a_value_are_found(ward: Ward) -> None:
    await a_few(ward)

    assert await found(ward, by(HOSPITAL, "x", negated=True)) == ["Oak", "Cedar"]


async def test_patients_are_found_by_their_ids(ward: Ward, store: SqliteStore) -> None:
    await a_few(ward)
    own = await ward.report("R-7", person(name=called("Yew")))
    ash = ward.tenant.person_id(NATIONAL, "1")

    assert await found(ward, with_id(ash)) == ["Oak"]
    assert await found(ward, with_id(id_of(own), ash)) == ["Yew", "Oak"]
    assert await found(ward, with_id(ash, negated=True)) == ["Yew", "Cedar", "Birch"]
    assert await found(ward, with_id(id_of(own), negated=True)) == ["Oak", "Cedar", "Birch"]
    assert len(await found(ward, Criterion(ID, (ANYTHING,)))) == 4


async def test_patients_are_found_by_a_list_of_ids(ward: Ward) -> None:
    await a_few(ward)
    own = await ward.report("R-7", person(name=called("Yew")))
    report = await ward.report("R-8", person(name=called("Elm")))
    ash = ward.tenant.person_id(NATIONAL, "1")

    assert await found(ward, ids=frozenset({ash})) == ["Oak"]
    assert await found(ward, ids=frozenset({id_of(own)})) == ["Yew"]
    assert await found(ward, ids=frozenset({ash, id_of(own)})) == ["Yew", "Oak"]
    assert await found(ward, named("yew"), ids=frozenset({ash, id_of(own)})) == ["Yew"]
    assert await found(ward, ids=frozenset({report.id})) == []
    assert await found(ward, ids=frozenset()) == []


async def test_a_vaccination_has_the_id_of_its_own_patient(plain: Ward) -> None:
    vaccination = await plain.vaccination("V-1", person(name=called("Ash")))
    await plain.vaccination("V-2", person(name=called("Birch")))

    assert await found(plain, ids=frozenset({id_of(vaccination)})) == ["Ash"]


async def test_patients_of_one_report_are_found_each(plain: Ward) -> None:
    for number, family in enumerate(["Ash", "Birch"]):
        await plain.report(f"R-{number}", person((NATIONAL, "1"), name=called(family)))

    assert await found(plain, by(NATIONAL, "1")) == ["Birch", "Ash"]


async def test_patients_of_another_tenant_are_not_found(ward: Ward) -> None:
    await a_few(ward)
    theirs = Ward(ward.store, *ward.systems, tenant=OTHER)
    await theirs.report("R-1", person((NATIONAL, "1"), name=called("Elm")))

    assert await found(theirs) == ["Elm"]
    assert await found(ward) == ["Oak", "Cedar", "Birch"]


async def test_the_time_is_that_of_the_newest_statement(ward: Ward) -> None:
    await a_few(ward)
    until = Criterion(LAST_UPDATED, (TimeMatch(before=START + 3 * DAY),))
    since = Criterion(LAST_UPDATED, (TimeMatch(from_=START + 3 * DAY),))

    assert await found(ward, until) == ["Birch"]
    assert await found(ward, since) == ["Oak", "Cedar"]


# Who may search what


async def test_patients_of_types_that_must_not_be_searched_are_not_found(ward: Ward) -> None:
    await a_few(ward)

    assert await found(ward, allowed={"DiagnosticReport"}) == ["Oak", "Birch"]
    assert await found(ward, allowed={"Immunization"}) == ["Cedar"]
    assert await found(ward, allowed={"Patient"}) == ["Oak", "Cedar", "Birch"]
    assert await found(ward, allowed=set()) == []


async def test_a_statement_that_must_not_be_searched_hides_older_ones(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")))
    await ward.vaccination("V-1", person((NATIONAL, "1"), name=called("Birch")))

    assert await found(ward, allowed={"DiagnosticReport"}) == []
    assert await found(ward, allowed={"Immunization"}) == ["Birch"]


async def test_the_right_is_that_to_search(ward: Ward) -> None:
    await a_few(ward)
    asked: list[str] = []

    def allowed(right: str, _types: Any) -> bool:
        asked.append(right)
        return True

    await search_patients(QUERY, may=allowed, **ward.named)

    assert {*asked} == {"s"}


# Pages and totals


@pytest.mark.parametrize("count_up_to", [0, 1, 100, None])
@pytest.mark.parametrize("limit", [1, 2, 3, 4])
async def test_pages_lead_to_all_patients(ward: Ward, limit: int, count_up_to: int | None) -> None:
    await a_few(ward)
    page, every = await search(ward, limit=limit, count_up_to=count_up_to), []
    pages = 1
    while page.more:
        assert len(page.versions) == limit
        every += families(page.versions)
        after = place_of(page.versions[-1], NEWEST_FIRST)
        page = await search(ward, limit=limit, count_up_to=count_up_to, after=after)
        pages += 1
    every += families(page.versions)

    assert every == ["Oak", "Cedar", "Birch"]
    assert pages == -(-3 // limit)


@pytest.mark.parametrize(
    ("limit", "count_up_to", "total"),
    [(2, None, 3), (3, None, 3), (0, None, 3), (2, 0, None), (3, 0, None), (2, 10, None)],
)
async def test_a_total_is_given_where_it_is_known(
    ward: Ward, limit: int, count_up_to: int | None, total: int | None
) -> None:
    await a_few(ward)

    assert (await search(ward, limit=limit, count_up_to=count_up_to)).total == total


async def test_a_search_that_ends_on_its_page_is_counted(ward: Ward) -> None:
    await a_few(ward)

    assert (await search(ward, limit=3, count_up_to=10)).total == 3


async def test_a_later_page_has_the_total_only_where_all_are_counted(ward: Ward) -> None:
    await a_few(ward)
    first = await search(ward, limit=2, count_up_to=None)
    after = place_of(first.versions[-1], NEWEST_FIRST)

    counted = await search(ward, limit=2, count_up_to=None, after=after)
    other = await search(ward, limit=2, count_up_to=10, after=after)

    assert (counted.total, other.total) == (3, None)
    assert families(counted.versions) == families(other.versions) == ["Birch"]


async def test_a_page_of_none_has_no_next(ward: Ward) -> None:
    await a_few(ward)

    page = await search(ward, limit=0, count_up_to=None)

    assert (page.versions, page.total, page.more) == ((), 3, False)


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("excluded", [0, 1, 100])
async def test_a_patient_is_found_once_across_batches(
    ward: Ward, monkeypatch: pytest.MonkeyPatch, batch: int, excluded: int
) -> None:
    monkeypatch.setattr(search_module, "_BATCH", batch)
    monkeypatch.setattr(search_module, "_MOST_EXCLUDED", excluded)
    for number in range(4):
        for value, family in (("1", "Ash"), ("2", "Birch")):
            one = person((NATIONAL, value), name=called(f"{family}{number}"))
            await ward.report(f"R-{value}-{number}", one)
    await ward.report("R-9", person(name=called("Yew")))

    page = await search(ward, count_up_to=None)

    assert (families(page.versions), page.total) == (["Yew", "Birch3", "Ash3"], 3)
    assert await found(ward, named("ash0")) == []


@pytest.mark.parametrize("count", [3, 4, 5, 9])
async def test_many_patients_of_a_batch_are_each_looked_at(ward: Ward, count: int) -> None:
    for number in range(count):
        name = called("Ash")
        await ward.report(f"R-{number}", person((NATIONAL, f"{number}"), name=name))
    await ward.report("R-00", person((NATIONAL, "0"), name=called("Birch")))

    assert await found(ward, named("ash")) == ["Ash"] * (count - 1)


@pytest.mark.parametrize(
    "order", [(), (Order(LAST_UPDATED),), (Order("name"),), (Order(ID, descending=True),)]
)
async def test_another_order_is_refused(ward: Ward, order: tuple[Order, ...]) -> None:
    with pytest.raises(InvalidSearch) as refused:
        await search(ward, order=order)

    (issue,) = refused.value.issues
    assert issue.expression == "_sort"
    assert issue.diagnostics == "of patients must be -_lastUpdated, which is the order without it"
    assert issue.details == "parameter-invalid"
