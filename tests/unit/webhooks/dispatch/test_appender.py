"""Deliveries are appended behind what others have appended, each event once."""

from __future__ import annotations

from dataclasses import replace

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


async def test_the_first_delivery_has_the_number_one(appenders: list[Appender]) -> None:
    (made,) = await appenders[0].append(ENDPOINT, [an_event(1)])

    assert (made.sequence, made.endpoint, made.tenant) == (1, ENDPOINT.id, ENDPOINT.tenant)
    assert (made.event_id, made.event_type) == (an_event(1).id, "message.exhausted")
    assert b'"sequence":1' in made.body
    assert made.created == HandClock().now


async def test_no_events_make_no_deliveries(appenders: list[Appender]) -> None:
    assert await appenders[0].append(ENDPOINT, []) == []


async def test_queues_of_two_endpoints_are_numbered_apart(appenders: list[Appender]) -> None:
    other = an_endpoint()
    await appenders[0].append(ENDPOINT, [an_event(1), an_event(2)])

    made = await appenders[0].append(other, [an_event(3)])

    assert [delivery.sequence for delivery in made] == [1]


async def test_an_endpoint_that_wants_ids_alone_gets_no_details(
    appenders: list[Appender],
) -> None:
    event = replace(an_event(1), details={"status": "final"})

    (whole,) = await appenders[0].append(an_endpoint(), [event])
    (short,) = await appenders[0].append(an_endpoint(payload="id-only"), [event])

    assert b"final" in whole.body
    assert b"final" not in short.body


async def test_after_a_race_that_was_lost_in_part_the_queue_has_no_gap(
    appenders: list[Appender],
) -> None:
    ours, theirs = appenders
    await theirs.append(ENDPOINT, [an_event(1)])

    made = await ours.append(ENDPOINT, [an_event(2), an_event(1), an_event(3)])
    made += await ours.append(ENDPOINT, [an_event(4)])

    assert [(one.sequence, one.event_id) for one in made] == [
        (sequence, an_event(sequence).id) for sequence in (2, 3, 4)
    ]
