"""The schemas of the webhook operations: of their request and response bodies."""

from __future__ import annotations

import typing
from collections.abc import Iterable

from fhirpub.fhir.definitions.schema_components import OPEN, ref
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.storage.webhook_contract import EndpointState, Ordering, Payload
from fhirpub.web.handlers import webhook_deliveries
from fhirpub.webhooks.management.delivery_log import SHOWN_STATES
from fhirpub.webhooks.management.validation import (
    MAX_DESCRIPTION_LENGTH,
    MAX_GRACE_SECONDS,
    MAX_PATTERNS,
    MAX_TOKEN_LENGTH,
)
from fhirpub.webhooks.transport.url_policy import MAX_URL_LENGTH


def _object(required: Iterable[str] = (), /, **properties: JsonObject) -> JsonObject:
    named = {"type": "object", "required": [*required], "properties": properties}
    return {**named, "additionalProperties": OPEN}


def _all(**properties: JsonObject) -> JsonObject:
    return _object(properties, **properties)


def _list(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


def _choice(*values: str) -> JsonObject:
    return {"type": "string", "enum": [*values]}


def _or_null(kind: str) -> JsonObject:
    return {"type": [kind, "null"]}


def _fields(*required: str, **properties: JsonObject) -> JsonObject:
    """Return a body that has no other fields than these."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, **({"required": [*required]} if required else {})}


_TEXT: JsonObject = {"type": "string"}
_NUMBER: JsonObject = {"type": "integer", "format": "int64"}
_MOMENT: JsonObject = {"type": "string", "format": "date-time"}
_SEQUENCE: JsonObject = {
    **_NUMBER,
    "minimum": 1,
    "maximum": webhook_deliveries.HIGHEST_SEQUENCE,
}
_STATUS: JsonObject = _choice(*SHOWN_STATES)
_STATE: JsonObject = _choice(*typing.get_args(EndpointState))
_COUNT = _all(since=_MOMENT, succeeded=_NUMBER, failed=_NUMBER)
_EVENT = {"event_id": _TEXT, "event_type": _TEXT, "sequence": _NUMBER, "status": _STATUS}
_SETTINGS: dict[str, JsonObject] = {
    "url": {
        "description": "Where events are sent, with https; or `pull:NAME`: a client reads them.",
        "type": "string",
        "maxLength": MAX_URL_LENGTH,
    },
    "event_types": {
        "description": "Names of events, or patterns of them such as `*`.",
        "type": "array",
        "minItems": 1,
        "maxItems": MAX_PATTERNS,
        "items": _TEXT,
    },
    "payload": _choice(*typing.get_args(Payload)),
    "ordering": _choice(*typing.get_args(Ordering)),
    "description": {"type": "string", "maxLength": MAX_DESCRIPTION_LENGTH},
}
_SECRET: JsonObject = {"description": "`whsec_` and base64.", "type": "string"}
_TOKEN: JsonObject = {
    "description": "Sent as `Authorization: Bearer`.",
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_TOKEN_LENGTH,
}
_ENDPOINT: dict[str, JsonObject] = {
    "id": _TEXT,
    **_SETTINGS,
    "state": _STATE,
    "why": {"description": "What led to the state, if not the tenant.", "type": "string"},
    "created": _MOMENT,
    "revision": _NUMBER,
    "old_secrets_until": _list(_MOMENT),
}
_DELIVERY: dict[str, JsonObject] = {
    **_EVENT,
    "resource": _TEXT,
    "created": _MOMENT,
    "next_attempt": _or_null("string"),
    "ended": _or_null("string"),
    "attempts": _list(ref("Attempt")),
}
_OUTCOME: dict[str, JsonObject] = {
    "status": _or_null("integer"),
    "reason": _TEXT,
    "why": {"description": "Why it failed; empty if it did not.", "type": "string"},
    "milliseconds": _NUMBER,
}
WEBHOOK_SCHEMAS: dict[str, JsonObject] = {
    "Attempt": _object(
        ("number", "begun", "why"),
        number=_NUMBER,
        begun=_MOMENT,
        answer={"description": "How the answer began.", "type": "string"},
        **_OUTCOME,
    ),
    "DeliveryList": _all(deliveries=_list(_all(**_DELIVERY)), next=_or_null("string")),
    "Delivery": _all(**_DELIVERY, body={"type": "object"}),
    "DisclosedEndpoint": _object(_ENDPOINT, **_ENDPOINT, signing_secret=_TEXT, bearer_token=_TEXT),
    "WebhookEndpoint": _all(**_ENDPOINT),
    "EndpointList": _all(endpoints=_list(ref("WebhookEndpoint"))),
    "EventTypeList": _all(
        event_types=_list(
            _all(
                name=_TEXT,
                resource_type=_or_null("string"),
                title=_TEXT,
                schema=_or_null("object"),
            )
        ),
        shared_schemas=_list({"type": "object"}),
    ),
    "EventList": _all(
        events=_list(_all(**_EVENT, body={"type": "object"})),
        last_sequence=_NUMBER,
        next=_or_null("string"),
    ),
    "Replayed": _all(reopened=_NUMBER, state=_STATE, next=_or_null("object")),
    "Stats": _all(
        state=_STATE,
        deliveries={"type": "object", "additionalProperties": _NUMBER},
        last_sequence=_NUMBER,
        oldest_undelivered=_or_null("string"),
        window_seconds=_NUMBER,
        attempts=_NUMBER,
        success_rate=_or_null("number"),
        p50_milliseconds=_or_null("number"),
        p95_milliseconds=_or_null("number"),
        by_hour=_list(_COUNT),
        by_day=_list(_COUNT),
        breaker=_TEXT,
        failures_in_a_row=_NUMBER,
        failing_since=_or_null("string"),
        warned={"type": "boolean"},
        throttled_until=_or_null("string"),
    ),
    "Trial": _all(
        passed={"type": "boolean"},
        state=_STATE,
        event_id=_TEXT,
        event_type=_TEXT,
        note={"description": "Says so if a challenge replaced the test.", "type": "string"},
        **_OUTCOME,
    ),
}
WEBHOOK_BODIES: dict[str, JsonObject] = {
    "changedEndpoint": _fields(**_SETTINGS),
    "newEndpoint": _fields("url", **_SETTINGS, bearer_token=_TOKEN, signing_secret=_SECRET),
    "newSecret": _fields(
        grace_seconds={
            "description": "How long the others sign as well.",
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_GRACE_SECONDS,
        },
        signing_secret=_SECRET,
    ),
    "newToken": _fields(bearer_token=_TOKEN),
    "test": _fields(
        event_type={
            "description": "The event of which a sample is sent; by default endpoint.test.",
            "type": "string",
        }
    ),
    "replay": {
        **_fields(
            event_ids={
                "type": "array",
                "minItems": 1,
                "maxItems": webhook_deliveries.MAX_IDS,
                "items": _TEXT,
            },
            from_seq=_SEQUENCE,
            to_seq=_SEQUENCE,
            since=_MOMENT,
            until=_MOMENT,
            status=_choice("dead", "delivered"),
        ),
        "minProperties": 1,
    },
}
