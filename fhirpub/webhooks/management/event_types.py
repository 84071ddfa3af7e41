"""Which events there are, and which of them the patterns of an endpoint mean."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

from fhirpub.plugin_api import ResourceType
from fhirpub.plugin_api.resource_type import no_events
from fhirpub.suggestion import did_you_mean

EVERYTHING = "*"
TEST = "endpoint.test"
VERIFICATION = "endpoint.verification"
ERASED = "erased"
"""The action of the event by which endpoints learn that a resource was erased."""

_ENDING = ".schema.json"
_SCHEMAS = "urn:fhirpub:schemas:events:"
_ACTIONS = ("created", "updated")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class EventType:
    """One event by its name, ``<composition_type>.<action>``.

    ``resource`` is the type of the resource that it is about, empty for the service's own.
    ``schema`` is the JSON Schema of its body, empty if its plugin publishes none.
    """

    name: str
    resource: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class EventTypes:
    """The events of the enabled resource types, and the service's own."""

    all: tuple[EventType, ...]
    shared: tuple[Mapping[str, Any], ...]
    """The JSON Schemas that those of the events refer to."""

    @classmethod
    def of(cls, types: Iterable[ResourceType]) -> EventTypes:
        """Return the events of these resource types, and the service's own.

        A type whose events have no published schema emits those that it declares, by default
        what is created and updated, under its own name. Each kind of resource with events has one
        for its erasure (ADR 36).
        """
        schemas = _load_schemas()
        known = [
            EventType(name, _resource_of(schema), schema)
            for name, schema in schemas.items()
            if "." in name
        ]
        told = {
            resource_type.name: resource_type
            for resource_type in types
            if resource_type.events is not no_events
        }
        described = {event_type.name for event_type in known}
        others = [
            EventType(event, name, {})
            for name in sorted(told)
            for event in told[name].event_types or _usual(name)
            if event not in described
        ]
        kept = [
            event_type
            for event_type in known
            if event_type.resource in told or not event_type.resource
        ]
        kept += others
        known_names = {event_type.name for event_type in kept}
        erased = {
            f"{event_type.name.partition('.')[0]}.{ERASED}": event_type.resource
            for event_type in kept
            if event_type.resource
        }
        kept += [
            EventType(name, resource, _schema_of_erasure(name, resource))
            for name, resource in sorted(erased.items())
            if name not in known_names
        ]
        shared = tuple(schema for name, schema in schemas.items() if "." not in name)
        return cls((*kept,), shared)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all events."""
        return tuple(event_type.name for event_type in self.all)

    def named(self, name: str) -> EventType:
        """Return the event of a name that is known."""
        return next(event_type for event_type in self.all if event_type.name == name)

    def problem_of_name(self, name: str) -> str:
        """Return what is wrong with the name of an event, or nothing."""
        if name in self.names:
            return ""
        question = did_you_mean(name, self.names)
        return f"is not an event of this service; {question or self._known}"

    @property
    def _known(self) -> str:
        return f"known are {', '.join(self.names)}"

    def problem(self, pattern: str) -> str:
        """Return what is wrong with a pattern, or nothing.

        A pattern is the name of an event; either half, or all of it, may be ``*``.
        """
        if any(matches([pattern], name) for name in self.names):
            return ""
        halves = {f"{name.partition('.')[0]}.*" for name in self.names}
        question = did_you_mean(pattern, [*self.names, *sorted(halves)])
        return f"is not an event of this service; {question or self._known}"


def _schema_of_erasure(name: str, resource: str) -> Mapping[str, Any]:
    """Return the JSON Schema of the event of an erasure, which has ids alone."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{_SCHEMAS}{name}",
        "title": "A resource was erased on an order",
        "description": "Delete what you hold of it; self answers 410.",
        "$ref": f"{_SCHEMAS}envelope",
        "properties": {
            "event_type": {"const": name},
            "data": {"properties": {"resource_type": {"const": resource}}},
        },
    }


def _usual(type_name: str) -> list[str]:
    return [f"{_WORD_START.sub('_', type_name).lower()}.{action}" for action in _ACTIONS]


def matches(patterns: Collection[str], event_type: str) -> bool:
    """Return whether an endpoint with these patterns subscribes to an event."""
    subject, _, action = event_type.partition(".")
    wanted = {EVERYTHING, event_type, f"{subject}.*", f"*.{action}", "*.*"}
    return not wanted.isdisjoint(patterns)


def _load_schemas() -> dict[str, dict[str, Any]]:
    """Return our schemas by name; an event's has a dot, one that they share has none."""
    folder = resources.files("fhirpub.schemas") / "events"
    files = [path for path in folder.iterdir() if path.name.endswith(_ENDING)]
    return {
        path.name.removesuffix(_ENDING): json.loads(path.read_bytes())
        for path in sorted(files, key=lambda file: file.name)
    }


def _resource_of(schema: Mapping[str, Any]) -> str:
    data = schema["properties"].get("data", {}).get("properties", {})
    return str(data.get("resource_type", {}).get("const", ""))
