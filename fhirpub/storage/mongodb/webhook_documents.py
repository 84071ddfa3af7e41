"""Endpoints and deliveries as BSON documents and back, and what is asked for of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from bson.objectid import ObjectId
from pymongo import UpdateOne

from fhirpub.storage.webhook_contract import (
    MAX_ATTEMPTS_KEPT,
    Attempt,
    AttemptResult,
    Delivery,
    DeliveryKey,
    DeliveryQuery,
    Endpoint,
    EndpointSecret,
    QueuedDelivery,
)

Document = Mapping[str, Any]
Filter = dict[str, Any]

OPEN: Filter = {"$in": ["pending", "retrying"]}
WAITING_FIELDS = dict.fromkeys(
    ("endpoint", "sequence", "event_id", "resource", "created", "due", "number", "leased"), True
) | {"_id": False}
LOG_FIELDS = {"_id": False, "endpoint": True, "event_id": True, "attempts": True}
_NOT_THE_TENANTS = ("condition", "reopened")


def endpoint_document(endpoint: Endpoint) -> dict[str, Any]:
    """Return the document of an endpoint."""
    return {
        "_id": endpoint.id,
        "tenant": endpoint.tenant,
        "url": endpoint.url,
        "created": endpoint.created,
        "events": list(endpoint.events),
        "payload": endpoint.payload,
        "ordering": endpoint.ordering,
        "description": endpoint.description,
        "state": endpoint.state,
        "why": endpoint.why,
        "secrets": [{"sealed": s.sealed, "expires": s.expires} for s in endpoint.secrets],
        "token": endpoint.token,
        "revision": endpoint.revision,
        "condition": endpoint.condition,
        "reopened": endpoint.reopened,
    }


def endpoint_change(endpoint: Endpoint) -> tuple[Filter, dict[str, Any]]:
    """Return which endpoint a change replaces, and what it changes."""
    document = endpoint_document(endpoint)
    over = {"_id": endpoint.id, "tenant": endpoint.tenant, "revision": endpoint.revision - 1}
    changed = {name: item for name, item in document.items() if name not in _NOT_THE_TENANTS}
    return over, {"$set": changed}


def endpoint_of(document: Document) -> Endpoint:
    """Return the endpoint of a document."""
    d = document
    return Endpoint(
        id=d["_id"],
        tenant=d["tenant"],
        url=d["url"],
        created=d["created"],
        events=tuple(d["events"]),
        payload=d["payload"],
        ordering=d["ordering"],
        description=d["description"],
        state=d["state"],
        why=d["why"],
        secrets=tuple(
            EndpointSecret(secret["sealed"], secret["expires"]) for secret in d["secrets"]
        ),
        token=d["token"],
        revision=d["revision"],
        condition=d["condition"],
        reopened=d["reopened"],
    )


def delivery_id(endpoint: str, event_id: str) -> str:
    """Return the ``_id`` of a delivery: no other of its endpoint, so none on its shard, has it."""
    return f"{endpoint}/{event_id}"


def filter_by_keys(keys: Iterable[DeliveryKey]) -> Filter:
    """Return what finds deliveries by their keys, and on which shards they are."""
    wanted = list(keys)
    return {
        "_id": {"$in": [delivery_id(*item) for item in wanted]},
        "endpoint": {"$in": list({endpoint for endpoint, _event_id in wanted})},
    }


def filter_by_endpoint(endpoint: str, event_ids: Collection[str]) -> Filter:
    """Return what finds deliveries of one endpoint by their events."""
    return {
        "_id": {"$in": [delivery_id(endpoint, id_) for id_ in event_ids]},
        "endpoint": endpoint,
    }


def delivery_document(delivery: Delivery) -> dict[str, Any]:
    """Return the document of a delivery; ``begin`` is when its latest attempt was."""
    d = delivery
    document: dict[str, Any] = {
        "_id": delivery_id(d.endpoint, d.event_id),
        "endpoint": d.endpoint,
        "sequence": d.sequence,
        "event_id": d.event_id,
        "tenant": d.tenant,
        "event_type": d.event_type,
        "resource": d.resource,
        "created": d.created,
        "state": d.state,
        "due": d.due,
        "number": d.number,
        "begun": d.attempts[-1].begun if d.attempts else 0,
        "leased": d.leased,
        "attempts": [_attempt_document(attempt) for attempt in d.attempts],
        "body": d.body,
    }
    if d.ended is not None:  # absent otherwise: the index over it has entries for ended ones
        document["ended"] = d.ended
    return document


def delivery_of(document: Document) -> Delivery:
    """Return the delivery of a document."""
    d = document
    return Delivery(
        endpoint=d["endpoint"],
        tenant=d["tenant"],
        sequence=d["sequence"],
        event_id=d["event_id"],
        event_type=d["event_type"],
        resource=d["resource"],
        created=d["created"],
        body=d["body"],
        state=d["state"],
        due=d["due"],
        number=d["number"],
        leased=d["leased"],
        ended=d.get("ended"),
        attempts=_attempts_of(d),
    )


def log_of(document: Document) -> tuple[DeliveryKey, Sequence[Attempt]]:
    """Return of which delivery ``LOG_FIELDS`` shows the log, and the log."""
    return (document["endpoint"], document["event_id"]), _attempts_of(document)


def waiting_of(document: Document) -> QueuedDelivery:
    """Return as much of a delivery as ``WAITING_FIELDS`` shows."""
    return QueuedDelivery(**document)


def _attempt_document(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "begun": attempt.begun,
        "ended": attempt.ended,
        "status": attempt.status,
        "reason": attempt.reason,
        "duration": attempt.duration,
        "dialled": list(attempt.dialled),
        "answer": attempt.answer,
    }


def _attempts_of(document: Document) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(**{**attempt, "dialled": tuple(attempt["dialled"])})
        for attempt in document["attempts"]
    )


def beginning(token: ObjectId, *, now: int, until: int) -> list[dict[str, Any]]:
    """Return the update that begins the next attempt of a delivery, signed with a token."""
    number = {"$add": ["$number", 1]}
    attempt = {**_attempt_document(Attempt(number=0, begun=now)), "number": number}
    log = {"$slice": [{"$concatArrays": ["$attempts", [attempt]]}, -MAX_ATTEMPTS_KEPT]}
    begun = {"number": number, "begun": now, "leased": until, "taken": token, "attempts": log}
    return [{"$set": begun}]


def ending(outcome: AttemptResult) -> UpdateOne:
    """Return the update that notes what came of an attempt, if it is still the latest."""
    attempt = outcome.attempt
    which = {"number": attempt.number, "begun": attempt.begun}
    changed: dict[str, Any] = {
        "state": outcome.state,
        "due": outcome.due,
        "leased": 0,
        "attempts.$[latest]": _attempt_document(attempt),
    }
    if outcome.state in ("delivered", "dead"):
        changed["ended"] = attempt.ended
    return UpdateOne(
        {**filter_by_endpoint(outcome.key[0], outcome.key[1:]), **which, "state": OPEN},
        {"$set": changed},
        array_filters=[{f"latest.{name}": number for name, number in which.items()}],
    )


def filter_by_query(tenant: str, query: DeliveryQuery) -> Filter:
    """Return what finds the deliveries that a query asks for."""
    wanted: defaultdict[str, Filter] = defaultdict(dict)
    wanted["sequence"]["$gt"] = query.after
    for field, operator, value in (
        ("sequence", "$lt", query.before),
        ("event_type", "$eq", query.event_type),
        ("created", "$gte", query.since),
        ("created", "$lt", query.until),
        ("state", "$in", list(query.states) or None),
    ):
        if value is not None:
            wanted[field][operator] = value
    ours: Filter = {"endpoint": query.endpoint, "tenant": tenant, **wanted}
    if query.event_ids is not None:
        ours |= filter_by_endpoint(query.endpoint, query.event_ids)
    return ours
