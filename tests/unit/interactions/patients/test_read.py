"""The newest statement about a patient, or a certain one."""

from __future__ import annotations

import json

import pytest

from fhirpub.errors import NoSuchResource
from fhirpub.interactions.patients.read import read_patient, vread_patient
from fhirpub.storage.contract import Version
from fhirpub.testing.samples import new_id, successor
from tests.unit.interactions.patients.people import (
    HOSPITAL,
    NATIONAL,
    OTHER,
    Ward,
    called,
    families,
    id_of,
    person,
)


async def name_of(ward: Ward, patient_id: str) -> str:
    (found,) = families([await read_patient(patient_id, **ward.named)])
    return found


async def refusal(ward: Ward, patient_id: str, version_id: str = "") -> str:
    reading = (
        vread_patient(patient_id, version_id, **ward.named)
        if version_id
        else read_patient(patient_id, **ward.named)
    )
    with pytest.raises(NoSuchResource) as refused:
        await reading
    return str(refused.value)


async def twice(ward: Ward) -> tuple[Version, Version]:
    """Register two reports of one person, under two names."""
    first = await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")))
    second = await ward.report("R-2", person((NATIONAL, "1"), name=called("Birch")))
    assert id_of(first) == id_of(second)
    return first, second


async def test_a_person_is_what_was_stated_last(ward: Ward) -> None:
    first, _second = await twice(ward)

    assert await name_of(ward, id_of(first)) == "Birch"


async def test_the_time_decides_and_not_the_order_of_registration(ward: Ward) -> None:
    later = await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")), day=5)
    await ward.report("R-2", person((NATIONAL, "1"), name=called("Birch")), day=3)

    assert await name_of(ward, id_of(later)) == "Ash"


async def test_statements_of_another_type_count_as_well(ward: Ward) -> None:
    first, _second = await twice(ward)
    await ward.vaccination("V-1", person((NATIONAL, "1"), name=called("Cedar")))

    assert await name_of(ward, id_of(first)) == "Cedar"


async def test_a_person_is_a_version_of_a_patient(ward: Ward) -> None:
    first, second = await twice(ward)

    found = await read_patient(id_of(first), **ward.named)

    assert (found.id, found.type, found.version) == (id_of(first), "Patient", 1)
    assert found.statement == found.tag == f"{second.id}.1"
    assert found.owner_type == "DiagnosticReport"
    assert found.created == found.updated == second.updated
    assert found.place == (second.updated, second.id)
    assert json.loads(found.body)["meta"]["versionId"] == f"{second.id}.1"


async def test_a_person_of_another_tenant_is_not_known(ward: Ward) -> None:
    first, _second = await twice(ward)
    theirs = Ward(ward.store, *ward.systems, tenant=OTHER)

    await refusal(theirs, id_of(first))
    await refusal(theirs, id_of(first), f"{first.id}.1")


@pytest.mark.parametrize("id_", ["7", "", "Patient"])
async def test_what_is_no_id_is_not_known(ward: Ward, id_: str) -> None:
    assert f"Patient/{id_}" in await refusal(ward, id_)


async def test_an_unknown_id_is_not_known(ward: Ward) -> None:
    await twice(ward)

    for id_ in (new_id(), ward.tenant.person_id(NATIONAL, "2")):
        assert f"Patient/{id_}" in await refusal(ward, id_)


async def test_a_report_is_no_patient(plain: Ward) -> None:
    report = await plain.report("R-1", person())

    await refusal(plain, report.id)
    await refusal(plain, report.id, "1")


async def test_a_patient_of_one_report_has_one_version(plain: Ward) -> None:
    report = await plain.report("R-1", person(name=called("Ash")))

    found = await read_patient(id_of(report), **plain.named)

    assert (found.statement, found.tag, found.owner_type) == ("", "1", "DiagnosticReport")
    assert (found.id, found.type, found.version) == (id_of(report), "Patient", 1)
    assert (found.system, found.value, found.status) == ("", "", "")
    assert found.place == (report.updated, id_of(report))
    assert found.created == found.updated == report.updated
    assert await vread_patient(id_of(report), "1", **plain.named) == found


@pytest.mark.parametrize("version_id", ["2", "0", "01", "1.1", ""])
async def test_a_patient_of_one_report_has_no_other_version(plain: Ward, version_id: str) -> None:
    report = await plain.report("R-1", person())

    with pytest.raises(NoSuchResource):
        await vread_patient(id_of(report), version_id, **plain.named)


