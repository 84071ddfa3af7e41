"""What the service sends to receivers of webhooks, in the words of OpenAPI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fhirpub.fhir.definitions.schema_components import PLACE, ref
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.webhooks.management.event_types import EventType, EventTypes

_URN = "urn:fhirpub:schemas:events:"
_ENVELOPE = "envelope"
_HEADERS = {
    "webhook-id": "The event, the same in every attempt: drop what you have seen.",
    "webhook-timestamp": "When this attempt was signed, in seconds since 1970.",
    "webhook-signature": "Signatures by Standard Webhooks, in base64, one for each secret.",
    "X-Webhook-Signature": "The same in hex: `t=…,v1=…`.",
    "X-Webhook-Event": "The event's type.",
    "X-Webhook-Attempt": "Which attempt it is, from 1.",
    "X-Webhook-Sequence": "The number of the event at this endpoint, without gaps; 0 for a test.",
}
_ANSWERS = {
    "2XX": "Taken: it is not sent again.",
    "410": "The endpoint is disabled.",
    "default": "Not taken: it is sent again later, after `Retry-After` if there is one.",
}


def event_requests(event_types: EventTypes) -> JsonObject:
    """Return the requests that a receiver gets, by the name of the event (OpenAPI 3.1)."""
    return {event_type.name: {"post": _request(event_type)} for event_type in event_types.all}


def event_schemas(event_types: EventTypes) -> dict[str, JsonObject]:
    """Return the schemas of their bodies, and those that these refer to."""
    published = [
        *event_types.shared,
        *(event_type.schema for event_type in event_types.all if event_type.schema),
    ]
    return {_named(schema["$id"]): _component(schema) for schema in published}


def _component(schema: Mapping[str, Any]) -> JsonObject:
    kept = {name: item for name, item in schema.items() if name not in ("$schema", "$id")}
    moved: JsonObject = _relocate(kept, schema["$id"])
    return moved


def _request(event_type: EventType) -> JsonObject:
    schema = event_type.schema
    return {
        "operationId": f"receive{_words(event_type.name)}",
        "summary": schema.get("title", f"Tells of a {event_type.resource}"),
        "tags": ["Webhooks"],
        "parameters": [*_headers()],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": ref(_named(schema.get("$id", _URN + _ENVELOPE)))}
            },
        },
        "responses": {status: {"description": text} for status, text in _ANSWERS.items()},
    }


def _headers() -> Iterator[JsonObject]:
    for name, text in _HEADERS.items():
        yield {
            "name": name,
            "in": "header",
            "required": True,
            "description": text,
            "schema": {"type": "string"},
        }


def _relocate(node: Any, schema_id: str) -> Any:
    """Return part of a schema, its references leading to their places in the document."""
    if isinstance(node, Mapping):
        return {
            name: _place(item, schema_id) if name == "$ref" else _relocate(item, schema_id)
            for name, item in node.items()
        }
    return [_relocate(item, schema_id) for item in node] if isinstance(node, list) else node


def _place(reference: str, schema_id: str) -> str:
    other, _, inner = reference.partition("#")
    return PLACE + _named(other or schema_id) + inner


def _named(schema_id: str) -> str:
    return f"Event{_words(schema_id.removeprefix(_URN))}"


def _words(name: str) -> str:
    return "".join(part.title() for part in name.replace(".", "_").split("_"))
