"""Webhook writes that were given up: some arrive all the same, some only in part."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb.schema import ENDPOINT
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import AttemptResult
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import LAB, new_id
from fhirpub.testing.webhook_contract import (
    NOW,
    UNTIL,
    a_delivery,
    an_endpoint,
    begin,
    end,
    queue,
    stored_deliveries,
)
from fhirpub.webhooks.management.delivery_log import DeliveryLog, Wanted
from tests.mongod.replica_set import ProxiedSet
from tests.mongodb_proxy import Fault
from tests.storage.mongodb.helpers import start_behind_faults
from tests.waiting import wait_until


@pytest.fixture
def database() -> str:
    """The name of an empty database."""
    return f"t{new_id()}"


@pytest.fixture
async def store(proxied_set: ProxiedSet, database: str) -> AsyncIterator[Store]:
    """A store behind the proxy, with a short deadline."""
    url = proxied_set.url(database)
    store = await start_behind_faults(url, deadline_seconds=1, production=False)
    yield store
    await store.stop()


async def give_up(members: ProxiedSet, command: str, write: Awaitable[object]) -> None:
    """Delay a write on its way until its caller has given up."""
    members.proxy.inject(Fault.STALL, command, times=1)
    with pytest.raises(StoreUnavailable):
        await write
    assert members.proxy.hits == 1


async def let_arrive(members: ProxiedSet, command: str) -> None:
    """Return once the server has carried out the delayed write."""

    def so_far() -> int:
        commands = members.primary().command("serverStatus")["metrics"]["commands"]
        return int(commands[command]["total"])

    def has_ended() -> bool:  # a command is counted when it begins
        admin = members.primary().client.admin
        return so_far() > before and not any(
            command in document.get("command", ())
            for document in admin.aggregate([{"$currentOp": {}}])
        )

    before = so_far()
    members.proxy.heal()
    assert await asyncio.to_thread(wait_until, has_ended)


async def test_an_append_that_arrives_after_its_repeat_adds_nothing(
    store: Store, proxied_set: ProxiedSet
) -> None:
    endpoint = new_id()
    deliveries = [a_delivery(endpoint, number) for number in (1, 2, 3)]
    await give_up(proxied_set, "insert", store.append(deliveries))
    assert await store.append(deliveries[:1]) == 1
    other = replace(deliveries[1], event_id="other")
    assert await store.append([other]) == 1

    await let_arrive(proxied_set, "insert")

    assert await stored_deliveries(store, endpoint) == [deliveries[0], other]


async def test_a_beginning_that_arrives_after_another_attempt_changes_nothing(
    store: Store, proxied_set: ProxiedSet
) -> None:
    (delivery,) = await queue(store, 1)
    late = store.begin([delivery.key], now=NOW, until=UNTIL)
    await give_up(proxied_set, "update", late)
    attempt = replace(await begin(store, delivery, now=NOW + 1), ended=NOW + 2)
    failed = AttemptResult(key=delivery.key, attempt=attempt, state="retrying", due=NOW + 3)
    assert await store.finish([failed]) == [True]
    before = await stored_deliveries(store, delivery.endpoint)

    await let_arrive(proxied_set, "update")

    assert await stored_deliveries(store, delivery.endpoint) == before


async def test_an_outcome_that_arrives_after_the_next_attempt_was_begun_changes_nothing(
    store: Store, proxied_set: ProxiedSet
) -> None:
    (delivery,) = await queue(store, 1)
    attempt = replace(await begin(store, delivery), ended=NOW + 40)
    outcome = AttemptResult(key=delivery.key, attempt=attempt, state="delivered")
    await give_up(proxied_set, "update", store.finish([outcome]))
    await begin(store, delivery, now=UNTIL)
    before = await stored_deliveries(store, delivery.endpoint)

    await let_arrive(proxied_set, "update")

    assert await stored_deliveries(store, delivery.endpoint) == before
    assert await store.finish([outcome]) == [False]


async def test_a_beginning_whose_answer_was_lost_is_one_attempt(
    store: Store, proxied_set: ProxiedSet
) -> None:
    deliveries = await queue(store, 2)
    proxied_set.proxy.inject(Fault.CUT_REPLY, "update", times=1)

    begun = await store.begin([delivery.key for delivery in deliveries], now=NOW, until=UNTIL)

    assert proxied_set.proxy.hits == 1
    assert [delivery.number for delivery in begun] == [1, 1]
    assert sorted(await stored_deliveries(store, deliveries[0].endpoint), key=str) == sorted(
        begun, key=str
    )


async def test_a_replay_that_was_cut_short_is_counted_when_it_is_repeated(
    store: Store, proxied_set: ProxiedSet, database: str
) -> None:
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    (delivery,) = await queue(store, 1, endpoint=endpoint.id)
    await end(store, delivery, "dead")
    log, dead = DeliveryLog(store, clock=HandClock()), Wanted(states=frozenset({"dead"}))
    refused: Any = {"failCommands": ["update"], "namespace": f"{database}.{ENDPOINT}"}
    with (
        proxied_set.primary().failing(**refused, errorCode=8000),
        pytest.raises(StoreUnavailable),
    ):
        await log.replay(endpoint, dead)

    await log.replay(endpoint, dead)

    assert await store.endpoint(LAB, endpoint.id) == replace(endpoint, reopened=1)


async def test_what_fails_while_a_queue_is_read_is_among_what_was_read(
    proxied_set: ProxiedSet, store: Store
) -> None:
    endpoint = an_endpoint()
    await store.put_deliveries([a_delivery(endpoint.id, number) for number in range(1, 301)])
    failing = (await stored_deliveries(store, endpoint.id, after=249, limit=1))[0]
    proxied_set.proxy.inject(Fault.STALL, "getMore", times=1)

    reading = asyncio.create_task(store.waiting(endpoint.id))
    assert await asyncio.to_thread(wait_until, lambda: proxied_set.proxy.hits == 1)
    await store.put_deliveries([replace(failing, state="retrying")])
    proxied_set.proxy.heal()

    assert [delivery.sequence for delivery in await reading] == list(range(1, 301))
