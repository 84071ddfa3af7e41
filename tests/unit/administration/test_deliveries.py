"""A replay of many deliveries is cut into calls: each goes on where the last one ended."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.administration import deliveries
from fhirpub.administration.context import Administration
from fhirpub.errors import InvalidContent
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.contracts.webhooks.records import an_endpoint, queue
from fhirpub.webhooks.management import delivery_log
from fhirpub.webhooks.management.delivery_log import DeliveryLog, Wanted
from tests.unit.administration.declared import declared


class WatchedStore(SqliteStore):
    """A store that notes what is opened again."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, deadline_seconds=10)
        self.opened: list[tuple[str, str]] = []

    async def reopen(
        self, tenant: str, endpoint_id: str, event_ids: Collection[str], *, now: int
    ) -> int:
        self.opened += [(endpoint_id, event_id) for event_id in event_ids]
        return await super().reopen(tenant, endpoint_id, event_ids, now=now)


def test_a_replay_without_a_selection_is_refused() -> None:
    with pytest.raises(InvalidContent, match="name events, or since, until or dead"):
        deliveries._wanted({"endpoint": "lis", "events": []})


async def test_a_replay_that_is_cut_into_calls_opens_each_delivery_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "_REPLAY_BATCH_SIZE", 2)
    monkeypatch.setattr(deliveries, "_MAX_REPLAYED", 2)
    store, endpoints = WatchedStore(tmp_path / "store.db"), [an_endpoint(), an_endpoint()]
    await store.start()
    for endpoint in endpoints:
        await store.put_endpoint(endpoint.tenant, endpoint)
        await queue(store, 5, endpoint=endpoint.id, state="dead", ended=1)
    found: Any = SimpleNamespace(deliveries=DeliveryLog(store, clock=now_ms))
    place, calls = deliveries._Place(), 0

    while True:
        administration = cast("Administration", found)
        step = await deliveries._replay(administration, endpoints, Wanted(), place)
        calls += 1
        if step["following"] is None:
            break
        place = deliveries._Place.read(step["following"])

    await store.stop()
    assert len(store.opened) == len(set(store.opened)) == 10
    assert calls > 2


@pytest.mark.parametrize(
    ("given", "selected"),
    [
        ({"since": 0}, (None, 0, None)),
        ({"until": 7}, (None, None, 7)),
        ({"dead": True}, (None, None, None)),
        ({"events": ["evt_1"]}, (frozenset({"evt_1"}), None, None)),
    ],
)
def test_one_criterion_is_enough_to_select(given: dict[str, Any], selected: Any) -> None:
    wanted = deliveries._wanted(given)

    assert (wanted.event_ids, wanted.since, wanted.until) == selected


async def test_a_replay_that_is_cut_names_the_endpoints_that_still_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "_REPLAY_BATCH_SIZE", 2)
    monkeypatch.setattr(deliveries, "_MAX_REPLAYED", 2)
    store, endpoint = WatchedStore(tmp_path / "store.db"), an_endpoint(state="paused")
    await store.start()
    await store.put_endpoint(endpoint.tenant, endpoint)
    await queue(store, 5, endpoint=endpoint.id, state="dead", ended=1)
    found: Any = SimpleNamespace(deliveries=DeliveryLog(store, clock=now_ms))

    step = await deliveries._replay(found, [endpoint], Wanted(), deliveries._Place())

    await store.stop()
    assert step["following"] is not None
    assert step["held"] == [{"endpoint": endpoint.id, "state": "paused"}]


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(deliveries.OPERATIONS) == {
        "deliveries list": [
            "GET /deliveries 200",
            "creates a store",
            "query state pending|delivering|retrying|delivered|dead|held|cancelled",
            "query endpoint string",
            "query tenant string",
            "query limit integer >=1 <=1000",
        ],
        "deliveries show": [
            "GET /deliveries/{event} 200",
            "creates a store",
            "path event! string",
            "query endpoint string",
        ],
        "deliveries replay": [
            "POST /deliveries/replay 200",
            "creates a store, as delivery.replay",
            "body events strings",
            "body since instant",
            "body until instant",
            "body dead boolean",
            "body endpoint string",
            "body tenant string",
            "body from string",
        ],
    }
