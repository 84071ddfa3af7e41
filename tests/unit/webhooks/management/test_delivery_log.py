"""The delivery log of an endpoint, for any number of concurrent readers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from fhirpub.runtime.clock import now_ms
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import Delivery, DeliveryQuery
from fhirpub.testing.clock import HandClock
from fhirpub.testing.contracts.webhooks.records import queue, sequences
from fhirpub.testing.webhook_contract import NOW, a_delivery, an_attempt, an_endpoint
from fhirpub.webhooks.management import delivery_log
from fhirpub.webhooks.management.delivery_log import (
    DeliveryLog,
    Wanted,
    _percentile,
    effective_state,
)


class WatchedStore(SqliteStore):
    """Counts the pages that are being read at the same time."""

    reading = 0
    most = 0

    async def deliveries(self, tenant: str, query: DeliveryQuery) -> Sequence[Delivery]:
        self.reading += 1
        self.most = max(self.most, self.reading)
        try:
            return await super().deliveries(tenant, query)
        finally:
            self.reading -= 1


async def test_of_concurrent_requests_for_a_page_few_are_served_at_a_time(
    tmp_path: Path,
) -> None:
    store, endpoint = WatchedStore(tmp_path / "store.db", deadline_seconds=10), an_endpoint()
    await store.start()
    await store.put_endpoint(endpoint.tenant, endpoint)
    tried = a_delivery(endpoint.id, attempts=(an_attempt(status=500, answer=b"sorry"),))
    await store.put_deliveries([tried])
    log = DeliveryLog(store, clock=now_ms)

    pages = await asyncio.gather(
        *(log.latest(endpoint, Wanted(), limit=100) for _ in range(20)),
        *(log.events(endpoint, after=0, limit=100) for _ in range(20)),
    )

    await store.stop()
    assert store.most == 4
    assert [page.deliveries[0].attempts[0].answer for page in pages] == [b""] * 40


async def test_a_replay_in_steps_opens_all_that_is_meant_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "_REPLAY_BATCH_SIZE", 2)
    store, endpoint = SqliteStore(tmp_path / "store.db", deadline_seconds=10), an_endpoint()
    await store.start()
    await store.put_endpoint(endpoint.tenant, endpoint)
    await queue(store, 7, endpoint=endpoint.id, state="dead", ended=1)
    log, reopened = DeliveryLog(store, clock=now_ms), 0
    place: int | None = 2

    while place is not None:
        step = await log.replay(endpoint, Wanted(from_sequence=place, to_sequence=6))
        place, reopened = step.following, reopened + step.reopened

    still_dead = await sequences(store, endpoint.id, states=frozenset({"dead"}))
    await store.stop()
    assert reopened == 5
    assert still_dead == [1, 7]


@pytest.mark.parametrize(
    ("durations", "half", "most"), [([], None, None), ([7], 7, 7), ([1, 2, 3], 2, 3)]
)
def test_a_percentile_is_one_of_the_durations_by_the_nearest_rank(
    durations: list[int], half: int | None, most: int | None
) -> None:
    assert (_percentile(durations, 0.5), _percentile(durations, 0.95)) == (half, most)


async def test_an_attempt_that_has_just_ended_is_of_the_last_hour_and_day(tmp_path: Path) -> None:
    store, endpoint = SqliteStore(tmp_path / "store.db", deadline_seconds=10), an_endpoint()
    await store.start()
    clock = HandClock()
    await store.put_endpoint(endpoint.tenant, endpoint)
    attempt = an_attempt(begun=clock.now - 40, ended=clock.now)
    await store.put_deliveries([a_delivery(endpoint.id, attempts=(attempt,))])

    stats = await DeliveryLog(store, clock=clock).stats(endpoint)

    await store.stop()
    assert (stats.by_hour[-1].succeeded, stats.by_day[-1].succeeded) == (1, 1)


async def test_a_replay_of_none_publishes_what_an_interrupted_one_has_reopened(
    tmp_path: Path,
) -> None:
    class Noting(SqliteStore):
        reopened: tuple[str, ...] | None = None

        async def reopen(
            self, tenant: str, endpoint_id: str, event_ids: Collection[str], *, now: int
        ) -> int:
            self.reopened = (*event_ids,)
            return await super().reopen(tenant, endpoint_id, event_ids, now=now)

    store, endpoint = Noting(tmp_path / "store.db", deadline_seconds=10), an_endpoint()
    await store.start()
    await store.put_endpoint(endpoint.tenant, endpoint)

    step = await DeliveryLog(store, clock=now_ms).replay(endpoint, Wanted(event_type="none"))

    await store.stop()
    assert (step.reopened, step.following, store.reopened) == (0, None, ())


def test_a_lease_that_ends_now_has_ended() -> None:
    delivery, endpoint = a_delivery("e", leased=NOW), an_endpoint()

    assert effective_state(delivery, endpoint, now=NOW) == "pending"
    assert effective_state(delivery, endpoint, now=NOW - 1) == "delivering"
