"""An order is finished when nothing is on its way any more; until then it stays open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from fhirpub.interactions.erasure import erase
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.contract import ErasedDeliveries
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import Delivery
from fhirpub.testing.contracts.webhooks.records import a_delivery, an_endpoint
from fhirpub.testing.samples import LAB, OTHER
from tests.bodies import register_body
from tests.unit.interactions.erasure.erasers import eraser, order, orders
from tests.unit.interactions.erasure.registered import NOW, registered

LATER = NOW + 5_000


def stripped(_body: bytes) -> bytes:
    return b"ids"


@pytest.fixture
async def report(store: SqliteStore) -> Version:
    return await registered(store, register_body("R-1"))


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has to be waited for is looked at, and not waited for."""
    monkeypatch.setattr(erase, "_PATIENCE_SECONDS", -1)


async def queued(store: SqliteStore, of: str, *, tenant: str = LAB) -> Delivery:
    """Return a delivery of an event of a resource, in the queue of an endpoint."""
    endpoint = an_endpoint(tenant=tenant)
    await store.put_endpoint(tenant, endpoint)
    event = f"evt_{of.replace('-', '')}_1_1"
    delivery = a_delivery(endpoint.id, event_id=event, tenant=tenant, body=b"secret")
    await store.append([delivery])
    return delivery


async def bodies(store: SqliteStore) -> list[bytes]:
    return [one.body for one in await store.scan_deliveries()]


async def unfinished(store: SqliteStore) -> list[str]:
    return [one.id for one in await orders(store) if one.finished is None]


async def relay_works(store: SqliteStore) -> None:
    assert await store.lease(["relay"], owner="a relay", now=NOW, until=LATER) == {"relay"}


async def test_a_delivery_loses_its_content_and_is_counted(
    store: SqliteStore, report: Version
) -> None:
    await queued(store, report.id)

    erased = await eraser(store, strip=stripped).erase(order(report.id))

    assert (erased.deliveries, erased.is_complete) == (1, True)
    assert await bodies(store) == [b"ids"]
    assert await unfinished(store) == []


async def test_deliveries_of_another_tenant_and_resource_keep_their_content(
    store: SqliteStore, report: Version
) -> None:
    await queued(store, report.id, tenant=OTHER)
    await queued(store, f"{report.id}0")

    erased = await eraser(store, strip=stripped).erase(order(report.id))

    assert erased.deliveries == 0
    assert await bodies(store) == [b"secret", b"secret"]


@pytest.mark.usefixtures("_impatient")
async def test_an_order_stays_open_while_a_delivery_is_on_its_way(
    store: SqliteStore, report: Version
) -> None:
    delivery = await queued(store, report.id)
    await store.begin([delivery.key], now=NOW - 1, until=NOW + 1)

    erased = await eraser(store).erase(order(report.id))

    assert not erased.is_complete
    assert await unfinished(store) == [report.id]


@pytest.mark.usefixtures("_impatient")
async def test_a_delivery_is_not_on_its_way_from_the_end_of_its_lease(
    store: SqliteStore, report: Version
) -> None:
    delivery = await queued(store, report.id)
    await store.begin([delivery.key], now=NOW - 2, until=NOW)

    assert (await eraser(store).erase(order(report.id))).is_complete


@pytest.mark.usefixtures("_impatient")
async def test_an_order_stays_open_if_its_last_look_found_content(
    store: SqliteStore, report: Version
) -> None:
    await queued(store, report.id)

    erased = await eraser(store, strip=stripped).erase(order(report.id))

    assert (erased.deliveries, erased.is_complete) == (1, False)
    assert await unfinished(store) == [report.id]


@pytest.mark.usefixtures("_impatient")
async def test_an_order_stays_open_while_a_relay_has_not_published_its_tombstone(
    store: SqliteStore, report: Version
) -> None:
    await relay_works(store)

    erased = await eraser(store).erase(order(report.id))

    assert not erased.is_complete
    assert await unfinished(store) == [report.id]


