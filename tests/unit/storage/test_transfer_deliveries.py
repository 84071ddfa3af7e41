"""Which deliveries a copy writes, and where the target is ahead."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.errors import ConfigurationError
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.transfer import _endpoints_to_copy
from fhirpub.testing.contracts.webhooks.records import a_delivery, an_attempt
from fhirpub.testing.samples import new_id

EARLY, LATE = an_attempt(1, begun=100), an_attempt(2, begun=200)


@pytest.fixture
async def target(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(tmp_path / "target.db", deadline_seconds=30)
    await store.start()
    yield store
    await store.stop()


@pytest.mark.parametrize(
    ("there", "source", "is_copied"),
    [
        ({}, {}, False),
        ({"due": 9}, {"due": 5}, True),
        ({"attempts": (EARLY,)}, {"attempts": (EARLY,), "state": "dead", "ended": 7}, False),
        ({"attempts": (EARLY,), "state": "dead", "ended": 7}, {"attempts": (EARLY,)}, True),
        ({}, {"attempts": (EARLY,)}, True),
        ({"attempts": (EARLY,)}, {}, False),
        ({"attempts": (EARLY,)}, {"attempts": (EARLY, LATE)}, True),
        ({"attempts": (EARLY, LATE)}, {"attempts": (EARLY,)}, False),
        ({"attempts": (LATE,)}, {"attempts": (EARLY, EARLY)}, False),
    ],
    ids=[
        "the same",
        "due at another time",
        "reopened in the target",
        "reopened in the source",
        "tried in the source",
        "tried in the target",
        "tried again in the source",
        "tried again in the target",
        "later in the target though more often in the source",
    ],
)
async def test_a_delivery_is_copied_unless_the_target_is_ahead(
    target: SqliteStore, there: dict[str, Any], source: dict[str, Any], *, is_copied: bool
) -> None:
    usual = a_delivery(new_id())
    await target.put_deliveries([replace(usual, **there)])
    delivery = replace(usual, **source)

    copied = await _endpoints_to_copy(usual.endpoint, [delivery], target)

    assert copied == ([delivery] if is_copied else [])


async def test_what_the_target_lacks_is_copied_in_the_order_of_the_queue(
    target: SqliteStore,
) -> None:
    endpoint = new_id()
    queue = [a_delivery(endpoint, number) for number in range(4, 9)]
    await target.put_deliveries([queue[1], a_delivery(endpoint, 3), a_delivery(endpoint, 9)])

    assert await _endpoints_to_copy(endpoint, queue, target) == [queue[0], *queue[2:]]


@pytest.mark.parametrize("place", [4, 6, 8])
async def test_another_event_in_any_place_of_the_target_is_refused(
    target: SqliteStore, place: int
) -> None:
    endpoint = new_id()
    await target.put_deliveries([a_delivery(endpoint, place, event_id="evt_of_the_target")])

    with pytest.raises(ConfigurationError, match="has sent events of its own"):
        await _endpoints_to_copy(endpoint, [a_delivery(endpoint, n) for n in range(4, 9)], target)
