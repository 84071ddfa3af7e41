"""Reads of the latest version, of one version, and of a part that came with a resource."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import NoSuchResource
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.erased import ResourceErased
from fhirpub.interactions.read import parts_of, read, read_part, read_whole, vread
from fhirpub.plugin_api import Part
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.tombstones import Tombstone, husk_of
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import a_version, new_id, successor
from tests.bodies import register_body
from tests.unit.interactions.erasure.registered import (
    OTHER_TENANT,
    TENANT,
    context_of,
    patient_of,
    registered,
)

TYPE = "DiagnosticReport"


@pytest.fixture
async def report(store: SqliteStore) -> Version:
    return await registered(store, register_body("R-1"))


async def erased(store: SqliteStore, version: Version) -> Version:
    """Add a tombstone above a version, whose content is still there."""
    stands = Tombstone(version=version.version + 1, at=5)
    later = husk_of(replace(successor(version), audit=b""), stands)
    assert await store.add(TENANT.id, later)
    return later


async def test_the_latest_version_is_read(store: SqliteStore, report: Version) -> None:
    await store.add(TENANT.id, successor(report))
    named: Any = {"tenant": TENANT, "context": context_of(store)}

    for found in (
        await read(TYPE, report.id, **named),
        await read_whole(TYPE, report.id, **named),
    ):
        assert found.version == 2


async def test_a_resource_is_read_by_its_own_type_only(
    store: SqliteStore, report: Version
) -> None:
    named: Any = {"tenant": TENANT, "context": context_of(store)}

    for look in (read, read_whole):
        with pytest.raises(NoSuchResource):
            await look("Observation", report.id, **named)
    with pytest.raises(NoSuchResource):
        await vread("Observation", report.id, "1", **named)


async def test_a_resource_of_another_tenant_is_unknown(
    store: SqliteStore, report: Version
) -> None:
    named: Any = {"tenant": OTHER_TENANT, "context": context_of(store)}

    with pytest.raises(NoSuchResource):
        await read(TYPE, report.id, **named)
    with pytest.raises(NoSuchResource):
        await read_whole(TYPE, report.id, **named)
    with pytest.raises(NoSuchResource):
        await vread(TYPE, report.id, "1", **named)
    with pytest.raises(NoSuchResource):
        await read_part("Patient", patient_of(report), **named)


@pytest.mark.parametrize("id_", ["", "1", "x" * 64, "a/b", "1F3B1026-A480-4272-AF8F-EE561FEF767F"])
async def test_an_id_in_another_form_is_unknown(store: SqliteStore, id_: str) -> None:
    named: Any = {"tenant": TENANT, "context": context_of(store)}

    with pytest.raises(NoSuchResource):
        await read(TYPE, id_, **named)
    with pytest.raises(NoSuchResource):
        await vread(TYPE, id_, "1", **named)
    with pytest.raises(NoSuchResource):
        await read_part("Patient", id_, **named)


async def test_each_version_is_read_by_its_number(store: SqliteStore, report: Version) -> None:
    await store.add(TENANT.id, successor(report))
    named: Any = {"tenant": TENANT, "context": context_of(store)}

    numbers = [(await vread(TYPE, report.id, text, **named)).version for text in ("1", "2")]

    assert numbers == [1, 2]


@pytest.mark.parametrize(
    "text", ["0", "2", "01", "+1", "-1", "1.0", " 1", "", "x", "\u0661", "1" * 5_000]
)
async def test_a_version_that_is_not_there_is_unknown(
    store: SqliteStore, report: Version, text: str
) -> None:
    with pytest.raises(NoSuchResource) as refused:
        await vread(TYPE, report.id, text, tenant=TENANT, context=context_of(store))

    assert f"{TYPE}/{report.id}/_history/" in str(refused.value)


async def test_a_number_that_begins_with_that_of_a_version_is_unknown(
    store: SqliteStore, report: Version
) -> None:
    with pytest.raises(NoSuchResource):
        await vread(TYPE, report.id, "10000000001", tenant=TENANT, context=context_of(store))


async def test_no_version_of_what_is_erased_is_read(store: SqliteStore, report: Version) -> None:
    await erased(store, report)
    named: Any = {"tenant": TENANT, "context": context_of(store)}

    for text in ("1", "2"):  # the first one is not emptied yet
        with pytest.raises(ResourceErased):
            await vread(TYPE, report.id, text, **named)
    for look in (read, read_whole):
        with pytest.raises(ResourceErased):
            await look(TYPE, report.id, **named)


async def test_what_was_erased_is_not_read_since_it_is_registered_again(
    store: SqliteStore, report: Version
) -> None:
    later = await erased(store, report)
    again = replace(successor(report), version=later.version + 1, created=later.updated + 1)
    assert await store.add(TENANT.id, again)
    named: Any = {"tenant": TENANT, "context": context_of(store)}

    with pytest.raises(ResourceErased):  # version 1 is not emptied yet
        await vread(TYPE, report.id, "1", **named)
    assert (await vread(TYPE, report.id, "3", **named)).version == 3


async def test_what_is_erased_is_unknown_by_another_type(
    store: SqliteStore, report: Version
) -> None:
    await erased(store, report)

    with pytest.raises(NoSuchResource):
        await read("Observation", report.id, tenant=TENANT, context=context_of(store))


async def test_a_part_is_read_as_it_came(store: SqliteStore, report: Version) -> None:
    await store.add(TENANT.id, successor(report))
    id_ = patient_of(report)

    found = await read_part("Patient", id_, tenant=TENANT, context=context_of(store))

    body = json.loads(found.body)
    assert (body["resourceType"], body["id"]) == ("Patient", id_)
    assert (found.id, found.version, found.type) == (id_, 1, TYPE)
    assert (found.created, found.updated) == (report.created, report.created)


async def test_a_part_is_read_by_its_own_type_only(store: SqliteStore, report: Version) -> None:
    for name in ("Organization", TYPE, "Observation"):
        with pytest.raises(NoSuchResource):
            await read_part(name, patient_of(report), tenant=TENANT, context=context_of(store))


async def test_a_part_goes_with_its_resource(store: SqliteStore, report: Version) -> None:
    later = await erased(store, report)
    while await store.erase_versions(TENANT.id, later):
        pass

    with pytest.raises(ResourceErased, match=r"^Patient/"):
        await read_part("Patient", patient_of(report), tenant=TENANT, context=context_of(store))


def test_parts_that_become_resources_are_none(store: SqliteStore) -> None:
    context = context_of(store)

    assert [part.name for part in parts_of("Patient", context)] == ["patient"]
    assert parts_of("Observation", context) == []


def test_parts_of_one_type_are_found_by_each_of_their_names(store: SqliteStore) -> None:
    context = context_of(store)
    declared = context.types[TYPE]
    guardian = Part(name="guardian", type="Patient", referred_by="performer", required=False)
    types = {
        TYPE: replace(declared, parts=(*declared.parts, guardian)),
        "Basic": replace(declared, name="Basic", parts=declared.parts[:1]),
    }

    found = parts_of("Patient", replace(context, types=types))

    assert [part.name for part in found] == ["patient", "guardian"]


async def test_a_part_that_has_the_id_of_a_person_is_not_read_by_one_of_its_own(
    store: SqliteStore,
) -> None:
    system = "http://hl7.org/fhir/sid/AR"
    report = await registered(store, register_body("R-1"), system)
    own = TENANT.part_id(report.id, "patient")

    assert patient_of(report) != own
    with pytest.raises(NoSuchResource):
        await read_part("Patient", own, tenant=TENANT, context=context_of(store, system))


async def test_a_part_is_read_by_each_name_of_its_type(store: SqliteStore) -> None:
    context, id_ = context_of(store), new_id()
    declared = context.types[TYPE]
    guardian = Part(name="guardian", type="Patient", referred_by="performer", required=False)
    types = {TYPE: replace(declared, parts=(*declared.parts, guardian))}
    own = TENANT.part_id(id_, "guardian")
    part = {"resourceType": "Patient", "id": own, "meta": {"versionId": "1"}}
    version = a_version(id=id_, type=TYPE, parts=dumps({"guardian": part}))
    await store.add(TENANT.id, version)

    found = await read_part("Patient", own, tenant=TENANT, context=replace(context, types=types))

    assert json.loads(found.body) == part
