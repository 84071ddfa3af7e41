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
