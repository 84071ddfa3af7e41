"""An erasure leaves a tombstone and nothing below it, and its order says what was done."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from fhirpub.interactions.erasure.extent import NotErasable
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.contract import Hold
from fhirpub.storage.erasure.tombstones import is_erased, tombstone_of
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import new_id, successor
from tests.bodies import register_body
from tests.panels import panel, result
from tests.unit.interactions.erasure.erasers import begun, eraser, latest, order, orders
from tests.unit.interactions.erasure.registered import (
    NOW,
    OTHER_TENANT,
    TENANT,
    TYPE,
    registered,
)


@pytest.fixture
async def report(store: SqliteStore) -> Version:
    return await registered(store, panel("R-1", result("a"), result("b")))


async def test_a_plan_counts_and_changes_nothing(store: SqliteStore, report: Version) -> None:
    await store.add(TENANT.id, successor(report, members=()))

    plan = await eraser(store).plan(report.id)

    assert (plan.type, plan.id, plan.version) == (TYPE, report.id, 0)
    assert (plan.versions, plan.members) == (2, 2)
    assert (plan.documents, plan.documents_kept) == (1, 0)
    assert plan.bytes > 0
    assert not is_erased(await latest(store, report.id))
    assert await orders(store) == []


async def test_a_document_of_another_resource_is_kept(store: SqliteStore, report: Version) -> None:
    other = await registered(store, register_body("R-2"))

    plan = await eraser(store).plan(report.id)
    both = await eraser(store).plan(report.id, besides=[other.id])

    assert (plan.documents, plan.documents_kept) == (0, 1)
    assert (both.documents, both.documents_kept) == (1, 0)


async def test_what_is_on_hold_is_neither_planned_nor_erased(
    store: SqliteStore, report: Version
) -> None:
    hold = Hold(tenant=TENANT.id, type=TYPE, id=report.id, since=NOW, operator="a", reason="b")
    await store.put_hold(hold)

    with pytest.raises(NotErasable):
        await eraser(store).plan(report.id)
    with pytest.raises(NotErasable):
        await begun(store, report.id)
    assert await orders(store) == []
    assert not is_erased(await latest(store, report.id))


async def test_a_resource_of_another_tenant_is_not_erased(
    store: SqliteStore, report: Version
) -> None:
    with pytest.raises(NotErasable):
        await eraser(store, tenant=OTHER_TENANT).begin(order(report.id, tenant=OTHER_TENANT.id))
    with pytest.raises(NotErasable):
        await begun(store, new_id())

    assert not is_erased(await latest(store, report.id))


async def test_all_versions_and_members_are_erased(store: SqliteStore, report: Version) -> None:
    await store.add(TENANT.id, successor(report, members=()))

    erased = await begun(store, report.id)

    assert (erased.type, erased.id, erased.version) == (TYPE, report.id, 3)
    assert (erased.versions, erased.members, erased.documents) == (2, 2, 1)
    for number in (1, 2, 3):
        found = await store.version(TENANT.id, report.id, number)
        assert found is not None
        assert is_erased(found)
        assert b"resourceType" not in found.body
    for member in report.members:
        assert is_erased(await latest(store, member.id))


async def test_a_member_has_a_tombstone_of_the_number_of_its_resource(
    store: SqliteStore, report: Version
) -> None:
    await store.add(TENANT.id, successor(report, members=()))

    await begun(store, report.id)

    stands = [await latest(store, member.id) for member in report.members]
    assert [(one.version, is_erased(one), one.members) for one in stands] == [(3, True, ())] * 2
    assert [tombstone_of(one).reason for one in stands] == ["", ""]


async def test_as_many_bytes_are_erased_as_were_planned(
    store: SqliteStore, report: Version
) -> None:
    plan = await eraser(store).plan(report.id)

    assert (await begun(store, report.id)).bytes == plan.bytes == report.size


async def test_the_plan_for_what_is_erased_names_its_tombstone(
    store: SqliteStore, report: Version
) -> None:
    await begun(store, report.id)

    plan = await eraser(store).plan(report.id)

    assert (plan.version, plan.versions, plan.members, plan.bytes) == (2, 0, 0, 0)


async def test_the_tombstone_says_who_ordered_it_and_why(
    store: SqliteStore, report: Version
) -> None:
    await begun(store, report.id, allows_reuse=True)

    tombstone = tombstone_of(await latest(store, report.id))

    assert (tombstone.operator, tombstone.reason) == ("eve", "case 7")
    assert (tombstone.version, tombstone.allows_reuse) == (2, True)


async def test_the_tombstone_is_later_than_all_versions(
    store: SqliteStore, report: Version
) -> None:
    ahead = replace(successor(report, members=()), updated=NOW + 5_000)
    await store.add(TENANT.id, ahead)

    await begun(store, report.id)

    assert (await latest(store, report.id)).updated == NOW + 5_001


async def test_each_subject_gets_an_event_without_data(
    store: SqliteStore, report: Version
) -> None:
    await begun(store, report.id)

    events = json.loads((await latest(store, report.id)).events)

    assert [one["id"] for one in events] == [
        f"{report.id}.2.{place}" for place in range(1, len(events) + 1)
    ]
    types = [one["type"] for one in events]
    assert types == sorted(types)
    assert "diagnostic_report.erased" in types
    assert all(one["data"] == {} for one in events)


async def test_the_order_has_the_number_of_the_tombstone(
    store: SqliteStore, report: Version
) -> None:
    await begun(store, report.id)

    [recorded] = await orders(store)

    assert (recorded.version, recorded.finished) == (2, None)
    assert (recorded.type, recorded.id, recorded.operator) == (TYPE, report.id, "eve")


async def test_an_order_names_the_type_that_is_stored(store: SqliteStore, report: Version) -> None:
    await begun(store, report.id, type="Observation")

    assert [one.type for one in await orders(store)] == [TYPE]


async def test_what_is_erased_is_completed_as_its_first_order_said(
    store: SqliteStore, report: Version
) -> None:
    await begun(store, report.id)

    erased = await begun(store, report.id, operator="mallory", allows_reuse=True)

    assert (erased.version, erased.versions) == (2, 0)
    [recorded] = await orders(store)
    assert (recorded.operator, recorded.allows_reuse) == ("eve", False)
    assert tombstone_of(await latest(store, report.id)).operator == "eve"


async def test_an_order_for_a_version_that_is_not_there_is_refused_and_ended(
    store: SqliteStore, report: Version
) -> None:
    with pytest.raises(NotErasable, match=f"^{TYPE}/{report.id} has no version 7$"):
        await eraser(store).resume(order(report.id, version=7))

    assert [one.finished for one in await orders(store)] == [NOW]


async def test_a_hold_ends_an_order_that_was_interrupted(
    store: SqliteStore, report: Version
) -> None:
    hold = Hold(tenant=TENANT.id, type=TYPE, id=report.id, since=NOW, operator="a", reason="b")
    await store.put_hold(hold)

    with pytest.raises(NotErasable):
        await eraser(store).resume(order(report.id))

    assert [one.finished for one in await orders(store)] == [NOW]
    assert not is_erased(await latest(store, report.id))


async def test_each_step_is_reported(store: SqliteStore, report: Version) -> None:
    seen: list[int] = []

    await eraser(store, on_progress=lambda one: seen.append(one.versions)).begin(order(report.id))

    assert seen[-1] == 1


async def test_what_the_store_never_had_is_forbidden(store: SqliteStore) -> None:
    id_ = new_id()

    found = await eraser(store).forbid(order(id_))

    assert found.erased.versions == 0
    stands = await latest(store, id_)
    assert is_erased(stands)
    assert (stands.version, stands.created, tombstone_of(stands).operator) == (1, NOW, "eve")


async def test_a_hold_does_not_forbid_what_was_erased_elsewhere(
    store: SqliteStore, report: Version
) -> None:
    hold = Hold(tenant=TENANT.id, type=TYPE, id=report.id, since=NOW, operator="a", reason="b")
    await store.put_hold(hold)

    await eraser(store).forbid(order(report.id))

    assert is_erased(await latest(store, report.id))


async def test_an_erasure_that_nothing_waits_for_is_finished(store: SqliteStore) -> None:
    id_ = new_id()
    found = await eraser(store).forbid(order(id_))

    await eraser(store).finish([found])

    assert found.erased.is_complete
    assert [one.finished for one in await orders(store)] == [NOW]
    await eraser(store).finish([])


async def test_without_a_relay_an_erasure_takes_its_place(
    store: SqliteStore, report: Version
) -> None:
    erased = await eraser(store).erase(order(report.id))

    assert erased.is_complete
    lease = await store.lease(["relay"], owner="a relay", now=NOW, until=NOW + 5_000)
    assert lease == {"relay"}


async def test_the_first_order_keeps_its_reason(store: SqliteStore, report: Version) -> None:
    await begun(store, report.id)

    again = await eraser(store).begin(order(report.id, reason="another case"))

    assert (again.order.reason, again.order.operator) == ("case 7", "eve")


async def test_an_erasure_is_in_the_log_without_its_reason(
    store: SqliteStore, report: Version
) -> None:
    with capture_logs() as lines:
        await begun(store, report.id)

    (line,) = [one for one in lines if one["event"] == "resource erased"]
    assert (line["tenant"], line["operator"]) == (TENANT.id, "eve")
    assert line["resource"] == f"{TYPE}/{report.id}"
    assert line["log_level"] == "warning"
    assert "case 7" not in str(line)
