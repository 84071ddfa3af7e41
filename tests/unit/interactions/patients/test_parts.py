"""The parts of a resource, with the patient that it belongs to now."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.interactions.erased import ResourceErased
from fhirpub.interactions.patients.parts import (
    PROVENANCE,
    current_parts,
    first_parts,
    parts_now,
    refers_to,
    sources_of_type,
)
from fhirpub.storage.contract import Version
from fhirpub.testing.contracts.erasure.content import erase
from fhirpub.testing.samples import successor
from tests.unit.interactions.patients.people import (
    NATIONAL,
    OTHER,
    Ward,
    called,
    id_of,
    person,
)


async def newest(ward: Ward, version: Version) -> Version:
    found = await ward.store.latest(ward.tenant.id, version.id)
    assert found is not None
    return found


async def a_report(ward: Ward) -> Version:
    return await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")))


async def test_the_parts_of_a_new_report_are_those_it_came_with(ward: Ward) -> None:
    report = await a_report(ward)

    parts = await first_parts(report, **ward.named)

    assert parts == json.loads(report.parts)
    assert {*parts} == {"patient", "organization"}
    assert await current_parts(report, **ward.named) == parts


async def test_a_later_version_has_the_parts_that_the_first_came_with(ward: Ward) -> None:
    report = await a_report(ward)
    later = successor(report)
    await ward.store.add(ward.tenant.id, later)

    assert await first_parts(later, **ward.named) == json.loads(report.parts)
    assert await current_parts(later, **ward.named) == json.loads(report.parts)


async def test_a_report_without_parts_has_none(ward: Ward) -> None:
    report = await a_report(ward)
    first = replace(report, parts=b"")

    assert await first_parts(first, **ward.named) == {}


async def test_what_lost_its_first_version_is_no_report_without_parts(ward: Ward) -> None:
    later = successor(await a_report(ward))

    with pytest.raises(StoreUnavailable) as refused:
        await first_parts(later, tenant=OTHER, context=ward.context)
    assert refused.value.reason == "version 1 is missing"


async def test_a_report_that_was_erased_has_no_parts(ward: Ward) -> None:
    report = await a_report(ward)
    later = successor(report)
    await ward.store.add(ward.tenant.id, later)
    await erase(ward.store, later, *report.members)

    with pytest.raises(ResourceErased) as refused:
        await first_parts(later, **ward.named)
    assert str(refused.value) == f"DiagnosticReport/{report.id} was erased"


async def test_a_report_that_was_moved_has_the_patient_of_its_last_statement(ward: Ward) -> None:
    report = await a_report(ward)
    await ward.moved_to(report, NATIONAL, "2")
    await ward.moved_to(report, NATIONAL, "3")

    parts = await current_parts(await newest(ward, report), **ward.named)

    assert {*parts} == {"patient", "organization"}
    assert parts["patient"]["id"] == ward.tenant.person_id(NATIONAL, "3")
    assert parts["patient"]["identifier"][0]["value"] == "3"


async def test_the_first_parts_of_a_moved_report_are_those_it_came_with(ward: Ward) -> None:
    report = await a_report(ward)
    await ward.moved_to(report, NATIONAL, "2")

    first = await first_parts(await newest(ward, report), **ward.named)

    assert first["patient"]["id"] == id_of(report)


async def test_the_last_statement_counts_behind_further_versions(ward: Ward) -> None:
    report = await a_report(ward)
    for number in ("2", "3"):
        await ward.moved_to(report, NATIONAL, number)
    moved = await newest(ward, report)
    values = [item for item in json.loads(moved.search) if not item[0].startswith("subject:")]
    later = successor(moved, search=json.dumps(values).encode())
    await ward.store.add(ward.tenant.id, later)

    parts = await current_parts(later, **ward.named)

    assert parts["patient"]["id"] == ward.tenant.person_id(NATIONAL, "3")
    assert PROVENANCE not in parts


async def test_a_statement_that_is_missing_is_a_fault_of_the_store(ward: Ward) -> None:
    report = await a_report(ward)
    later = successor(report, body=report.body.replace(b"Patient/", b"Group/"))

    with pytest.raises(StoreUnavailable) as refused:
        await current_parts(later, **ward.named)
    assert refused.value.reason == "the last statement about the patient is missing"


async def test_the_statement_of_another_report_does_not_count(ward: Ward) -> None:
    other = await ward.report("R-2", person((NATIONAL, "1"), name=called("Birch")))
    report = await a_report(ward)
    await ward.moved_to(report, NATIONAL, "2")
    await ward.moved_to(other, NATIONAL, "3")
    moved = await newest(ward, report)
    first = await first_parts(moved, **ward.named)
    values = [item for item in json.loads(moved.search) if not item[0].startswith("subject:")]
    later = successor(moved, search=json.dumps(values).encode())

    parts = await parts_now(later, first, **ward.named)

    assert parts["patient"]["id"] == ward.tenant.person_id(NATIONAL, "2")


async def test_parts_are_looked_for_by_the_type_of_the_resource(ward: Ward) -> None:
    found = {
        name: [one.element for one in sources_of_type(name, ward.context)]
        for name in ("DiagnosticReport", "Immunization", "Observation")
    }

    assert found == {
        "DiagnosticReport": ["subject"],
        "Immunization": ["patient"],
        "Observation": [],
    }


async def test_a_report_refers_to_its_patient_by_the_element_that_must(ward: Ward) -> None:
    report = await a_report(ward)
    (source,) = sources_of_type("DiagnosticReport", ward.context)
    elsewhere = successor(report, body=report.body.replace(b'"subject"', b'"encounter"'))

    assert refers_to(report, source, id_of(report))
    assert not refers_to(report, source, id_of(report)[:-1])
    assert not refers_to(elsewhere, source, id_of(report))
