"""Which Patient a resource is moved to, and which identifiers it takes along."""

from __future__ import annotations

import pytest

from fhirpub.errors import NoSuchResource
from fhirpub.interactions.relinking.corrections import Target
from fhirpub.interactions.relinking.relink import NotMovable
from fhirpub.interactions.relinking.targets import apart, known_patient, person_with
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import new_id
from tests.unit.interactions.patients.people import (
    HOSPITAL,
    NATIONAL,
    OTHER,
    SYSTEMS,
    Ward,
    id_of,
    person,
)


def test_an_identifier_stands_for_a_person_and_replaces_those_before_it(ward: Ward) -> None:
    first = person_with(NATIONAL, "1", **ward.named)
    second = person_with(HOSPITAL, "x", **ward.named)

    assert first == Target(
        ward.tenant.person_id(NATIONAL, "1"),
        {NATIONAL},
        ({"system": NATIONAL, "value": "1"},),
    )
    assert second == Target(
        ward.tenant.person_id(HOSPITAL, "x"),
        {NATIONAL, HOSPITAL},
        ({"system": HOSPITAL, "value": "x"},),
    )


def test_each_tenant_has_persons_of_its_own(ward: Ward) -> None:
    theirs = Ward(ward.store, *ward.systems, tenant=OTHER)

    one, other = [person_with(NATIONAL, "1", **each.named).id for each in (ward, theirs)]

    assert one != other


@pytest.mark.parametrize(
    ("systems", "listed"), [(SYSTEMS, f"{NATIONAL}, {HOSPITAL}"), ((), "none")]
)
def test_an_identifier_of_another_system_stands_for_nobody(
    store: SqliteStore, systems: tuple[str, ...], listed: str
) -> None:
    with pytest.raises(NotMovable) as refused:
        person_with("urn:other", "1", **Ward(store, *systems).named)

    assert str(refused.value) == (
        f"urn:other is no system of [patients] person_systems, which has {listed}: "
        "its identifiers stand for no person"
    )


async def test_a_known_patient_has_all_its_current_identifiers(ward: Ward) -> None:
    sent = person((HOSPITAL, "y"), (HOSPITAL, "x"), (NATIONAL, "1"), ("urn:other", "7"))
    sent["identifier"].append({"use": "old", "system": HOSPITAL, "value": "z"})
    report = await ward.report("R-1", sent)

    found = await known_patient(id_of(report), **ward.named)

    assert found == Target(
        id_of(report),
        {*SYSTEMS},
        (
            {"system": NATIONAL, "value": "1"},
            {"system": HOSPITAL, "value": "x"},
            {"system": HOSPITAL, "value": "y"},
        ),
    )


async def test_a_patient_of_one_report_is_no_target(ward: Ward) -> None:
    report = await ward.report("R-1", person())

    with pytest.raises(NotMovable) as refused:
        await known_patient(id_of(report), **ward.named)

    assert str(refused.value) == (
        f"Patient/{id_of(report)} belongs to one DiagnosticReport alone. Move that one first, "
        "with --apart: this gives it a Patient that others can be moved to"
    )


async def test_an_unknown_patient_is_no_target(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    theirs = Ward(ward.store, *ward.systems, tenant=OTHER)

    for id_, of in ((new_id(), ward), (id_of(report), theirs)):
        with pytest.raises(NoSuchResource):
            await known_patient(id_, **of.named)


def test_a_report_apart_has_a_patient_without_identifiers(ward: Ward) -> None:
    id_ = new_id()

    assert apart(id_, **ward.named) == Target(ward.tenant.apart_id(id_), {*SYSTEMS}, ())
