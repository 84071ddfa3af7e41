"""Endpoints, deliveries and attempts as rows of the file, and back."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from fhirpub.storage.sqlite.rows import Row
from fhirpub.storage.webhook_contract import (
    Attempt,
    AttemptResult,
    Delivery,
    Endpoint,
    EndpointSecret,
    QueuedDelivery,
)

_ENDPOINTS_KEPT = 16_384


def endpoint_row(endpoint: Endpoint) -> Row:
    """Return the row of an endpoint."""
    secrets = [[b64encode(secret.sealed).decode(), secret.expires] for secret in endpoint.secrets]
    return (
        endpoint.id,
        endpoint.tenant,
        endpoint.created,
        endpoint.state,
        endpoint.revision,
        endpoint.url,
        json.dumps(endpoint.events),
        endpoint.payload,
        endpoint.ordering,
        endpoint.description,
        endpoint.why,
        json.dumps(secrets),
        endpoint.token,
        endpoint.reopened,
        endpoint.condition,
    )


# All of them are read each second, and hardly ever one has changed.
@lru_cache(_ENDPOINTS_KEPT)
def endpoint_of(row: Row) -> Endpoint:
    """Return the endpoint in a row."""
    return Endpoint(
        id=row[0],
        tenant=row[1],
        created=row[2],
        state=row[3],
        revision=row[4],
        url=row[5],
        events=tuple(json.loads(row[6])),
        payload=row[7],
        ordering=row[8],
        description=row[9],
        why=row[10],
        secrets=tuple(EndpointSecret(b64decode(load[0]), load[1]) for load in json.loads(row[11])),
        token=row[12],
        reopened=row[13],
        condition=row[14],
    )


def delivery_row(delivery: Delivery) -> Row:
    """Return the row of a delivery."""
    attempts = delivery.attempts
    return (
        delivery.endpoint,
        delivery.event_id,
        delivery.sequence,
        delivery.resource,
        delivery.state,
        delivery.due,
        delivery.number,
        attempts[-1].begun if attempts else 0,
        delivery.leased,
        delivery.tenant,
        delivery.event_type,
        delivery.created,
        delivery.ended,
        json.dumps([_attempt_row(attempt) for attempt in attempts]),
        delivery.body,
    )


def delivery_of(row: Row) -> Delivery:
    """Return the delivery in a row."""
    return Delivery(
        endpoint=row[0],
        event_id=row[1],
        sequence=row[2],
        resource=row[3],
        state=row[4],
        due=row[5],
        number=row[6],
        leased=row[8],
        tenant=row[9],
        event_type=row[10],
        created=row[11],
        ended=row[12],
        attempts=attempts_of(row[13]),
        body=row[14],
    )


def waiting_of(row: Row) -> QueuedDelivery:
    """Return as much of a delivery as a queue holds."""
    return QueuedDelivery(
        endpoint=row[0],
        sequence=row[1],
        event_id=row[2],
        resource=row[3],
        created=row[4],
        due=row[5],
        number=row[6],
        leased=row[7],
    )


def _attempt_row(attempt: Attempt) -> Row:
    return (
        attempt.number,
        attempt.begun,
        attempt.ended,
        attempt.status,
        attempt.reason,
        attempt.duration,
        attempt.dialled,
        b64encode(attempt.answer).decode(),
    )


def attempts_of(log: str) -> tuple[Attempt, ...]:
    """Return the attempts in the log of a delivery."""
    return tuple(_attempt(load) for load in json.loads(log))


def _attempt(row: Sequence[Any]) -> Attempt:
    return Attempt(
        number=row[0],
        begun=row[1],
        ended=row[2],
        status=row[3],
        reason=row[4],
        duration=row[5],
        dialled=tuple(row[6]),
        answer=b64decode(row[7]),
    )


def outcome_row(outcome: AttemptResult) -> Row:
    """Return the row that stores the outcome of an attempt."""
    attempt = outcome.attempt
    ended = attempt.ended if outcome.state in ("delivered", "dead") else None
    row = json.dumps(_attempt_row(attempt))
    return (
        *outcome.key,
        attempt.number,
        attempt.begun,
        outcome.state,
        outcome.due,
        ended,
        row,
    )
