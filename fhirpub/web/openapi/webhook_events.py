"""What the service sends to receivers of webhooks, in the words of OpenAPI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fhirpub.fhir.definitions.schema_components import OPEN, PLACE, ref
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.webhooks.management.event_types import EventType, EventTypes

_URN = "urn:fhirpub:schemas:events:"
_ENVELOPE = "envelope"
_NOT_KEPT = frozenset({"$schema", "$id", "$defs", "title"})
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
    """Return the schemas of their bodies, each complete, and those that these refer to."""
    shared = {schema["$id"]: schema for schema in event_types.shared}
    published = [event_type.schema for event_type in event_types.all if event_type.schema]
    described = [
        (_named(schema["$id"]), _join(shared.get(schema.get("$ref", ""), {}), schema), schema)
        for schema in (*shared.values(), *published)
    ]
    inner = [
        (f"{name}.{key}", item, schema)
        for name, _joined, schema in described
        for key, item in schema.get("$defs", {}).items()
    ]
    return {
        name: _component(joined, schema["$id"])
        for name, joined, schema in (*described, *inner)
        if joined.keys() & {"type", "properties"}
    }


def _join(base: Mapping[str, Any], own: Mapping[str, Any]) -> JsonObject:
    """Return a schema and the one that it refers to as one: generators see only one of them."""
    joined: JsonObject = {**base, **own}
    joined.pop("$ref" if base else "", None)
    if base:
        if required := [*base.get("required", ()), *own.get("required", ())]:
            joined["required"] = [*dict.fromkeys(required)]
        properties = {**base.get("properties", {})}
        for name, item in own.get("properties", {}).items():
            properties[name] = _join(properties.get(name, {}), item)
        if properties:
            joined["properties"] = properties
    return joined


def _component(schema: Mapping[str, Any], schema_id: str) -> JsonObject:
    """Return a schema as a component; a title would name its class in some languages."""
    kept = {name: item for name, item in schema.items() if name not in _NOT_KEPT}
    if title := schema.get("title"):
        kept["description"] = f"{title}. {schema.get('description', '')}".rstrip()
    moved: JsonObject = _relocate(kept, schema_id)
    return moved


def _request(event_type: EventType) -> JsonObject:
    schema = event_type.schema
    return {
        "operationId": f"receive{_words(event_type.name)}",
        "summary": schema.get("title", f"Tells of a {event_type.resource}"),
        "tags": ["Webhook events"],
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
    """Return part of a schema as generators take it: its references lead into the document."""
    if isinstance(node, list):
        return [_relocate(item, schema_id) for item in node]
    if not isinstance(node, Mapping):
        return node
    moved = {
        name: _place(item, schema_id) if name == "$ref" else _relocate(item, schema_id)
        for name, item in node.items()
    }
    if values := [*node.get("enum", ()), *([node["const"]] if "const" in node else [])]:
        return {"type": "integer" if isinstance(values[0], int) else "string", **moved}
    # A receiver ignores what it does not know, so that a client must not be closed.
    return {**moved, "additionalProperties": OPEN} if "properties" in node else moved


def _place(reference: str, schema_id: str) -> str:
    other, _, inner = reference.partition("#")
    return PLACE + _named(other or schema_id) + inner.replace("/$defs/", ".")


def _named(schema_id: str) -> str:
    return f"{_words(schema_id.removeprefix(_URN))}Event"


def _words(name: str) -> str:
    return "".join(part.title() for part in name.replace(".", "_").split("_"))
