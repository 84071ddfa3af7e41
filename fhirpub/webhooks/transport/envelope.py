"""From a committed version to the bytes that receivers get.

They hold the five fields of the specification, and two more: the version of this form, and a
number by which a receiver can prove that it missed nothing. A third, the trace, is there only if
the request that made the version belongs to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.fhir.times import instant, parse_instant
from fhirpub.storage.webhook_contract import OutboxEntry, Payload

API_VERSION = "1"
_IDS = ("resource_type", "id", "version_id", "self")
_TRACE = "traceparent"
_QUOTED_TRACE = b'"traceparent":'
LARGEST_BODY = 20_000
"""Bytes of a body; a larger event is sent with ids only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEvent:
    """One event as every endpoint gets it, but for its place in the endpoint's sequence.

    ``id`` and ``transaction_id`` are of ``[A-Za-z0-9_]{1,64}``, ``type`` is
    ``<composition_type>.<action>``, ``time`` in milliseconds UTC is that of the version. ``ids``
    names the version, ``details`` holds what the resource type adds. ``resource`` is
    ``Type/id``, empty for events about no resource. ``traceparent`` names the trace of the request
    that made the version, empty if there is none (D-372).
    """

    id: str
    transaction_id: str
    type: str
    time: int
    ids: Mapping[str, Any]
    details: Mapping[str, Any]
    resource: str = ""
    traceparent: str = ""

    def body(self, *, sequence: int, payload: Payload = "standard") -> bytes:
        """Return the body for one endpoint, the same bytes at every call."""
        details = {} if payload == "id-only" else self.details
        body = self._json(sequence, details)
        return body if len(body) <= LARGEST_BODY else self._json(sequence, {})

    def _json(self, sequence: int, details: Mapping[str, Any]) -> bytes:
        address = {"self": self.ids["self"]}
        trace = {_TRACE: self.traceparent} if self.traceparent else {}
        return dumps(
            {
                "transaction_id": self.transaction_id,
                "event_id": self.id,
                "event_type": self.type,
                "timestamp": instant(self.time),
                "sequence": sequence,
                "api_version": API_VERSION,
                **trace,
                "data": {**self.ids, **details} | address,
            }
        )


def without_details(body: bytes) -> bytes:
    """Return a body of ours with the ids alone, as after an erasure of its resource (ADR 36)."""
    event = loads_stored(body)
    data = {name: event["data"][name] for name in _IDS if name in event["data"]}
    return dumps(event | {"data": data})


def time_of(body: bytes) -> int:
    """Return the time of the event in a body of ours, in milliseconds UTC."""
    moment = parse_instant(loads_stored(body)["timestamp"])
    return moment or 0


def trace_of(body: bytes) -> str:
    """Return the trace that a body of ours names, empty if it names none."""
    return str(loads_stored(body).get(_TRACE, "")) if _QUOTED_TRACE in body else ""


def events_of(version: OutboxEntry, *, fhir_url: str) -> tuple[WebhookEvent, ...]:
    """Return the events that were stored with a version, in their order.

    ``fhir_url`` is the base of the service's FHIR addresses, without a slash at its end.
    """
    ids = {
        "resource_type": version.type,
        "id": version.id,
        "version_id": str(version.version),
        "self": f"{fhir_url}/{version.type}/{version.id}/_history/{version.version}",
    }
    return tuple(
        WebhookEvent(
            id=event_id(stored["id"]),
            transaction_id=transaction_id(version),
            type=stored["type"],
            time=version.updated,
            ids=ids,
            resource=f"{version.type}/{version.id}",
            traceparent=stored.get(_TRACE, ""),
            details={
                name: value
                for name, value in stored["data"].items()
                if name not in ids and name != "version"
            },
        )
        for stored in loads_stored(version.events)
    )


def event_of_endpoint(
    event_type: str,
    endpoint_id: str,
    *,
    name: str,
    now: int,
    base_url: str,
    more: Mapping[str, Any],
) -> WebhookEvent:
    """Return an event about an endpoint itself, not about a resource.

    ``name`` is of 32 hex digits, ``base_url`` the service's address without a slash at its end,
    ``more`` are the fields besides the endpoint's id and address.
    """
    address = f"{base_url}/webhooks/v1/endpoints/{endpoint_id}"
    return WebhookEvent(
        id=f"evt_{name}",
        transaction_id=f"req_{name}",
        type=event_type,
        time=now,
        ids={"endpoint_id": endpoint_id, **more, "self": address},
        details={},
    )


def event_id(stored_id: str) -> str:
    """Return an event's name on the wire: ``<uuid>.2.1`` is ``evt_<32 hex digits>_2_1`` (D-169).

    Signatures separate their parts by dots, so that an id may not hold one.
    """
    return "evt_" + stored_id.replace("-", "").replace(".", "_")


def transaction_id(version: OutboxEntry) -> str:
    """Return the name of the commit that made a version; all its events share it."""
    return f"req_{version.id.replace('-', '')}_{version.version}"
