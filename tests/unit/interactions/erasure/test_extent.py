"""What an erasure covers: all that is stored of one resource of one tenant, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.erasure import extent as extent_module
from fhirpub.interactions.erasure.extent import Extent, NotErasable, extent_of
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import encode
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.contracts.erasure.content import erase
from fhirpub.testing.samples import a_version, new_id, new_member_id, successor
from tests.bodies import register_body
from tests.panels import panel, result
from tests.unit.interactions.erasure.registered import OTHER_TENANT, TENANT, registered


async def extent(store: SqliteStore, version: Version, *, tenant: Tenant = TENANT) -> Extent:
    return await extent_of(version.id, tenant=tenant, store=store)


async def added(store: SqliteStore, version: Version, *, tenant: Tenant = TENANT) -> Version:
    assert await store.add(tenant.id, version)
    return version


async def with_versions(store: SqliteStore, count: int, **changes: Any) -> Version:
    version = await added(store, a_version(**changes))
    for _ in range(count - 1):
        version = await added(store, successor(version))
    return version


async def test_a_resource_is_covered_with_its_documents_and_events(store: SqliteStore) -> None:
    version = await registered(store, register_body("R-1"))

    found = await extent(store, version)

    assert (found.type, found.id, found.versions) == ("DiagnosticReport", version.id, 1)
    assert found.newest.version == 1
    assert found.documents == {*version.documents}
    assert len(found.documents) == 1
    assert found.size == version.size
    assert found.subjects == {"diagnostic_report"}
    assert found.tombstones == []


async def test_members_are_covered_and_named(store: SqliteStore) -> None:
    version = await registered(store, panel("R-1", result("a"), result("b")))
    members = {each.id for each in version.members}

    found = await extent(store, version)

    assert {*found.members} == members
    assert next(iter(found.names)) == ("DiagnosticReport", version.id)
    assert {*found.names} == {
        ("DiagnosticReport", version.id),
        *(("Observation", id_) for id_ in members),
    }


async def test_all_versions_are_covered(store: SqliteStore) -> None:
    first = await added(store, a_version(documents=("a" * 64,), body=dumps({"note": "1" * 100})))
    last = await added(store, successor(first, documents=("b" * 64,)))

    found = await extent(store, first)

    assert (found.versions, found.newest.version) == (2, 2)
    assert found.documents == {"a" * 64, "b" * 64}
    assert found.size == first.size + last.size


@pytest.mark.parametrize("count", [9, 10, 11, 20, 21])
async def test_versions_of_several_pages_are_covered(
    store: SqliteStore, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extent_module, "_PAGE", 10)
    last = await with_versions(store, count)

    found = await extent(store, last)

    assert (found.versions, found.newest.version) == (count, count)


async def test_the_newest_version_of_each_member_is_covered(store: SqliteStore) -> None:
    old, other = a_version(id=new_member_id(), type="Observation"), new_member_id()
    first = await added(store, a_version(members=(old,)))
    changed = replace(old, version=2, status="amended")
    added_later = replace(old, id=other, version=2)
    await added(store, successor(first, members=(changed, added_later)))

    found = await extent(store, first)

    assert {id_: one.status for id_, one in found.members.items()} == {
        old.id: "amended",
        other: "final",
    }


async def test_a_member_that_the_newest_version_does_not_bring_is_covered(
    store: SqliteStore,
) -> None:
    first = await added(store, a_version(members=(a_version(id=new_member_id()),)))
    await added(store, successor(first, members=()))

    assert {*(await extent(store, first)).members} == {first.members[0].id}


async def test_events_of_all_versions_are_covered(store: SqliteStore) -> None:
    first = await added(
        store, a_version(events=b'[{"type":"report.created"},{"type":"patient.moved"}]')
    )
    await added(store, successor(first, events=b'[{"type":"summary.changed.twice"}]'))

    assert (await extent(store, first)).subjects == {"report", "patient", "summary"}


async def test_other_resources_are_not_covered(store: SqliteStore) -> None:
    ids = sorted(new_id() for _ in range(3))
    for id_ in ids:
        await with_versions(store, 3, id=id_, documents=(id_.replace("-", "") * 2,))

    found = await extent_of(ids[1], tenant=TENANT, store=store)

    assert (found.id, found.versions) == (ids[1], 3)
    assert found.documents == {ids[1].replace("-", "") * 2}


async def test_a_resource_with_no_other_behind_it_is_covered(store: SqliteStore) -> None:
    version = await with_versions(store, 2, id=f"ffffffff-ffff-4fff-bfff-{'f' * 12}")

    assert (await extent(store, version)).versions == 2


@pytest.mark.parametrize("tenant", [TENANT, OTHER_TENANT])
async def test_only_what_the_tenant_has_under_an_id_is_covered(
    store: SqliteStore, tenant: Tenant
) -> None:
    version = await added(store, a_version(), tenant=tenant)
    other = OTHER_TENANT if tenant is TENANT else TENANT

    assert (await extent(store, version, tenant=tenant)).versions == 1
    with pytest.raises(NotErasable):
        await extent(store, version, tenant=other)


async def test_an_unknown_resource_is_refused_in_words(store: SqliteStore) -> None:
    id_ = new_id()
    with pytest.raises(NotErasable) as refused:
        await extent_of(id_, tenant=TENANT, store=store)

    said = f"the tenant has no resource {id_} with versions of its own"
    assert str(refused.value) == said


async def test_a_member_is_refused_in_words(store: SqliteStore) -> None:
    version = await registered(store, panel("R-1", result("a")))
    (member,) = version.members

    with pytest.raises(NotErasable) as refused:
        await extent(store, member)

    assert str(refused.value) == (
        f"{member.id} came with another resource: it is erased together with that one"
    )


async def test_what_was_erased_has_its_tombstone_and_no_content(store: SqliteStore) -> None:
    version = await registered(store, panel("R-1", result("a")))
    tombstone = await erase(store, version, *version.members)

    found = await extent(store, version)

    assert (found.type, found.versions, found.size) == ("DiagnosticReport", 0, 0)
    assert (found.documents, found.subjects) == (set(), set())
    assert [one.version for one in found.tombstones] == [2]
    assert found.newest.version == tombstone.version
    assert {*found.names} == {
        ("DiagnosticReport", version.id),
        ("Observation", version.members[0].id),
    }


async def test_what_was_registered_above_a_tombstone_is_covered(store: SqliteStore) -> None:
    version = await with_versions(store, 2)
    tombstone = await erase(store, version, reason="first")
    again = await added(store, replace(version, version=tombstone.version + 1))

    found = await extent(store, version)

    assert (found.versions, found.newest.version, found.size) == (1, 4, again.size)
    assert [(one.version, one.reason) for one in found.tombstones] == [(3, "first")]


async def test_tombstones_are_in_their_order(store: SqliteStore) -> None:
    version = await with_versions(store, 1)
    first = await erase(store, version, reason="first")
    again = await added(store, replace(version, version=first.version + 1))
    await erase(store, again, reason="second")

    found = await extent(store, version)

    assert [one.reason for one in found.tombstones][-1] == "second"
    assert found.versions == 0


async def test_members_that_came_with_an_earlier_version_alone_are_covered(
    store: SqliteStore,
) -> None:
    old, new = (a_version(id=new_member_id(), type="Observation") for _ in range(2))
    first = await added(store, a_version(members=(old,)))
    second = await added(store, successor(first, members=(replace(new, version=2),)))
    await added(store, successor(second, members=()))

    found = await extent(store, first)

    assert {*found.members} == {old.id, new.id}


def about(*patients: str) -> bytes:
    references = [{"reference": f"Patient/{one}"} for one in patients]
    return dumps({"resourceType": "Flag", "focus": references})


async def test_patients_of_all_versions_and_members_are_covered(store: SqliteStore) -> None:
    ids = [new_member_id() for _ in range(4)]
    linked = encode([("subject", ids[3], "Patient"), ("encounter", new_id(), "Encounter")])
    member = a_version(id=new_member_id(), type="Observation", body=about(ids[1]))
    first = await added(store, a_version(body=about(ids[0]), members=(member,)))
    await added(store, successor(first, body=about(ids[2]), search=linked, members=()))

    found = await extent(store, first)

    assert found.patients == {*ids}


async def test_what_is_emptied_has_no_patients(store: SqliteStore) -> None:
    version = await added(store, a_version(body=about(new_id())))
    await erase(store, version)

    assert (await extent(store, version)).patients == set()
