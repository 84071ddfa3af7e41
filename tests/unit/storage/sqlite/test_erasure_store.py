"""Orders, holds and deliveries of an erasure, as a store in a file has them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.storage.contract import SMALL_BYTES
from fhirpub.storage.erasure.contract import ErasedDeliveries, Hold
from fhirpub.storage.sqlite import database, erasure
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.erasure.content import an_erasure, erase
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.contracts.webhooks.records import (
    a_delivery,
    an_attempt,
    an_endpoint,
    stored_deliveries,
)
from fhirpub.testing.samples import LAB, OTHER, REPORT, a_version

ORDER = an_erasure(id="a", ordered=11, allows_reuse=True, version=3, finished=12)
HOLD = Hold(tenant=LAB, type=REPORT, id="a", since=5, operator="eve", reason="case 4")


async def test_an_order_is_read_as_it_was_put(store: Store) -> None:
    await store.put_erasure(ORDER)
    other = replace(ORDER, id="b", allows_reuse=False, version=0, finished=None)
    await store.put_erasure(other)

    assert list(await store.erasures()) == [ORDER, other]
    assert list(await store.erasures(unfinished=True)) == [other]


async def test_orders_are_of_a_tenant_behind_a_place_and_up_to_a_limit(store: Store) -> None:
    orders = [replace(ORDER, tenant=tenant, id=id_) for tenant in (LAB, OTHER) for id_ in "abc"]
    for one in orders:
        await store.put_erasure(one)

    mine = [one for one in orders if one.tenant == LAB]
    assert list(await store.erasures(tenant=LAB)) == mine
    assert list(await store.erasures(tenant=LAB, limit=2)) == mine[:2]
    assert list(await store.erasures(tenant=LAB, after=(LAB, "a"))) == mine[1:]


async def test_a_hold_is_read_as_it_was_put_until_it_is_deleted(store: Store) -> None:
    await store.put_hold(HOLD)
    await store.put_hold(replace(HOLD, tenant=OTHER))

    assert list(await store.holds(LAB)) == [HOLD]
    assert await store.delete_hold(LAB, (REPORT, "a"))
    assert not await store.delete_hold(LAB, (REPORT, "a"))
    assert list(await store.holds(LAB)) == []
    assert list(await store.holds(OTHER)) == [replace(HOLD, tenant=OTHER)]


async def test_deliveries_of_an_event_lose_their_content_once(store: Store) -> None:
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    for number, event in enumerate(("e1.1", "e1~2", "e2.1"), 1):
        await store.append([a_delivery(endpoint.id, number, event_id=event, body=b"secret")])

    first = await store.erase_deliveries(LAB, "e1", lambda _body: b"{}")
    again = await store.erase_deliveries(LAB, "e1", lambda _body: b"{}")
    theirs = await store.erase_deliveries(OTHER, "e2", lambda _body: b"{}")

    assert [first.changed, again.changed, theirs.changed] == [2, 0, 0]
    assert again == ErasedDeliveries(0, 0)


async def test_nothing_is_written_of_deliveries_that_have_no_content(store: Store) -> None:
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    await store.append([a_delivery(endpoint.id, event_id="e1", body=b"{}")])

    assert await store.erase_deliveries(LAB, "e1", lambda body: body) == ErasedDeliveries(0, 0)


async def test_how_long_a_delivery_is_on_its_way_is_that_of_the_last(store: Store) -> None:
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    for number, leased in enumerate((7, 9, 0), 1):
        delivery = a_delivery(endpoint.id, number, event_id=f"e1.{number}", leased=leased)
        await store.append([delivery])

    found = await store.erase_deliveries(LAB, "e1", lambda _body: b"{}")

    assert found == ErasedDeliveries(3, 9)


async def test_responses_are_removed_from_a_delivery_whose_body_has_no_content(
    store: Store,
) -> None:
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    attempts = (an_attempt(1, answer=b"Ashdown"), an_attempt(2, answer=b""))
    await store.append([a_delivery(endpoint.id, event_id="e1", attempts=attempts)])

    found = await store.erase_deliveries(LAB, "e1", lambda body: body)
    again = await store.erase_deliveries(LAB, "e1", lambda body: body)

    (stored,) = await stored_deliveries(store, endpoint.id)
    assert [one.answer for one in stored.attempts] == [b"", b""]
    assert (found.changed, again.changed) == (1, 0)


async def test_deliveries_beyond_one_page_are_erased(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "_DELIVERIES_AT_ONCE", 2)
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    leases = dict.fromkeys(range(1, 6), 7) | {2: 9}
    await store.append(
        [a_delivery(endpoint.id, number, leased=leased) for number, leased in leases.items()]
    )

    found = await store.erase_deliveries(LAB, "evt_", lambda _body: b"{}")

    assert found == ErasedDeliveries(5, 9)
    assert {one.body for one in await stored_deliveries(store, endpoint.id)} == {b"{}"}


async def test_the_members_of_each_resource_are_passed_from_their_own_first_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = [a_version(members=(a_result(),)) for _ in range(2)]
    for version in versions:
        await store.add(LAB, version)
    passed: list[int] = []
    original = erasure._erase_step

    def noted(*given: Any, **named: Any) -> Any:
        passed.append(named["passed"])
        return original(*given, **named)

    monkeypatch.setattr(erasure, "_erase_step", noted)
    await erase(store, versions[1])
    behind = passed[-1]
    passed.clear()

    await erase(store, versions[0])

    assert passed[0] == 0
    assert max(passed) < behind


async def test_documents_are_shared_with_other_resources_of_the_tenant_alone(
    store: Store,
) -> None:
    own, shared, theirs = a_blob(), a_blob(), a_blob()
    names = [own.sha256, shared.sha256, theirs.sha256]
    version = a_version(documents=(*names,))
    other = a_version(documents=(shared.sha256,))
    await store.add(LAB, version, [own, shared, theirs])
    await store.add(LAB, other)
    await store.add(OTHER, a_version(documents=(theirs.sha256,)), [theirs])

    found = await store.shared_documents(LAB, names, besides=[version.id])

    assert found == {shared.sha256}
    assert await store.shared_documents(LAB, names[:1], besides=[]) == {own.sha256}
    assert not await store.shared_documents(LAB, names, besides=[version.id, other.id])


async def test_documents_of_erased_versions_are_deleted_unless_others_have_them(
    store: Store,
) -> None:
    own, shared = a_blob(), a_blob()
    names = [own.sha256, shared.sha256]
    version = a_version(documents=(*names,))
    await store.add(LAB, version, [own, shared])
    await store.add(LAB, a_version(documents=(shared.sha256,)))
    await erase(store, version)

    assert await store.erase_documents(LAB, names) == 1
    assert {*await store.blobs(LAB, names)} == {shared.sha256}


async def test_a_document_that_is_named_twice_is_erased_once(store: Store) -> None:
    blob = a_blob()
    version = a_version(documents=(blob.sha256,))
    await store.add(LAB, version, [blob])
    await erase(store, version)

    assert await store.erase_documents(LAB, [blob.sha256] * 2) == 1


async def test_documents_are_deleted_however_many_there_are(store: Store) -> None:
    blobs = [a_blob(os.urandom(SMALL_BYTES + 1)) for _ in range(20)]
    names = [one.sha256 for one in blobs]
    version = a_version(documents=(*names,))
    await store.add(LAB, version, blobs)
    await erase(store, version)

    assert await store.erase_documents(LAB, names) == 20
    assert not await store.blobs(LAB, names)


# What is left beside the rows


def let_steps_work(store: SqliteStore, patch: pytest.MonkeyPatch, *, steps: int) -> list[str]:
    """Let so many of the steps that overwrite what is left work; return those that were taken."""
    taken: list[str] = []

    def step(name: str) -> Callable[[], Awaitable[bool]]:
        async def take() -> bool:
            taken.append(name)
            return len(taken) <= steps

        return take

    for name in ("empty_journal", "clear_unused_bytes"):
        patch.setattr(store._open, name, step(name))
    return taken


STEPS = ["empty_journal", "clear_unused_bytes", "empty_journal"]


async def test_the_journal_is_emptied_before_and_after_the_file_is_cleared(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = let_steps_work(store, monkeypatch, steps=3)

    assert await store.forget_erased() is True
    assert taken == STEPS


@pytest.mark.parametrize("done", range(3))
async def test_a_step_that_was_not_possible_is_the_last_one(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    taken = let_steps_work(store, monkeypatch, steps=done)

    assert await store.forget_erased() is False
    assert taken == STEPS[: done + 1]


async def test_the_file_is_cleared_within_the_deadline_of_the_store(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def clear(path: Path, *, seconds: float) -> bool:
        calls.append((path, seconds))
        return True

    monkeypatch.setattr(database, "clear_unused_bytes", clear)

    assert await store.forget_erased() is True
    assert calls == [(store._path, store._deadline)]
