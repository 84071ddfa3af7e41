"""Which resources belong to a Patient, now or in an earlier version."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.interactions.erasure import patients
from fhirpub.interactions.erasure.extent import NotErasable
from fhirpub.interactions.erasure.patients import (
    OfPatients,
    patients_by_identifier,
    referring_to,
    resources_of,
)
from fhirpub.interactions.patients.parts import sources_of_type
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import TokenMatch
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import a_version, new_id, successor
from tests.bodies import organization, parameters, patient, register_body
from tests.bodies import report as a_report
from tests.panels import panel, result
from tests.unit.interactions.erasure.registered import (
    OTHER_TENANT,
    TENANT,
    context_of,
    patient_of,
    registered,
)

KEY = ("http://hl7.org/fhir/sid/AR", "AAB123456")


def of_person(value: str, identifier: str) -> dict[str, Any]:
    person = patient(identifier=[{"system": KEY[0], "value": identifier}])
    return parameters(
        patient=person, organization=organization(), diagnosticReport=a_report(value)
    )


async def ids_of(store: SqliteStore, key: tuple[str, str] = KEY, tenant: Tenant = TENANT) -> Any:
    return await patients_by_identifier(key, tenant=tenant, context=context_of(store))


async def found(store: SqliteStore, *ids: str, tenant: Tenant = TENANT) -> OfPatients:
    return await resources_of(ids, tenant=tenant, context=context_of(store))


async def of_the_person(store: SqliteStore, value: str) -> Version:
    """Register a report of the person with the identifier, who is one Patient everywhere."""
    return await registered(store, of_person(value, KEY[1]), KEY[0])


async def moved(store: SqliteStore, version: Version) -> Version:
    """Store a version of a report that belongs to no Patient any more."""
    later = successor(version, search=b"[]", body=version.body.replace(b"Patient/", b"Group/"))
    await store.add(TENANT.id, later)
    return later


async def test_nobody_has_an_identifier_in_an_empty_store(store: SqliteStore) -> None:
    assert await ids_of(store) == []


async def test_all_patients_with_an_identifier_are_found(store: SqliteStore) -> None:
    reports = [await registered(store, register_body(f"R-{number}")) for number in range(3)]

    assert {*(await ids_of(store))} == {patient_of(one) for one in reports}


async def test_each_patient_is_found_once(store: SqliteStore) -> None:
    version = await registered(store, register_body("R-1"))
    await store.add(TENANT.id, successor(version))

    assert await ids_of(store) == [patient_of(version)]


async def test_a_patient_with_another_identifier_is_not_found(store: SqliteStore) -> None:
    mine = await registered(store, of_person("R-1", KEY[1]))
    await registered(store, of_person("R-2", "other"))

    assert await ids_of(store) == [patient_of(mine)]
    assert await ids_of(store, ("urn:other", KEY[1])) == []


async def test_a_patient_of_another_tenant_is_not_found(store: SqliteStore) -> None:
    theirs = await registered(store, register_body("R-1"), tenant=OTHER_TENANT)

    assert await ids_of(store) == []
    assert await ids_of(store, tenant=OTHER_TENANT) == [patient_of(theirs)]


async def test_a_patient_that_was_stated_once_is_found(store: SqliteStore) -> None:
    version = await registered(store, register_body("R-1"))
    await moved(store, version)

    assert await ids_of(store) == [patient_of(version)]


async def test_patients_of_more_resources_than_a_page_has_are_found(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patients, "_PAGE", 2)
    reports = [await registered(store, register_body(f"R-{number}")) for number in range(5)]

    assert {*(await ids_of(store))} == {patient_of(one) for one in reports}


async def test_what_refers_to_a_patient_belongs_to_it(store: SqliteStore) -> None:
    mine = await registered(store, register_body("R-1"))
    await registered(store, register_body("R-2"))

    assert await found(store, patient_of(mine)) == OfPatients(
        (patient_of(mine),), {mine.id: "DiagnosticReport"}, {}
    )


async def test_what_once_referred_to_a_patient_has_moved(store: SqliteStore) -> None:
    version = await registered(store, register_body("R-1"))
    await moved(store, version)

    assert await found(store, patient_of(version)) == OfPatients(
        (patient_of(version),), {}, {version.id: "DiagnosticReport"}
    )


async def test_resources_of_several_patients_are_found_together(store: SqliteStore) -> None:
    first, second = [await registered(store, register_body(f"R-{number}")) for number in (1, 2)]
    await moved(store, second)

    both = await found(store, patient_of(first), patient_of(second), patient_of(first))

    assert both.patients == (patient_of(first), patient_of(second))
    assert (both.resources, both.moved) == (
        {first.id: "DiagnosticReport"},
        {second.id: "DiagnosticReport"},
    )


async def test_of_no_patient_there_is_nothing(store: SqliteStore) -> None:
    await registered(store, register_body("R-1"))
    unknown = new_id()

    assert await found(store) == OfPatients((), {}, {})
    assert await found(store, unknown) == OfPatients((unknown,), {}, {})


async def test_resources_of_another_tenant_do_not_belong_to_it(store: SqliteStore) -> None:
    version = await registered(store, register_body("R-1"))

    nothing = await found(store, patient_of(version), tenant=OTHER_TENANT)

    assert (nothing.resources, nothing.moved) == ({}, {})


@pytest.mark.parametrize("count", [1, 2, 3, 5])
async def test_all_resources_of_a_person_belong_to_one_patient(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(patients, "_PAGE", 2)
    reports = [await of_the_person(store, f"R-{number}") for number in range(count)]
    (person,) = {patient_of(one) for one in reports}
    context = context_of(store, KEY[0])

    every = await resources_of([person], tenant=TENANT, context=context)

    assert every.resources == {one.id: "DiagnosticReport" for one in reports}
    assert every.moved == {}
    assert await patients_by_identifier(KEY, tenant=TENANT, context=context) == [person]


async def test_a_patient_that_another_resource_stated_is_found(store: SqliteStore) -> None:
    version = await of_the_person(store, "R-1")
    person, other = patient_of(version), new_id()
    both = version.body.replace(f"Patient/{person}".encode(), f"Patient/{other}".encode())
    await store.add(TENANT.id, successor(version, body=both))

    ids = await patients_by_identifier(KEY, tenant=TENANT, context=context_of(store, KEY[0]))

    assert {*ids} == {person, other}


async def test_a_reference_to_another_type_is_no_patient(store: SqliteStore) -> None:
    version = await of_the_person(store, "R-1")
    person = patient_of(version)
    group = version.body.replace(f"Patient/{person}".encode(), b"Group/7")
    await store.add(TENANT.id, successor(version, body=group))

    ids = await patients_by_identifier(KEY, tenant=TENANT, context=context_of(store, KEY[0]))

    assert ids == [person]


def test_what_refers_to_a_patient_of_one_resource_leads_to_that(store: SqliteStore) -> None:
    context, id_ = context_of(store), new_id()
    (source,) = sources_of_type("DiagnosticReport", context)

    criterion = referring_to(id_, source, TENANT, context)

    assert criterion.name == source.element
    assert criterion.any_of == (
        TokenMatch("Patient", id_),
        TokenMatch("Patient", "", TENANT.part_id(id_, "patient")),
    )


async def test_resources_of_types_that_are_not_enabled_refuse_the_erasure_of_a_patient(
    store: SqliteStore,
) -> None:
    mine = await registered(store, register_body("R-1"))
    for type_name in ("Observation", "Flag"):
        await store.add(TENANT.id, a_version(type=type_name))

    for ids in ([patient_of(mine)], []):
        with pytest.raises(NotErasable, match=r"that are not enabled: Flag, Observation\. "):
            await found(store, *ids)


async def test_what_came_with_a_report_is_of_no_type_that_must_be_enabled(
    store: SqliteStore,
) -> None:
    mine = await registered(store, panel("R-1", result("a")))

    assert (await found(store, patient_of(mine))).resources == {mine.id: mine.type}


async def test_types_that_are_not_enabled_of_another_tenant_matter_not(
    store: SqliteStore,
) -> None:
    mine = await registered(store, register_body("R-1"))
    await store.add(OTHER_TENANT.id, a_version(type="Flag"))

    assert (await found(store, patient_of(mine))).resources == {mine.id: mine.type}
