"""Every identifier that several Patients of a tenant have, each reported once."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from fhirpub.interactions.patients import all_conflicts
from fhirpub.interactions.patients.all_conflicts import Conflict, ConflictSearch
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import successor
from tests.unit.interactions.patients.people import (
    HOSPITAL,
    NATIONAL,
    OTHER,
    SYSTEMS,
    Ward,
    id_of,
    person,
)


def search_of(ward: Ward, after: tuple[str, int] = ("", 0)) -> ConflictSearch:
    return ConflictSearch(store=ward.store, after=after, **ward.named)


async def found_by(search: ConflictSearch, max_read: int = 1_000) -> list[Conflict]:
    return [one async for one in search.conflicts(max_read=max_read)]


async def found(ward: Ward) -> list[tuple[str, str, set[str]]]:
    every = await found_by(search_of(ward))
    return sorted((one.system, one.value, {*one.patients}) for one in every)


async def two_with(ward: Ward, value: str) -> set[str]:
    """Register reports of two persons with one number of the hospital; return their addresses."""
    both = [
        await ward.report(f"{value}-{n}", person((NATIONAL, f"{value}-{n}"), (HOSPITAL, value)))
        for n in range(2)
    ]
    return {f"Patient/{id_of(one)}" for one in both}


async def test_there_are_none_in_an_empty_store(ward: Ward) -> None:
    search = search_of(ward)

    assert await found_by(search) == []
    assert (search.is_more, search.read, search.after) == (False, 0, ("", 0))


async def test_persons_apart_are_no_conflict(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))
    await ward.report("R-2", person((NATIONAL, "1"), (HOSPITAL, "x")))
    await ward.report("R-3", person((NATIONAL, "2"), (HOSPITAL, "y")))
    await ward.report("R-4", person())

    assert await found(ward) == []


async def test_each_conflict_is_found_once(ward: Ward) -> None:
    first, second = await two_with(ward, "x"), await two_with(ward, "y")

    assert await found(ward) == [(HOSPITAL, "x", first), (HOSPITAL, "y", second)]


async def test_a_report_under_the_number_of_the_hospital_alone_is_in_conflict(ward: Ward) -> None:
    one = await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))
    other = await ward.vaccination("V-1", person((HOSPITAL, "x")))

    both = {f"Patient/{id_of(each)}" for each in (one, other)}
    assert await found(ward) == [(HOSPITAL, "x", both)]


async def test_all_identifiers_of_a_report_are_looked_up(ward: Ward) -> None:
    one = await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x"), (HOSPITAL, "y")))
    other = await ward.report("R-2", person((NATIONAL, "2"), (HOSPITAL, "x"), (HOSPITAL, "y")))

    both = {f"Patient/{id_of(each)}" for each in (one, other)}
    assert await found(ward) == [(HOSPITAL, "x", both), (HOSPITAL, "y", both)]


async def test_patients_of_another_tenant_are_no_conflict(ward: Ward) -> None:
    theirs = Ward(ward.store, *ward.systems, tenant=OTHER)
    await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))
    await theirs.report("R-1", person((NATIONAL, "2"), (HOSPITAL, "x")))
    of_them = await two_with(theirs, "y")

    assert await found(ward) == []
    assert await found(theirs) == [(HOSPITAL, "y", of_them)]


async def test_statements_from_before_a_system_was_declared_are_of_their_person(
    store: SqliteStore,
) -> None:
    before = await Ward(store).report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))
    ward = Ward(store, *SYSTEMS)
    doubtful = all_conflicts._doubtful(before, ward.tenant, ward.context)

    assert [*doubtful] == [(HOSPITAL, "x")]


async def test_a_statement_that_shows_no_person_leads_elsewhere_by_each_identifier(
    ward: Ward,
) -> None:
    report = await ward.report("R-1", person((NATIONAL, "2"), (NATIONAL, "1")))

    doubtful = all_conflicts._doubtful(report, ward.tenant, ward.context)

    assert [*doubtful] == [(NATIONAL, "1"), (NATIONAL, "2")]


async def test_a_report_without_parts_is_passed_over(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    await ward.store.add(ward.tenant.id, successor(report, search=b"[]"))
    await two_with(ward, "x")

    assert len(await found(ward)) == 1


# Pages


@pytest.fixture
def _short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_conflicts, "_PAGE", 2)


@pytest.mark.usefixtures("_short_pages")
async def test_a_conflict_is_found_behind_several_pages(ward: Ward) -> None:
    for number in range(5):
        await ward.report(f"R-{number}", person((NATIONAL, f"{number}")))
    both = await two_with(ward, "x")
    search = search_of(ward)

    (conflict,) = await found_by(search)

    assert {*conflict.patients} == both
    assert (search.read, search.is_more) == (7, False)


@pytest.mark.usefixtures("_short_pages")
async def test_a_search_ends_with_the_page_that_reaches_its_number(ward: Ward) -> None:
    for number in range(6):
        await ward.report(f"R-{number}", person((NATIONAL, f"{number}")))
    search = search_of(ward)

    await found_by(search, 3)

    assert (search.read, search.is_more) == (4, True)


@pytest.mark.usefixtures("_short_pages")
async def test_a_search_that_has_read_its_number_reads_no_more(ward: Ward) -> None:
    for number in range(4):
        await ward.report(f"R-{number}", person((NATIONAL, f"{number}")))
    search = search_of(ward)

    await found_by(search, 2)
    await found_by(search, 2)

    assert search.read == 2


@pytest.mark.usefixtures("_short_pages")
async def test_a_search_goes_on_where_another_ended(ward: Ward) -> None:
    reports = [
        await ward.report(f"R-{number}", person((NATIONAL, f"{number}"))) for number in range(5)
    ]
    last = max(one.id for one in reports)
    search = search_of(ward)
    await found_by(search, 4)

    following = search_of(ward, search.after)
    await found_by(following)

    assert (following.read, following.after) == (1, (last, 1))


@pytest.mark.usefixtures("_short_pages")
async def test_a_search_stops_after_many_conflicts(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_conflicts, "MAX_CONFLICTS", 1)
    for value in ("x", "y", "z"):
        await two_with(ward, value)
    search = search_of(ward)

    first = await found_by(search)

    assert 1 <= len(first) <= 2
    assert (search.is_more, search.read < 6) == (True, True)
    every = [*first, *await found_by(search), *await found_by(search), *await found_by(search)]
    assert sorted(one.value for one in every) == ["x", "y", "z"]


async def test_what_was_looked_up_recently_is_not_reported_again(ward: Ward) -> None:
    await two_with(ward, "x")
    search = search_of(ward)
    assert len(await found_by(search)) == 1
    search.after, search.read = ("", 0), 0

    assert await found_by(search) == []


async def test_no_conflict_is_reported_twice_once_it_is_forgotten(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_conflicts, "_REMEMBERED", 1)
    for n in range(3):
        await ward.report(f"R-{n}", person((NATIONAL, f"{n}"), (HOSPITAL, "x"), (HOSPITAL, "y")))

    assert sorted(one.value for one in await found_by(search_of(ward))) == ["x", "y"]


async def test_what_was_looked_up_longest_ago_is_forgotten_first(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_conflicts, "_REMEMBERED", 2)
    for n in range(2):
        every = [(HOSPITAL, value) for value in "xyz"]
        await ward.report(f"R-{n}", person((NATIONAL, f"{n}"), *every))
    search = search_of(ward)

    first = [await search._look_up((HOSPITAL, value)) for value in "xyz"]
    again = [await search._look_up((HOSPITAL, value)) for value in "yzx"]

    assert [one.value for one in first if one] == ["x", "y", "z"]
    assert [one.value for one in again if one] == ["x"]


async def test_a_search_that_is_left_within_a_page_goes_on_before_it(ward: Ward) -> None:
    await two_with(ward, "x")
    search = search_of(ward)

    async with aclosing(search.conflicts(max_read=1_000)) as conflicts:
        assert (await anext(conflicts)).value == "x"

    assert (search.after, search.read) == (("", 0), 0)
    assert [one.value for one in await found_by(search_of(ward, search.after))] == ["x"]
