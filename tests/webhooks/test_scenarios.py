"""What takes several steps: restarts between attempts, sweeps, clocks that disagree."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from random import Random

import pytest

from fhirpub.runtime.clock import DAY_MS, now_ms
from fhirpub.storage.webhook_contract import Delivery
from fhirpub.testing.clock import HandClock
from fhirpub.testing.receiver import Received, Receiver, Reply
from tests.webhooks.harness import SETTINGS, open_harness

REPORTS = [f"{number:08d}-2222-4222-8222-222222222222" for number in range(6)]
REPORT = REPORTS[0]
SCHEDULE = [60.0, 300.0, 3600.0]
JITTER = 0.2
"""A wait is longer than that of the schedule by at most this share (D-177)."""


def versions_of(received: Iterable[Received]) -> dict[str, list[int]]:
    """Return the versions of each report that arrived, in the order of their arrival."""
    versions: dict[str, list[int]] = defaultdict(list)
    for one in received:
        data = one.json["data"]
        versions[data["id"]].append(int(data["version_id"]))
    return versions


async def test_a_schedule_goes_on_over_restarts_and_ends_as_it_would_without_them(
    each_store_url: str, clock: HandClock, receiver: Receiver
) -> None:
    settings = replace(SETTINGS, retry_seconds=SCHEDULE)
    receiver.answer_by(lambda one: Reply(status=500 if REPORT in one.body.decode() else 204))
    async with open_harness(each_store_url, clock=clock, settings=settings) as harness:
        endpoint = await harness.endpoint(receiver.url)
        await harness.commit(REPORT)
        await harness.until_states(endpoint, retrying=1)
    for number, wait in enumerate(SCHEDULE, start=1):
        clock.forward(seconds=wait - 1)
        async with open_harness(each_store_url, clock=clock, settings=settings) as harness:
            await harness.commit()
            await harness.until_states(endpoint, retrying=1, delivered=number)
            assert len(versions_of(receiver.received)[REPORT]) == number

            clock.forward(seconds=1 + wait * JITTER)
            ended = {"dead": 1} if number == len(SCHEDULE) else {"retrying": 1}
            await asyncio.to_thread(receiver.wait, 2 * number + 1)
            await harness.until_states(endpoint, delivered=number, **ended)

    assert len(versions_of(receiver.received)[REPORT]) == 1 + len(SCHEDULE)
    assert len({one.headers["webhook-id"] for one in receiver.received if REPORT in str(one)}) == 1


async def test_an_attempt_that_a_killed_process_began_counts_in_the_schedule(
    each_store_url: str, clock: HandClock, receiver: Receiver
) -> None:
    settings = replace(SETTINGS, retry_seconds=SCHEDULE[:2])
    receiver.answer(Reply(status=500))
    async with open_harness(each_store_url, clock=clock, settings=settings) as harness:
        endpoint = await harness.endpoint(receiver.url)
        await harness.commit()
        await harness.until_states(endpoint, retrying=1)
    clock.forward(seconds=SCHEDULE[0] * (1 + JITTER))
    async with open_harness(each_store_url, clock=clock, sends=False) as harness:
        (delivery,) = await harness.deliveries(endpoint)
        assert await harness.store.begin([delivery.key], now=clock(), until=clock() + 1000)

    async with open_harness(each_store_url, clock=clock, settings=settings) as harness:
        clock.forward(seconds=1)
        await harness.until_states(endpoint, dead=1)

    assert [one.headers["x-webhook-attempt"] for one in receiver.received] == ["1", "3"]


async def test_sweeps_during_dispatch_delete_only_what_has_ended(
    each_store_url: str, receiver: Receiver
) -> None:
    random = Random(7)

    def answer(received: Received) -> Reply:
        fails = received.headers["x-webhook-attempt"] == "1" and random.random() < 0.2
        return Reply(status=500 if fails else 204)

    receiver.answer_by(answer)
    async with open_harness(each_store_url, clock=now_ms) as harness:
        endpoint = await harness.endpoint(receiver.url)
        working = asyncio.gather(*(harness.commits(20, report) for report in REPORTS))

        async def left() -> Sequence[Delivery]:
            end = now_ms() + DAY_MS
            await harness.store.sweep_deliveries(delivered=end, dead=end, open_=end)
            return await harness.deliveries(endpoint)

        async with asyncio.timeout(90):
            while [(one.sequence, one.state) for one in await left()] != [(120, "delivered")]:
                await asyncio.sleep(0.005)
        await working

    sent = versions_of(receiver.received)
    assert [sorted({*sent[report]}) for report in REPORTS] == [list(range(1, 21))] * len(REPORTS)
    assert all(sent[report] == sorted(sent[report]) for report in REPORTS)


@pytest.mark.parametrize("seconds", [-60.0, 3.0, 60.0])
async def test_processes_whose_clocks_disagree_lose_nothing_and_keep_the_order(
    each_store_url: str, receiver: Receiver, seconds: float
) -> None:
    # The leases of one last a second. By a clock that is ahead of it they have always ended.
    # Each attempt that is taken over counts: on a slow machine those may be many.
    settings = replace(SETTINGS, timeout_seconds=2.0, lease_seconds=1.0, retry_forever=True)
    settings = replace(settings, connect_seconds=2.0)
    async with AsyncExitStack() as stack:
        harness, _another = [
            await stack.enter_async_context(
                open_harness(each_store_url, clock=clock, settings=settings)
            )
            for clock in (now_ms, lambda: now_ms() + round(seconds * 1000))
        ]
        endpoint = await harness.endpoint(receiver.url)
        for _round in range(4):
            await asyncio.gather(*(harness.commits(5, report) for report in REPORTS))
            await asyncio.sleep(0.5)
        await harness.until_states(endpoint, delivered=120, seconds=90)

    found = versions_of(receiver.received)
    for report in REPORTS:
        # What is sent twice is no news: an order is kept if what arrives first is in order.
        assert list(dict.fromkeys(found[report])) == list(range(1, 21))