async def test_a_patient_of_one_report_has_no_version_of_that(plain: Ward) -> None:
    report = await plain.report("R-1", person())

    await refusal(plain, id_of(report), f"{report.id}.1")


@pytest.mark.parametrize("number", ["0", "2", "01", "9" * 9, "9" * 10, "9" * 30, "x", "-1"])
async def test_a_statement_that_there_is_not_is_not_known(ward: Ward, number: str) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))

    await refusal(ward, id_of(report), f"{report.id}.{number}")


async def test_each_statement_can_be_read(ward: Ward) -> None:
    first, second = await twice(ward)

    found = [
        await vread_patient(id_of(first), f"{one.id}.1", **ward.named) for one in (first, second)
    ]

    assert families(found) == ["Ash", "Birch"]
    assert [one.statement for one in found] == [f"{first.id}.1", f"{second.id}.1"]


async def test_a_statement_is_that_of_its_own_patient(ward: Ward) -> None:
    first = await ward.report("R-1", person((NATIONAL, "1")))
    second = await ward.report("R-2", person((NATIONAL, "2")))

    await refusal(ward, id_of(first), f"{second.id}.1")


@pytest.mark.parametrize("number", ["2", "0", "01", "+1", "", "1.", "1000000000", "1.1", "１"])  # noqa: RUF001
async def test_a_statement_has_one_spelling(ward: Ward, number: str) -> None:
    first, _second = await twice(ward)

    await refusal(ward, id_of(first), f"{first.id}.{number}")


async def test_a_statement_that_is_missing_is_named(ward: Ward) -> None:
    first, _second = await twice(ward)
    version_id = f"{first.id}.2"

    said = await refusal(ward, id_of(first), version_id)

    assert f"Patient/{id_of(first)}/_history/{version_id}" in said


@pytest.mark.parametrize("version_id", ["1", "x.1", "7"])
async def test_a_person_has_no_versions_by_number(ward: Ward, version_id: str) -> None:
    first, _second = await twice(ward)

    await refusal(ward, id_of(first), version_id)


async def test_a_person_that_a_report_was_moved_from_is_what_others_stated(ward: Ward) -> None:
    first, second = await twice(ward)
    await ward.moved_to(second, NATIONAL, "2")

    assert await name_of(ward, id_of(first)) == "Ash"
    assert await name_of(ward, ward.tenant.person_id(NATIONAL, "2")) == "Birch"


async def test_a_person_that_nothing_states_any_more_is_not_known(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    await ward.moved_to(report, NATIONAL, "2")

    await refusal(ward, id_of(report))


async def test_a_statement_that_no_longer_counts_can_be_read(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")))
    await ward.moved_to(report, NATIONAL, "2")

    found = await vread_patient(id_of(report), f"{report.id}.1", **ward.named)

    assert families([found]) == ["Ash"]


async def test_a_patient_whose_report_was_moved_is_not_known(ward: Ward) -> None:
    report = await ward.report("R-1", person(name=called("Ash")))
    await ward.moved_to(report, HOSPITAL, "x")

    assert f"Patient/{id_of(report)}" in await refusal(ward, id_of(report))
    before = await vread_patient(id_of(report), "1", **ward.named)
    assert families([before]) == ["Ash"]


async def test_a_patient_whose_report_has_a_new_version_is_known(plain: Ward) -> None:
    report = await plain.report("R-1", person(name=called("Ash")))
    await plain.store.add(plain.tenant.id, successor(report))

    assert await name_of(plain, id_of(report)) == "Ash"


@pytest.mark.parametrize("number", ["\u0661", "+1", "1 ", "1_0", "1000000000"])
async def test_a_number_is_written_in_few_digits_of_ascii(ward: Ward, number: str) -> None:
    first = await ward.report("R-1", person((NATIONAL, "1")))

    await refusal(ward, id_of(first), f"{first.id}.{number}")


@pytest.mark.parametrize("number", ["9" * 10, "1" * 5_000])
async def test_a_statement_of_a_version_that_no_resource_has_is_unknown(
    ward: Ward, number: str
) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))

    with pytest.raises(NoSuchResource):
        await vread_patient(id_of(report), f"{report.id}.{number}", **ward.named)
