"""Samples of events for developers of receivers: valid by their schemas, of nothing that happened.

Their ``sequence`` is 0, as that of tests. Texts in them read ``sample``.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping
from typing import Any

from fhirpub.fhir.strict_json import JsonObject
from fhirpub.runtime.clock import Clock
from fhirpub.webhooks.management.event_types import VERIFICATION, EventType, EventTypes
from fhirpub.webhooks.transport.envelope import WebhookEvent, event_of_endpoint

_CHALLENGE_BYTES = 24
_TEXT = "sample"
_UNUSED = frozenset({"resource_type", "id", "version_id", "endpoint_id", "self"})
"""Properties of data that every event has."""


class Samples:
    """Makes samples of known events. ``base_url`` is the service's address."""

    def __init__(self, event_types: EventTypes, *, base_url: str, clock: Clock) -> None:
        self._event_types = event_types
        self._base_url = base_url
        self._clock = clock
        self._parts = {
            name: part
            for schema in event_types.shared
            for name, part in schema.get("$defs", {}).items()
        }

    def of(self, name: str, *, endpoint_id: str) -> WebhookEvent:
        """Return a sample of the event of a known name, as an endpoint would get it."""
        event_type = self._event_types.named(name)
        data = event_type.schema.get("properties", {}).get("data", {})
        if name == VERIFICATION:
            challenge = secrets.token_urlsafe(_CHALLENGE_BYTES)
            return self._about_endpoint(name, endpoint_id, {"challenge": challenge})
        details = self._object(data)
        if event_type.resource:
            return self._about_resource(event_type, details)
        return self._about_endpoint(name, endpoint_id, details)

    def _about_endpoint(self, name: str, endpoint_id: str, more: JsonObject) -> WebhookEvent:
        return event_of_endpoint(
            name,
            endpoint_id,
            name=uuid.uuid4().hex,
            now=self._clock(),
            base_url=self._base_url,
            more=more,
        )

    def _about_resource(self, event_type: EventType, details: JsonObject) -> WebhookEvent:
        name, resource_id, kind = uuid.uuid4().hex, str(uuid.uuid4()), event_type.resource
        return WebhookEvent(
            id=f"evt_{name}",
            transaction_id=f"req_{name}",
            type=event_type.name,
            time=self._clock(),
            ids={
                "resource_type": kind,
                "id": resource_id,
                "version_id": "1",
                "self": f"{self._base_url}/fhir/r4/{kind}/{resource_id}/_history/1",
            },
            details=details,
            resource=f"{kind}/{resource_id}",
        )

    def _value(self, schema: Mapping[str, Any]) -> Any:
        if "$ref" in schema:
            return self._value(self._parts[schema["$ref"].rpartition("/")[2]])
        if "const" in schema:
            return schema["const"]
        if choices := [*schema.get("examples", ()), *schema.get("enum", ())]:
            return choices[0]
        if schema.get("type") == "object":
            return self._object(schema)
        if schema.get("type") == "array":
            return [self._value(schema["items"])]
        return {"integer": 1, "boolean": True}.get(schema.get("type", ""), _TEXT)

    def _object(self, schema: Mapping[str, Any]) -> JsonObject:
        """Return an object with what it needs, and what belongs together in it.

        Others are often alternatives to each other. One that needs nothing has everything.
        """
        together = schema.get("dependentRequired", {})
        named = [
            *schema.get("required", ()),
            *together,
            *(one for few in together.values() for one in few),
        ]
        properties = schema.get("properties", {})
        wanted = [name for name in properties if name in (named or properties)]
        return {name: self._value(properties[name]) for name in wanted if name not in _UNUSED}
