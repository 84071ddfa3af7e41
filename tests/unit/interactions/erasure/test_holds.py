"""What is on hold is not erased: a resource, a member of it, or all that is of a Patient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.erasure.extent import NotErasable, extent_of
from fhirpub.interactions.erasure.holds import check_holds
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import encode
from fhirpub.storage.erasure.contract import Hold
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.contracts.erasure.content import erase
from fhirpub.testing.samples import a_version, new_id, new_member_id, successor
from tests.bodies import register_body
from tests.panels import panel, result
from tests.unit.interactions.erasure.registered import (
    NOW,
    OTHER_TENANT,
    TENANT,
    patient_of,
    registered,
)


async def hold(store: SqliteStore, type_name: str, id_: str, **changes: Any) -> None:
    given = {"tenant": TENANT.id, "operator": "eve", "reason": "case 7", **changes}
    await store.put_hold(Hold(type=type_name, id=id_, since=NOW, **given))


async def check(store: SqliteStore, version: Version) -> None:
    extent = await extent_of(version.id, tenant=TENANT, store=store)
    await check_holds(extent, tenant=TENANT, store=store)


async def refusal(store: SqliteStore, version: Version) -> str:
    with pytest.raises(NotErasable) as refused:
        await check(store, version)
    return str(refused.value)


@pytest.fixture
async def report(store: SqliteStore) -> Version:
    return await registered(store, panel("R-1", result("a")))


def words(version: Version, by: str) -> str:
    return (
        f"DiagnosticReport/{version.id} is on hold, by {by} (case 7): "
        "`fhirpub hold release` ends that"
    )


async def test_without_a_hold_all_may_be_erased(store: SqliteStore, report: Version) -> None:
    await check(store, report)


async def test_a_resource_on_hold_is_refused_in_words(store: SqliteStore, report: Version) -> None:
    await hold(store, "DiagnosticReport", report.id)

    assert await refusal(store, report) == words(report, f"DiagnosticReport/{report.id}")


async def test_a_hold_on_a_member_covers_its_resource(store: SqliteStore, report: Version) -> None:
    (member,) = report.members
    await hold(store, "Observation", member.id)

    assert await refusal(store, report) == words(report, f"Observation/{member.id}")


async def test_a_hold_on_a_patient_covers_what_refers_to_it(
    store: SqliteStore, report: Version
) -> None:
    await hold(store, "Patient", patient_of(report))

    assert await refusal(store, report) == words(report, f"Patient/{patient_of(report)}")


async def test_a_hold_on_a_patient_covers_what_once_referred_to_it(
    store: SqliteStore, report: Version
) -> None:
    moved = successor(
        report, body=report.body.replace(b"Patient/", b"Group/"), search=b"[]", members=()
    )
    await store.add(TENANT.id, moved)
    await hold(store, "Patient", patient_of(report))

    assert await refusal(store, report) == words(report, f"Patient/{patient_of(report)}")


async def test_a_hold_on_another_patient_covers_nothing(
    store: SqliteStore, report: Version
) -> None:
    other = await registered(store, register_body("R-2"))
    await hold(store, "Patient", patient_of(other))

    await check(store, report)


@pytest.mark.parametrize("type_name", ["Observation", "Patient", "Flag"])
async def test_a_hold_on_the_id_of_another_type_covers_nothing(
    store: SqliteStore, report: Version, type_name: str
) -> None:
    await hold(store, type_name, report.id)

    await check(store, report)


async def test_a_hold_on_the_id_of_a_patient_of_another_type_covers_nothing(
    store: SqliteStore, report: Version
) -> None:
    await hold(store, "Group", patient_of(report))

    await check(store, report)


async def test_a_hold_of_another_tenant_covers_nothing(
    store: SqliteStore, report: Version
) -> None:
    await hold(store, "DiagnosticReport", report.id, tenant=OTHER_TENANT.id)
    await hold(store, "Patient", patient_of(report), tenant=OTHER_TENANT.id)

    await check(store, report)


async def test_a_hold_that_was_released_covers_nothing(
    store: SqliteStore, report: Version
) -> None:
    await hold(store, "DiagnosticReport", report.id)
    await store.delete_hold(TENANT.id, ("DiagnosticReport", report.id))

    await check(store, report)


@pytest.mark.parametrize("others", [1, 2, 3, 5])
async def test_the_patient_is_named_among_many_on_hold(
    store: SqliteStore, report: Version, others: int
) -> None:
    for _ in range(others):
        await hold(store, "Patient", new_id(), reason="another case")
    await hold(store, "Patient", patient_of(report))

    assert await refusal(store, report) == words(report, f"Patient/{patient_of(report)}")


async def test_many_patients_on_hold_cover_nothing_of_others(
    store: SqliteStore, report: Version
) -> None:
    for _ in range(5):
        await hold(store, "Patient", new_id())

    await check(store, report)


async def test_the_hold_on_the_resource_is_named_before_that_on_its_patient(
    store: SqliteStore, report: Version
) -> None:
    await hold(store, "Patient", patient_of(report))
    await hold(store, "DiagnosticReport", report.id)

    assert await refusal(store, report) == words(report, f"DiagnosticReport/{report.id}")


async def test_a_resource_that_is_erased_already_stays_on_hold(
    store: SqliteStore, report: Version
) -> None:
    await erase(store, report, *report.members)
    await hold(store, "DiagnosticReport", report.id)

    assert await refusal(store, report) == words(report, f"DiagnosticReport/{report.id}")


async def test_a_hold_on_a_patient_that_only_a_member_refers_to_covers_its_resource(
    store: SqliteStore, report: Version
) -> None:
    (member,), other = report.members, new_id()
    about = dumps({"resourceType": "Observation", "focus": [{"reference": f"Patient/{other}"}]})
    later = replace(member, version=2, body=about, search=b"[]")
    await store.add(TENANT.id, successor(report, members=(later,)))
    await hold(store, "Patient", other)

    assert await refusal(store, report) == words(report, f"Patient/{other}")


@pytest.mark.parametrize(
    "reference", ["Patient/{}", "Patient/{}/_history/1", "https://lab.example/fhir/r4/Patient/{}"]
)
async def test_a_hold_on_a_patient_covers_what_no_plugin_knows_any_more(
    store: SqliteStore, reference: str
) -> None:
    person = new_member_id()
    body = dumps({"resourceType": "Flag", "subject": {"reference": reference.format(person)}})
    flag = a_version(type="Flag", body=body, search=b"[]")
    await store.add(TENANT.id, flag)
    await hold(store, "Patient", person)

    with pytest.raises(NotErasable, match=f"^Flag/{flag.id} is on hold, by Patient/{person} "):
        await check(store, flag)


@pytest.mark.parametrize("reference", ["Group/{}", "Patient/{}0", "Patient/0/{}", "urn:uuid:{}"])
async def test_a_hold_on_a_patient_covers_no_other_references(
    store: SqliteStore, reference: str
) -> None:
    person = new_member_id()
    body = dumps({"resourceType": "Flag", "subject": {"reference": reference.format(person)}})
    flag = a_version(type="Flag", body=body, search=b"[]")
    await store.add(TENANT.id, flag)
    await hold(store, "Patient", person)

    await check(store, flag)


async def test_a_hold_on_a_person_covers_what_is_found_by_it(store: SqliteStore) -> None:
    person = new_member_id()
    found = a_version(type="Flag", search=encode([("subject", person, "Patient")]))
    await store.add(TENANT.id, found)
    await hold(store, "Patient", person)

    with pytest.raises(NotErasable, match=f"by Patient/{person} "):
        await check(store, found)
