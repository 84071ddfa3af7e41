"""Orders, holds and content of an erasure, as a server keeps and loses them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.storage.erasure.contract import ErasedDeliveries, ErasedStep, Hold
from fhirpub.storage.erasure.tombstones import husk_of, tombstone_of
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.testing.contracts.erasure.content import a_tombstone, an_erasure
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.quotas import wait_for_stored_bytes
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.contracts.webhooks.records import (
    a_delivery,
    an_attempt,
    an_endpoint,
    stored_deliveries,
)
from fhirpub.testing.samples import FOREVER, LAB, OTHER, REPORT, a_version, new_id, successor

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_order_is_read_as_it_was_put_and_replaced(shared: MongoStore) -> None:
    tenant = new_id()
    order = an_erasure(tenant=tenant, ordered=11, allows_reuse=True, version=3)
    await shared.put_erasure(order)
    assert list(await shared.erasures(tenant=tenant)) == [order]

    finished = replace(order, finished=12)
    await shared.put_erasure(finished)

    assert list(await shared.erasures(tenant=tenant)) == [finished]
    assert list(await shared.erasures(tenant=tenant, unfinished=True)) == []


def _neighbours() -> tuple[str, str]:
    """Return the ids of two tenants with no other one between."""
    one = new_id()
    return f"{one}a", f"{one}b"


async def test_orders_are_of_a_tenant_behind_a_place_and_up_to_a_limit(
    shared: MongoStore,
) -> None:
    first, second = _neighbours()
    orders = [an_erasure(tenant=tenant, id=id_) for tenant in (first, second) for id_ in "abc"]
    for order in reversed(orders):
        await shared.put_erasure(order)

    assert list(await shared.erasures(tenant=first)) == orders[:3]
    assert list(await shared.erasures(tenant=first, limit=2)) == orders[:2]
    assert list(await shared.erasures(after=(first, "b"), limit=2)) == orders[2:4]
    assert list(await shared.erasures(after=(second, ""), limit=1)) == orders[3:4]
    assert list(await shared.erasures(tenant=second, after=(second, "b"))) == orders[5:]


async def test_holds_are_of_a_tenant_oldest_first_until_they_are_deleted(
    shared: MongoStore,
) -> None:
    tenant, other = new_id(), new_id()
    one = Hold(tenant=tenant, type=REPORT, id="a", since=6, operator="eve", reason="case 4")
    older = replace(one, id="b", since=5)
    theirs = replace(one, tenant=other)
    for hold in (one, older, theirs):
        await shared.put_hold(hold)

    assert list(await shared.holds(tenant)) == [older, one]
    assert not await shared.delete_hold(tenant, ("Patient", "a"))
    assert await shared.delete_hold(tenant, (REPORT, "a"))
    assert not await shared.delete_hold(tenant, (REPORT, "a"))
    assert list(await shared.holds(tenant)) == [older]
    assert list(await shared.holds(other)) == [theirs]


async def test_versions_below_a_tombstone_lose_their_content_one_by_one(
    shared: MongoStore,
) -> None:
    member, blob = a_result(body=b"m" * 50), a_blob()
    first = a_version(body=b"b" * 100, members=(member,), documents=(blob.sha256,))
    second = successor(first, members=(), documents=())
    tombstone = a_tombstone(second, member)
    tenant = new_id()
    for version, blobs in ((first, [blob]), (second, []), (tombstone, [])):
        assert await shared.add(tenant, version, blobs)

    steps = [await shared.erase_versions(tenant, tombstone) for _ in range(3)]

    assert steps == [ErasedStep(1, 1, first.size), ErasedStep(1, 0, second.size), ErasedStep()]
    erased = tombstone_of(tombstone)
    husks = [husk_of(one, erased) for one in (second, first)]
    found = await shared.history(tenant, first.id, below=3)
    assert [replace(one, members=()) for one in found] == [
        replace(one, members=()) for one in husks
    ]
    left = sum(len(one.body) + len(b"[]") for one in husks)
    left += len(tombstone.members[0].body) + len(b"[]")
    await wait_for_stored_bytes(shared, tenant, left + tombstone.size + len(blob.data))


async def test_nothing_of_another_tenant_and_no_version_above_is_erased(
    shared: MongoStore,
) -> None:
    version = a_version()
    await shared.add(LAB, version)
    tombstone = a_tombstone(version)

    assert await shared.erase_versions(OTHER, tombstone) == ErasedStep()
    assert await shared.erase_versions(LAB, replace(tombstone, version=1)) == ErasedStep()
    assert await shared.latest(LAB, version.id) == version


async def test_documents_are_shared_with_other_resources_of_the_tenant_alone(
    shared: MongoStore,
) -> None:
    own, common, theirs = a_blob(), a_blob(), a_blob()
    names = [own.sha256, common.sha256, theirs.sha256]
    version = a_version(documents=(*names,))
    other = a_version(documents=(common.sha256, a_blob().sha256))
    await shared.add(LAB, version, [own, common, theirs])
    await shared.add(LAB, other)
    await shared.add(OTHER, a_version(documents=(theirs.sha256,)), [theirs])

    assert await shared.shared_documents(LAB, names, besides=[version.id]) == {common.sha256}
    assert await shared.shared_documents(LAB, names[:1], besides=[]) == {own.sha256}
    assert not await shared.shared_documents(LAB, names, besides=[version.id, other.id])


async def test_documents_are_left_to_a_sweep_in_all_their_pieces(shared: MongoStore) -> None:
    own, large, kept = a_blob(), a_blob(bytes(300_000)), a_blob()
    version = a_version(documents=(own.sha256, large.sha256))
    await shared.add(LAB, version, [own, large])
    await shared.add(LAB, a_version(documents=(kept.sha256,)), [kept])
    tombstone = a_tombstone(version)
    await shared.add(LAB, tombstone)
    await shared.erase_versions(LAB, tombstone)
    names = [own.sha256, large.sha256, kept.sha256]

    assert await shared.erase_documents(LAB, names[:2]) == 0  # they were added within the hour
    await shared.sweep_blobs(LAB, before=2**53)

    assert {*await shared.blobs(LAB, names)} == {kept.sha256}
    assert await shared.erase_documents(LAB, names) == 2
    (known,) = (await shared.blobs(LAB, [kept.sha256])).values()
    assert known.data == kept.data
    pieces = await shared._list(schema.PIECE, {"blob": f"{LAB}/{large.sha256}"})
    assert pieces == []


async def test_documents_of_an_erasure_that_was_interrupted_are_found_by_the_next_sweep(
    shared: MongoStore,
) -> None:
    tenant, small, large = new_id(), a_blob(), a_blob(bytes(300_000))
    version = a_version(documents=(small.sha256, large.sha256))
    await shared.add(tenant, version, [small, large])
    assert await shared.sweep_blobs(tenant, before=FOREVER) == 0  # and none is looked at again
    tombstone = a_tombstone(version)
    await shared.add(tenant, tombstone)

    await shared.erase_versions(tenant, tombstone)

    assert await shared.sweep_blobs(tenant, before=FOREVER) == 2
    assert await shared._list(schema.PIECE, {"tenant": tenant}) == []


async def test_a_document_that_another_version_holds_is_not_gone(shared: MongoStore) -> None:
    tenant, own, common = new_id(), a_blob(), a_blob()
    names = (own.sha256, common.sha256)
    version = a_version(documents=names, attached=(own, common))
    await shared.add(tenant, version)
    await shared.add(tenant, a_version(documents=names[1:], attached=(common,)))
    tombstone = a_tombstone(version)
    await shared.add(tenant, tombstone)
    await shared.erase_versions(tenant, tombstone)

    assert await shared.erase_documents(tenant, names) == 1
    assert {*await shared.blobs(tenant, names)} == {common.sha256}


async def test_deliveries_of_an_event_lose_content_and_responses(shared: MongoStore) -> None:
    tenant = new_id()
    endpoint, theirs = an_endpoint(tenant=tenant), an_endpoint()
    for one in (endpoint, theirs):
        await shared.put_endpoint(one.tenant, one)
    answered = (an_attempt(1, answer=b"secret"), an_attempt(2))
    deliveries = [
        a_delivery(endpoint.id, 1, event_id="e1.1", body=b"secret", leased=7),
        a_delivery(endpoint.id, 2, event_id="e1.2", body=b"{}", attempts=answered, leased=9),
        a_delivery(endpoint.id, 3, event_id="e1.3", body=b"{}", attempts=answered[1:]),
        a_delivery(endpoint.id, 4, event_id="e2.1", body=b"other"),
        a_delivery(theirs.id, 1, event_id="e1.1", body=b"theirs"),
    ]
    await shared.put_deliveries(deliveries)

    first = await shared.erase_deliveries(tenant, "e1", lambda _body: b"{}")
    again = await shared.erase_deliveries(tenant, "e1", lambda _body: b"{}")

    assert (first, again) == (ErasedDeliveries(2, 9), ErasedDeliveries(0, 9))
    found = [await shared._list(schema.DELIVERY, {"endpoint": endpoint.id}, sort=[("_id", 1)])]
    assert [document["body"] for document in found[0]] == [b"{}", b"{}", b"{}", b"other"]
    answers = [attempt["answer"] for attempt in found[0][1]["attempts"]]
    assert answers == [b"", b""]
    (kept,) = await stored_deliveries(shared, theirs.id)
    assert kept == deliveries[-1]