@pytest.mark.usefixtures("_impatient")
async def test_an_order_is_finished_though_a_relay_works_once_its_tombstone_is_published(
    store: SqliteStore, report: Version
) -> None:
    await relay_works(store)
    begun = await eraser(store).begin(order(report.id))
    await store.mark_published([(report.id, begun.order.version)])

    await eraser(store).finish([begun])

    assert begun.erased.is_complete
    assert await unfinished(store) == []


@pytest.mark.usefixtures("_impatient")
async def test_one_that_is_on_its_way_keeps_only_its_own_order_open(
    store: SqliteStore, report: Version
) -> None:
    other = await registered(store, register_body("R-2"))
    delivery = await queued(store, other.id)
    await store.begin([delivery.key], now=NOW - 1, until=NOW + 1)
    begun = [await eraser(store).begin(order(id_)) for id_ in (report.id, other.id)]

    await eraser(store).finish(begun)

    assert [one.erased.is_complete for one in begun] == [True, False]
    assert await unfinished(store) == [other.id]


@pytest.mark.usefixtures("_impatient")
async def test_each_of_several_orders_is_finished(store: SqliteStore, report: Version) -> None:
    other = await registered(store, register_body("R-2"))
    begun = [await eraser(store).begin(order(one.id)) for one in (report, other)]
    assert sorted(await unfinished(store)) == sorted((report.id, other.id))

    await eraser(store).finish(begun)

    assert await unfinished(store) == []
    assert sorted(one.id for one in await orders(store)) == sorted((report.id, other.id))
    assert all(one.erased.is_complete for one in begun)


async def test_orders_stay_open_if_one_of_their_tombstones_is_not_published(
    store: SqliteStore, report: Version
) -> None:
    other = await registered(store, register_body("R-2"))
    await relay_works(store)
    begun = [await eraser(store).begin(order(id_)) for id_ in (report.id, other.id)]
    await store.mark_published([(report.id, begun[0].order.version)])

    await eraser(store).finish(begun)

    assert sorted(await unfinished(store)) == sorted([report.id, other.id])


class Beside:
    """A store of which one method does something else."""

    def __init__(self, store: Store, **methods: Any) -> None:
        self._store = store
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._store, name)


async def test_an_order_stays_open_while_a_journal_holds_what_was_erased(
    store: SqliteStore, report: Version
) -> None:
    async def held_open() -> bool:
        return False

    beside = cast("Store", Beside(store, forget_erased=held_open))

    erased = await eraser(beside).erase(order(report.id))

    assert not erased.is_complete
    assert await unfinished(store) == [report.id]


async def test_what_a_delivery_held_is_counted_over_all_looks(
    store: SqliteStore, report: Version
) -> None:
    looks = iter([ErasedDeliveries(2, 0), ErasedDeliveries(1, 0), ErasedDeliveries(0, 0)])

    async def looked(*_arguments: Any) -> ErasedDeliveries:
        return next(looks)

    beside = cast("Store", Beside(store, erase_deliveries=looked))

    erased = await eraser(beside).erase(order(report.id))

    assert (erased.deliveries, erased.is_complete) == (3, True)


async def test_an_order_whose_documents_go_later_is_finished_and_not_complete(
    store: SqliteStore, report: Version
) -> None:
    async def none_yet(*_arguments: Any) -> int:
        return 0

    beside = cast("Store", Beside(store, erase_documents=none_yet))

    erased = await eraser(beside).erase(order(report.id))

    assert (erased.documents, erased.documents_kept, erased.documents_later) == (0, 0, 1)
    assert not erased.is_complete
    assert await unfinished(store) == []


async def test_a_document_of_another_resource_is_kept_and_delays_nothing(
    store: SqliteStore, report: Version
) -> None:
    await registered(store, register_body("R-2"))

    erased = await eraser(store).erase(order(report.id))

    assert (erased.documents, erased.documents_kept, erased.documents_later) == (0, 1, 0)
    assert erased.is_complete
    assert (await store.blobs(LAB, report.documents)).keys() == {*report.documents}


async def test_an_order_that_was_begun_by_another_process_gets_the_time_of_its_end(
    store: SqliteStore, report: Version
) -> None:
    begun = await eraser(store).begin(order(report.id))
    context = replace(eraser(store).context, clock=lambda: LATER)

    await eraser(store, context=context).finish([begun])

    assert [one.finished for one in await orders(store)] == [LATER]
