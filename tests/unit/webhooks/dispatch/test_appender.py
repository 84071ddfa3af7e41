"""Deliveries are appended behind what others have appended, each event once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.clock import HandClock
from fhirpub.testing.contracts.webhooks.records import an_endpoint
from fhirpub.webhooks.dispatch.appender import Appender
from fhirpub.webhooks.transport.envelope import WebhookEvent, event_of_endpoint

ENDPOINT = an_endpoint()


def an_event(number: int) -> WebhookEvent:
    return event_of_endpoint(
        "message.exhausted",
        ENDPOINT.id,
        name=f"{number:032x}",
        now=0,
        base_url="https://fhir.example.org",
        more={},
    )


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "fhirpub.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
def appenders(store: SqliteStore) -> list[Appender]:
    """Those of two processes."""
    return [Appender(store, clock=HandClock()) for _ in range(2)]


async def test_what_another_process_has_appended_is_not_in_the_way(
    appenders: list[Appender],
) -> None:
    ours, theirs = appenders
    await ours.append(ENDPOINT, [an_event(1)])
    await theirs.append(ENDPOINT, [an_event(2)])

    made = await ours.append(ENDPOINT, [an_event(3), an_event(4)])

    assert [delivery.sequence for delivery in made] == [3, 4]


async def test_an_event_is_appended_once_by_two_processes(appenders: list[Appender]) -> None:
    ours, theirs = appenders
    await theirs.append(ENDPOINT, [an_event(1), an_event(2)])

    made = await ours.append(ENDPOINT, [an_event(1), an_event(2), an_event(3)])

    assert [(delivery.sequence, delivery.event_id) for delivery in made] == [(3, an_event(3).id)]
