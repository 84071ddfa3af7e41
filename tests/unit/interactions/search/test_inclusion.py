"""What a page includes beside its matches, how far references are followed, and who may see it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.interactions.patients.read import read_patient
from fhirpub.interactions.search.includes import Include, Included
from fhirpub.storage.contract import Page, Version
from fhirpub.testing.contracts.erasure.content import erase
from fhirpub.testing.samples import successor
from tests.panels import result
from tests.unit.interactions.patients.people import (
    DAY,
    NATIONAL,
    OTHER,
    START,
    Ward,
    called,
    id_of,
    person,
)
from tests.unit.interactions.search.including import (
    MISSING,
    OBSERVATION,
    PATIENTS,
    PERFORMERS,
    REPORT,
    REPORTS_OF_RESULTS,
    RESULTS,
    SPECIMEN,
    SPECIMENS,
    a_panel,
    included,
    members,
    remarks,
    shown,
    with_included,
)


async def chain_of(ward: Ward, length: int) -> Version:
    """Register a report whose only result has a member, which has one, and so on."""
    results = [
        result(
            f"o{number}",
            hasMember=[{"reference": f"Observation/o{number + 1}"}] if number < length else None,
            valueQuantity=None if number < length else {"value": 1, "unit": "g"},
        )
        for number in range(1, length + 1)
    ]
    return await ward.report("R-1", person((NATIONAL, "1")), *results)


async def test_nothing_is_included_in_an_empty_page(ward: Ward) -> None:
    page, found = await with_included(ward, [], RESULTS, more=True)

    assert page == Page((), None, more=True)
    assert found == Included([], [], ())


async def test_what_references_lead_to_is_included(ward: Ward) -> None:
    report = await a_panel(ward)
    await a_panel(ward, "R-2")

    assert await included(ward, report, RESULTS) == members(report)


async def test_nothing_else_is_followed(ward: Ward) -> None:
    report = await a_panel(ward)

    assert await included(ward, report) == []
    assert await included(ward, report, Include(source="Immunization", parameter="patient")) == []
    assert await included(ward, report, replace(RESULTS, target=SPECIMEN)) == []


async def test_a_page_stays_as_it_was_where_all_fits(ward: Ward) -> None:
    reports = [await a_panel(ward, f"R-{number}") for number in range(2)]

    page, _found = await with_included(ward, reports, RESULTS, more=True)

    assert page == Page(tuple(reports), None, more=True)


async def test_the_resources_are_as_they_are_now(ward: Ward) -> None:
    report = await a_panel(ward)
    one = next(each for each in report.members if each.type == OBSERVATION)
    corrected = replace(one, version=2, updated=START + 9 * DAY)
    await ward.store.add(ward.tenant.id, successor(report, members=(corrected,)))

    _page, found = await with_included(ward, [report], RESULTS)

    assert {each.id: each.version for each in found.versions}[one.id] == 2


async def test_results_of_another_tenant_are_not_included(ward: Ward) -> None:
    report = await a_panel(ward)
    theirs = Ward(ward.store, *ward.systems, tenant=OTHER)

    assert await included(theirs, report, RESULTS) == []


async def test_matches_are_not_included_beside_themselves(ward: Ward) -> None:
    report = await a_panel(ward)
    observations = [one for one in report.members if one.type == OBSERVATION]

    _page, found = await with_included(ward, [report, observations[0]], RESULTS)

    assert shown(found) == [f"Observation/{observations[1].id}"]


async def test_each_resource_is_included_once(ward: Ward) -> None:
    report = await a_panel(ward)

    found = await included(ward, report, RESULTS, Include(source=REPORT), SPECIMENS)

    assert len(found) == len({*found})
    assert {*members(report), *members(report, SPECIMEN)} <= {*found}


# Further references


async def test_only_with_iterate_references_of_what_is_included_are_followed(ward: Ward) -> None:
    report = await a_panel(ward)
    once = replace(SPECIMENS, iterate=False)

    assert await included(ward, report, RESULTS, once) == members(report)
    assert await included(ward, report, RESULTS, SPECIMENS) == [
        *members(report),
        *members(report, SPECIMEN),
    ]


@pytest.mark.parametrize(("length", "is_whole"), [(9, True), (10, True), (11, False)])
async def test_references_are_followed_ten_steps_from_a_match(
    ward: Ward, length: int, *, is_whole: bool
) -> None:
    report = await chain_of(ward, length)
    first = next(one for one in report.members if b'"o1"' in one.body)
    # Only the first result: the report refers to all.
    alone = replace(
        report,
        search=b'[["result","%s","Observation"]]' % first.id.encode(),
    )
    deeper = Include(source=OBSERVATION, parameter="has-member", iterate=True)

    _page, found = await with_included(ward, [alone], RESULTS, deeper)

    assert len(found.versions) == min(length, 10)
    assert remarks(found) == ([] if is_whole else [MISSING])


# Back from what is referred to


async def test_what_refers_to_a_match_is_included(ward: Ward) -> None:
    report = await a_panel(ward)
    await a_panel(ward, "R-2")
    one = next(each for each in report.members if each.type == OBSERVATION)

    assert await included(ward, one, REPORTS_OF_RESULTS) == [f"DiagnosticReport/{report.id}"]


async def test_what_refers_back_has_the_type_that_was_asked_for(ward: Ward) -> None:
    report = await a_panel(ward)
    blood = next(each for each in report.members if each.type == SPECIMEN)
    of_patients = replace(REPORTS_OF_RESULTS, target="Patient")
    back = Include(source=OBSERVATION, parameter="specimen", reverse=True)

    assert await included(ward, report.members[0], of_patients) == []
    assert await included(ward, blood, back) == members(report)
    assert await included(ward, blood, REPORTS_OF_RESULTS) == []


async def test_reports_of_a_person_are_included(ward: Ward) -> None:
    reports = [await a_panel(ward, f"R-{number}") for number in range(2)]
    await ward.report("R-9", person((NATIONAL, "2")))
    patient = await read_patient(id_of(reports[0]), **ward.named)
    back = Include(source=REPORT, parameter="patient", reverse=True)

    found = await included(ward, patient, back)

    assert found == sorted(f"DiagnosticReport/{one.id}" for one in reports)


async def test_the_report_of_its_own_patient_is_included(plain: Ward) -> None:
    report = await plain.report("R-1", person())
    await plain.report("R-2", person())
    patient = await read_patient(id_of(report), **plain.named)
    back = Include(source=REPORT, parameter="patient", reverse=True)

    assert await included(plain, patient, back) == [f"DiagnosticReport/{report.id}"]


# Patients and other parts


async def test_a_person_is_included_as_it_was_stated_last(ward: Ward) -> None:
    first = await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")))
    second = await ward.report("R-2", person((NATIONAL, "1"), name=called("Birch")))

    page, found = await with_included(ward, [first, second], PATIENTS)

    assert len(page.versions) == 2
    (one,) = found.versions
    assert (one.type, one.id) == ("Patient", id_of(first))
    assert b"Birch" in one.body
    assert found.parts == []


async def test_a_person_that_nothing_states_any_more_is_not_included(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    await ward.moved_to(report, NATIONAL, "2")

    assert await included(ward, report, PATIENTS) == []


@pytest.mark.parametrize("count", [4, 5, 9])
async def test_many_persons_are_all_included(ward: Ward, count: int) -> None:
    reports = [await ward.report(f"R-{n}", person((NATIONAL, f"{n}"))) for n in range(count)]

    _page, found = await with_included(ward, reports, PATIENTS)

    assert shown(found) == sorted(f"Patient/{id_of(one)}" for one in reports)


async def test_a_patient_of_one_report_is_a_part_of_it(plain: Ward) -> None:
    report = await plain.report("R-1", person())

    _page, found = await with_included(plain, [report], PATIENTS)

    assert found.parts == [(report.parts, frozenset({"patient"}))]
    assert found.versions == []


async def test_parts_of_a_report_are_included_together(plain: Ward) -> None:
    report = await plain.report("R-1", person())

    _page, found = await with_included(plain, [report], PATIENTS, PERFORMERS)

    assert found.parts == [(report.parts, frozenset({"patient", "organization"}))]


async def test_parts_of_a_later_version_are_those_of_the_first(plain: Ward) -> None:
    report = await plain.report("R-1", person())
    later = successor(report)
    await plain.store.add(plain.tenant.id, later)

    _page, found = await with_included(plain, [later], PATIENTS)

    assert found.parts == [(report.parts, frozenset({"patient"}))]


@pytest.mark.parametrize("count", [4, 5, 9])
async def test_parts_of_many_reports_are_all_included(plain: Ward, count: int) -> None:
    reports = [await plain.report(f"R-{number}", person()) for number in range(count)]

    _page, found = await with_included(plain, reports, PATIENTS)

    assert [parts for parts, _names in found.parts] == [one.parts for one in reports]


async def test_parts_of_an_erased_report_are_not_included(plain: Ward) -> None:
    report = await plain.report("R-1", person())
    await erase(plain.store, report)

    assert await included(plain, successor(report), PATIENTS) == []
