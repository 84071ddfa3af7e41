"""Endpoints, deliveries and events for the tests of a store, and the steps of an attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fhirpub.storage.contract import Version
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import (
    Attempt,
    AttemptResult,
    Delivery,
    DeliveryQuery,
    DeliveryState,
    Endpoint,
    EndpointSecret,
)
from fhirpub.testing.samples import LAB, new_id

NOW, UNTIL = 1_700_000_000_000, 1_700_000_030_000
"""A time, and the end of a lease that begins then, in milliseconds."""


EVENTS = b'[{"id":"1"}]'
"""The events of a version, as JSON."""


def an_endpoint(**changes: Any) -> Endpoint:
    """Return a new endpoint of the tenant ``LAB``.

    Args:
        **changes: The fields that differ from the sample.

    Returns:
        The endpoint, with an id of its own.
    """
    usual = Endpoint(id=new_id(), tenant=LAB, url="https://lab.example/hook", created=NOW)
    return replace(usual, **changes)


def a_delivery(endpoint: str, sequence: int = 1, **changes: Any) -> Delivery:
    """Return a delivery of the tenant ``LAB`` without attempts.

    Args:
        endpoint: The id of the endpoint.
        sequence: Its position in the queue, from which its event id follows.
        **changes: Other fields that differ from the sample.

    Returns:
        The delivery.
    """
    usual = Delivery(
        endpoint=endpoint,
        tenant=LAB,
        sequence=sequence,
        event_id=f"evt_{sequence}",
        event_type="diagnosticreport.created",
        resource="DiagnosticReport/1",
        created=NOW,
        body=b'{"sequence":%d}' % sequence,
    )
    return replace(usual, **changes)


def an_attempt(number: int = 1, **changes: Any) -> Attempt:
    """Return an attempt that got the status 200.

    Args:
        number: Its number, from 1.
        **changes: Other fields that differ from the sample.

    Returns:
        The attempt.
    """
    usual = Attempt(number=number, begun=NOW, ended=NOW + 40, status=200, duration=40)
    return replace(usual, **changes)


def a_full_endpoint() -> Endpoint:
    """Return an endpoint of which every field differs from its default."""
    return an_endpoint(
        url="https://größe.example/?a=1&b=測試",
        events=("diagnosticreport.*", "*"),
        payload="id-only",
        ordering="strict",
        description="Süd 🩺\n'\"",
        state="disabled",
        why="gone",
        secrets=(EndpointSecret(bytes(range(256))), EndpointSecret(b"old", UNTIL)),
        token=bytes(range(256)),
    )


def a_full_delivery(endpoint: str) -> Delivery:
    """Return a delivery of an endpoint, of which every field differs from its default."""
    attempts = (
        an_attempt(4, ended=None, status=0, duration=0),
        an_attempt(
            5,
            status=503,
            reason="Größe",
            dialled=("192.0.2.1", "2001:db8::1"),
            answer=bytes(range(256)),
        ),
    )
    return a_delivery(
        endpoint,
        7,
        resource="",
        body=bytes(range(256)),
        state="dead",
        due=NOW + 1,
        number=5,
        leased=NOW + 2,
        ended=NOW + 3,
        attempts=attempts,
    )


async def queue(
    store: Store, count: int, *, endpoint: str | None = None, **changes: Any
) -> list[Delivery]:
    """Append new deliveries to the queue of an endpoint, from position 1.

    Args:
        store: The store.
        count: The number of deliveries.
        endpoint: The id of the endpoint; None for a new one.
        **changes: Fields of all deliveries that differ from the sample.

    Returns:
        The deliveries.

    Raises:
        AssertionError: One of the positions was taken.
    """
    endpoint = endpoint or new_id()
    deliveries = [a_delivery(endpoint, number, **changes) for number in range(1, count + 1)]
    assert await store.append(deliveries) == count
    return deliveries


async def stored_deliveries(store: Store, endpoint: str, **changes: Any) -> list[Delivery]:
    """Return the stored deliveries of an endpoint.

    Args:
        store: The store.
        endpoint: The id of the endpoint.
        **changes: Other fields of the query.

    Returns:
        The deliveries in the order of the query.
    """
    return list(await store.deliveries(LAB, DeliveryQuery(endpoint=endpoint, **changes)))


async def begin(store: Store, delivery: Delivery, *, now: int = NOW) -> Attempt:
    """Begin an attempt of a delivery, with a lease of 30 seconds.

    Args:
        store: The store.
        delivery: The delivery.
        now: The current time, in milliseconds.

    Returns:
        The attempt, not ended.

    Raises:
        ValueError: The delivery cannot be leased.
    """
    (taken,) = await store.begin([delivery.key], now=now, until=now + 30_000)
    return taken.attempts[-1]


async def end(
    store: Store, delivery: Delivery, state: DeliveryState = "delivered", *, now: int = NOW
) -> None:
    """Begin an attempt of a delivery, and end it after 40 milliseconds.

    Args:
        store: The store.
        delivery: The delivery.
        state: The state of the delivery after it.
        now: When the attempt begins, in milliseconds.

    Raises:
        ValueError: The delivery cannot be leased.
    """
    attempt = replace(await begin(store, delivery, now=now), ended=now + 40)
    await store.finish([AttemptResult(key=delivery.key, attempt=attempt, state=state)])


async def sequences(store: Store, endpoint: str, **changes: Any) -> list[int]:
    """Return the positions of the stored deliveries of an endpoint.

    Args:
        store: The store.
        endpoint: The id of the endpoint.
        **changes: Other fields of the query.

    Returns:
        The positions in the order of the query.
    """
    return [delivery.sequence for delivery in await stored_deliveries(store, endpoint, **changes)]


async def events_added(store: Store, versions: Sequence[Version], tenant: str = LAB) -> None:
    """Add versions, each with the events ``EVENTS``.

    Raises:
        AssertionError: One of them was not new.
    """
    for version in versions:
        assert await store.add(tenant, replace(version, events=EVENTS))


async def pending_keys(store: Store, *, limit: int = 100) -> list[tuple[str, int]]:
    """Return the keys of the entries in the outbox.

    Args:
        store: The store.
        limit: The maximum number of entries.

    Returns:
        The ids and versions, in the order of the outbox.
    """
    return [
        (entry.id, entry.version) for _tenant, entry in await store.pending_outbox(limit=limit)
    ]
