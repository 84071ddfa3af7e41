"""The queues of a tenant's endpoints hold a bounded number of deliveries, and lose none."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.app.stores import open_store
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery, an_endpoint
from fhirpub.webhooks.dispatch.endpoint_worker import EndpointWorker
from fhirpub.webhooks.dispatch.queue import LEAST_WINDOW, WINDOW
from fhirpub.webhooks.dispatch.queue_loader import (
    QueueLoader,
    divide_memory,
    needs_refill,
    queued,
)
from fhirpub.webhooks.policy.retry_policy import FailurePolicy

CLINIC = "22222222-2222-4222-8222-222222222222"
COUNT = 450


def worker(name: str, **changes: Any) -> EndpointWorker:
    return EndpointWorker(
        an_endpoint(id=name, ordering="none", secrets=(), **changes),
        settings=WebhooksConfig(),
        patience=FailurePolicy(),
        seal=SecretCipher([b"k" * 32]),
    )


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with open_store(Config(storage=StorageConfig(url=f"sqlite:///{tmp_path}/x.db"))) as one:
        yield one


def test_the_endpoints_of_a_tenant_divide_what_it_may_have_in_memory() -> None:
    alone = worker("alone", tenant=CLINIC)
    few, many = [worker(f"e{n}") for n in range(5)], [worker(f"e{n}") for n in range(400)]

    divide_memory([alone, *few])
    assert alone.most_queued == WINDOW
    assert {one.most_queued for one in few} == {WINDOW // 5}

    divide_memory([alone, *many])
    assert alone.most_queued == WINDOW
    assert {one.most_queued for one in many} == {LEAST_WINDOW}


async def test_a_full_queue_is_loaded_on_as_deliveries_end_and_none_is_missing(
    store: Store,
) -> None:
    line = worker("e1")
    line.most_queued = LEAST_WINDOW
    deliveries = [a_delivery("e1", number) for number in range(1, COUNT + 1)]
    await store.append(deliveries)
    loader = QueueLoader(store, clock=lambda: NOW)
    sent: list[int] = []

    while needs_refill(line):
        await loader.fill(line)
        assert len(line.queue) <= LEAST_WINDOW
        if not needs_refill(line):
            taken = line.queue.take(NOW, LEAST_WINDOW // 2)
            sent += [delivery.sequence for delivery in taken]
            for delivery in taken:
                line.queue.remove(delivery.event_id)
    sent += [delivery.sequence for delivery in line.queue.take(NOW, COUNT)]

    assert sent == [delivery.sequence for delivery in deliveries]


async def test_a_queue_that_holds_far_more_than_its_part_is_reloaded(store: Store) -> None:
    line = worker("e1")
    await store.append([a_delivery("e1", number) for number in range(1, COUNT + 1)])
    loader = QueueLoader(store, clock=lambda: NOW)
    await loader.fill(line)
    assert len(line.queue) == COUNT

    divide_memory([line, *(worker(f"e{n}") for n in range(2, 101))])
    await loader.fill(line)

    assert len(line.queue) == LEAST_WINDOW


async def test_a_queue_that_holds_a_little_more_than_its_part_is_kept(store: Store) -> None:
    line = worker("e1")
    await store.append([a_delivery("e1", number) for number in range(1, 2 * LEAST_WINDOW + 1)])
    await QueueLoader(store, clock=lambda: NOW).fill(line)

    divide_memory([line, *(worker(f"e{n}") for n in range(2, 401))])

    assert line.most_queued == LEAST_WINDOW
    assert (len(line.queue), line.read) == (2 * LEAST_WINDOW, NOW)


async def test_an_empty_queue_goes_on_behind_the_last_of_its_sequence(store: Store) -> None:
    line = worker("e1")
    await store.append([a_delivery("e1", 7, state="delivered")])

    await QueueLoader(store, clock=lambda: NOW).fill(line)

    assert (len(line.queue), line.queue.last) == (0, 7)


def test_a_queue_holds_when_a_delivery_is_due_and_which_attempt_is_next() -> None:
    delivery = replace(a_delivery("e1", 3), due=NOW + 5, number=4, leased=NOW + 9)

    held = queued(delivery)

    assert (held.sequence, held.due, held.number, held.leased) == (3, NOW + 5, 4, NOW + 9)


# What happens while the store is read


@pytest.mark.parametrize("again", [True, False], ids=["all of it", "its end"])
async def test_what_is_appended_while_a_queue_is_read_is_not_passed_over(
    store: Store, monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    line, loader = worker("e1"), QueueLoader(store, clock=lambda: NOW)
    await store.append([a_delivery("e1", 1)])
    line.read = 0 if again else NOW
    read = store.waiting

    async def then_append(*arguments: Any, **named: Any) -> Any:
        page = await read(*arguments, **named)
        await store.append([a_delivery("e1", 2)])
        return page

    monkeypatch.setattr(store, "waiting", then_append)
    await loader.fill(line)

    assert (len(line.queue), line.queue.last) == (1, 1)


@pytest.mark.parametrize("again", [True, False], ids=["all of it", "its end"])
async def test_what_arrives_while_a_queue_is_read_is_read_next(
    store: Store, monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    line, loader = worker("e1"), QueueLoader(store, clock=lambda: NOW)
    line.read = 0 if again else NOW
    read = store.waiting

    async def while_one_arrives(*arguments: Any, **named: Any) -> Any:
        assert line.reading
        line.behind = True
        return await read(*arguments, **named)

    monkeypatch.setattr(store, "waiting", while_one_arrives)
    await loader.fill(line)

    assert (line.behind, line.reading, needs_refill(line)) == (True, False, True)


@pytest.mark.parametrize("failing", ["last_sequences", "waiting"])
@pytest.mark.parametrize("again", [True, False], ids=["all of it", "its end"])
async def test_a_queue_that_could_not_be_read_is_read_later(
    store: Store, monkeypatch: pytest.MonkeyPatch, failing: str, *, again: bool
) -> None:
    line, loader = worker("e1"), QueueLoader(store, clock=lambda: NOW)
    await store.append([a_delivery("e1", 1)])
    line.read, line.behind = 0 if again else NOW, not again

    async def fail(*_arguments: Any, **_named: Any) -> None:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(store, failing, fail)
        with pytest.raises(StoreUnavailable):
            await loader.fill(line)

    assert (line.stale, line.behind, line.reading) == (again, not again, False)
    await loader.fill(line)
    assert len(line.queue) == 1


@pytest.mark.parametrize(("held", "reads"), [(50, True), (51, False)])
async def test_a_queue_is_loaded_on_once_there_is_room_for_a_page(
    store: Store, held: int, *, reads: bool
) -> None:
    line = worker("e1")
    await store.append([a_delivery("e1", number) for number in range(1, held + 1)])
    await QueueLoader(store, clock=lambda: NOW).fill(line)
    line.most_queued, line.behind = 100, True

    assert needs_refill(line) is reads


async def test_a_queue_that_becomes_stale_while_it_is_read_is_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, loader = worker("e1"), QueueLoader(store, clock=lambda: NOW)
    read = store.waiting

    async def while_another_reopens(*arguments: Any, **named: Any) -> Any:
        page = await read(*arguments, **named)
        line.read = 0
        return page

    monkeypatch.setattr(store, "waiting", while_another_reopens)
    await loader.fill(line)

    assert (line.stale, needs_refill(line)) == (True, True)
