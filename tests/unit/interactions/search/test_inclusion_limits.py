"""Who may see what a page includes, and how much it includes."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from fhirpub.interactions.search import inclusion
from fhirpub.interactions.search.includes import Include
from fhirpub.interactions.search.inclusion import include
from fhirpub.storage.contract import Page
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from tests.unit.interactions.patients.people import (
    NATIONAL,
    START,
    SYSTEMS,
    Ward,
    context_of,
    person,
)
from tests.unit.interactions.patients.test_statements_searches import NotingStore
from tests.unit.interactions.search.including import (
    OBSERVATION,
    PATIENTS,
    PERFORMERS,
    REPORT,
    REPORTS_OF_RESULTS,
    RESULTS,
    SPECIMEN,
    SPECIMENS,
    a_panel,
    denying,
    included,
    members,
    remarks,
    shown,
    with_included,
)

# Scopes


async def test_what_must_not_be_read_is_not_included(ward: Ward) -> None:
    report = await a_panel(ward)
    may = denying(("r", OBSERVATION))

    _page, found = await with_included(ward, [report], RESULTS, SPECIMENS, may=may)

    assert shown(found) == []
    assert remarks(found) == ["no Observation is included: the access token has no scope for it"]
    (issue,) = found.issues
    assert (issue.severity, issue.details) == ("warning", "include-incomplete")


async def test_what_is_found_back_must_be_searched_and_read(ward: Ward) -> None:
    report = await a_panel(ward)
    one = next(each for each in report.members if each.type == OBSERVATION)

    for letter in "rs":
        may = denying((letter, REPORT))
        assert await included(ward, one, REPORTS_OF_RESULTS, may=may) == []
    assert await included(ward, report, RESULTS, may=denying(("s", OBSERVATION))) == members(
        report
    )


@pytest.mark.parametrize("denied", ["Patient", REPORT])
async def test_a_person_must_be_read_with_what_states_it(ward: Ward, denied: str) -> None:
    report = await a_panel(ward)

    _page, found = await with_included(ward, [report], PATIENTS, may=denying(("r", denied)))

    assert shown(found) == []
    assert remarks(found) == ["no Patient is included: the access token has no scope for it"]


async def test_parts_that_must_not_be_read_are_left_out(plain: Ward) -> None:
    report = await plain.report("R-1", person())
    may = denying(("r", "Patient"))

    _page, found = await with_included(plain, [report], PERFORMERS, PATIENTS, may=may)

    assert found.parts == [(report.parts, frozenset({"organization"}))]
    assert remarks(found) == ["no Patient is included: the access token has no scope for it"]


async def test_types_that_are_denied_are_named_in_order(plain: Ward) -> None:
    report = await a_panel(plain)
    denied = denying(("r", OBSERVATION), ("r", "Organization"), ("r", "Patient"))

    _page, found = await with_included(plain, [report], PERFORMERS, RESULTS, PATIENTS, may=denied)

    assert [text.split()[1] for text in remarks(found)] == [
        "Observation",
        "Organization",
        "Patient",
    ]


# Limits


@pytest.mark.parametrize(
    ("most", "matches", "is_more"), [(2, 1, True), (3, 1, True), (4, 2, False)]
)
async def test_a_page_ends_where_what_it_includes_has_no_room(
    ward: Ward, monkeypatch: pytest.MonkeyPatch, most: int, matches: int, *, is_more: bool
) -> None:
    monkeypatch.setattr(inclusion, "MAX_INCLUDED", most)
    reports = [await a_panel(ward, f"R-{number}") for number in range(2)]

    page, found = await with_included(ward, reports, RESULTS)

    assert (len(page.versions), page.more) == (matches, is_more)
    assert len(found.versions) == 2 * matches
    assert remarks(found) == []


async def test_the_first_match_is_shown_with_as_many_as_there_is_room_for(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inclusion, "MAX_INCLUDED", 1)
    reports = [await a_panel(ward, f"R-{number}") for number in range(2)]

    page, found = await with_included(ward, reports, RESULTS)

    assert page.versions == (reports[0],)
    assert page.more is True
    assert len(found.versions) == 1
    assert len(remarks(found)) == 1


@pytest.mark.parametrize(("most", "is_whole"), [(2, False), (3, True)])
async def test_what_is_missing_beyond_the_last_step_is_remarked(
    ward: Ward, monkeypatch: pytest.MonkeyPatch, most: int, *, is_whole: bool
) -> None:
    monkeypatch.setattr(inclusion, "MAX_INCLUDED", most)
    report = await a_panel(ward)

    _page, found = await with_included(ward, [report], RESULTS, SPECIMENS)

    assert len(found.versions) == most
    assert bool(remarks(found)) is not is_whole


async def test_a_page_ends_where_what_it_includes_is_large(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inclusion, "MAX_PAGE_BYTES", 1)
    monkeypatch.setattr(inclusion, "_FIRST_BATCH", 1)
    reports = [await a_panel(ward, f"R-{number}") for number in range(3)]

    page, found = await with_included(ward, reports, RESULTS)

    assert (page.versions, page.more) == ((reports[0],), True)
    assert shown(found) == members(reports[0])


@pytest.mark.parametrize("include_", [PATIENTS, PERFORMERS])
async def test_persons_and_parts_count_among_what_is_large(
    ward: Ward, monkeypatch: pytest.MonkeyPatch, include_: Include
) -> None:
    monkeypatch.setattr(inclusion, "MAX_PAGE_BYTES", 1)
    monkeypatch.setattr(inclusion, "_FIRST_BATCH", 1)
    reports = [await ward.report(f"R-{n}", person((NATIONAL, f"{n}"))) for n in range(3)]

    page, found = await with_included(ward, reports, include_)

    assert (page.versions, page.more) == ((reports[0],), True)
    assert len(shown(found)) == 1


@pytest.mark.parametrize("count", [4, 5, 20, 21, 90])
async def test_pages_of_all_lengths_are_shown_whole(ward: Ward, count: int) -> None:
    report = await a_panel(ward)
    copies = [replace(report, id=f"{number:08}{report.id[8:]}") for number in range(count)]

    page, found = await with_included(ward, copies, RESULTS)

    assert page == Page(tuple(copies), None, more=False)
    assert shown(found) == members(report)


@pytest.mark.parametrize(("late", "is_complete"), [(-1, True), (0, False)])
async def test_nothing_is_included_once_the_time_is_over(
    store: SqliteStore, late: int, *, is_complete: bool
) -> None:
    ward = Ward(store, *SYSTEMS)
    report = await a_panel(ward)
    context = context_of(store, *SYSTEMS)
    budget = int(context.config.limits.search_seconds * 1_000)
    ticks = iter([START])
    context = replace(context, clock=lambda: next(ticks, START + budget + late))

    page, found = await include(
        Page((report,), None, more=False),
        [RESULTS],
        tenant=ward.tenant,
        context=context,
        may=denying(),
    )

    assert page.versions == (report,)
    assert bool(found.versions) is is_complete
    assert bool(found.issues) is not is_complete


async def test_what_is_looked_for_has_the_time_of_a_search_and_is_not_counted(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inclusion, "MAX_INCLUDED", 5)
    report = await a_panel(ward)
    noting = NotingStore(ward.store)
    context = replace(ward.context, resources=cast("Store", noting))

    await include(
        Page((report,), None, more=False),
        [RESULTS, SPECIMENS],
        tenant=ward.tenant,
        context=context,
        may=denying(),
    )

    seconds = context.config.limits.search_seconds
    assert [(one.type, one.limit) for one in noting.queries] == [(OBSERVATION, 5), (SPECIMEN, 3)]
    assert {(one.max_seconds, one.count_up_to) for one in noting.queries} == {(seconds, 0)}
    assert all(one.has_members for one in noting.queries)
