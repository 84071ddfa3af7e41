"""Tests of listing and counting deliveries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import (
    DeliveryQuery,
)
from fhirpub.testing.contracts.webhooks.records import (
    NOW,
    a_delivery,
    end,
    queue,
    sequences,
)
from fhirpub.testing.samples import LAB, OTHER, new_id


class DeliveryLogContract:
    """Deliveries are listed and counted as requested, within their tenant."""

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, [1, 2, 3, 4, 5, 6]),
            ({"after": 2, "limit": 3}, [3, 4, 5]),
            ({"newest_first": True, "limit": 2}, [6, 5]),
            ({"newest_first": True, "before": 3}, [2, 1]),
            ({"before": 3}, [1, 2]),
            ({"states": ["delivered"]}, [1, 3]),
            ({"states": ["delivered", "retrying"]}, [1, 2, 3]),
            ({"states": ["delivered", "pending"], "limit": 3}, [1, 3, 4]),
            (
                {"states": ["delivered", "pending"], "newest_first": True, "before": 6},
                [5, 4, 3, 1],
            ),
            ({"states": ["dead"]}, []),
            ({"event_type": "diagnosticreport.updated"}, [4]),
            ({"event_ids": ["evt_2", "evt_5", "evt_9"]}, [2, 5]),
            ({"event_ids": ["evt_2", "evt_3"], "states": ["delivered"]}, [3]),
            ({"event_ids": []}, []),
            ({"since": NOW + 2, "until": NOW + 4}, [2, 3]),
            ({"limit": 0}, []),
        ],
        ids=str,
    )
    async def test_deliveries_are_listed_as_asked_for(
        self, store: Store, changes: dict[str, Any], expected: list[int]
    ) -> None:
        endpoint = new_id()
        deliveries = [a_delivery(endpoint, n, created=NOW + n) for n in range(1, 7)]
        deliveries[3] = replace(deliveries[3], event_type="diagnosticreport.updated")
        await store.append(deliveries)
        await queue(store, 6)
        for number, state in ((0, "delivered"), (1, "retrying"), (2, "delivered")):
            await end(store, deliveries[number], state)  # type: ignore[arg-type]

        wanted = {
            name: frozenset(value) if isinstance(value, list) else value
            for name, value in changes.items()
        }
        assert await sequences(store, endpoint, **wanted) == expected

    async def test_another_tenants_deliveries_are_not_seen(self, store: Store) -> None:
        (delivery,) = await queue(store, 1)

        assert await store.deliveries(OTHER, DeliveryQuery(endpoint=delivery.endpoint)) == []
        assert await store.count_deliveries(OTHER, delivery.endpoint) == {}

    async def test_deliveries_are_counted_by_their_states(self, store: Store) -> None:
        deliveries = await queue(store, 5)
        await end(store, deliveries[0])
        await end(store, deliveries[1], "dead")
        await end(store, deliveries[2], "retrying")

        counts = await store.count_deliveries(LAB, deliveries[0].endpoint)

        assert counts == {"delivered": 1, "dead": 1, "retrying": 1, "pending": 2}
