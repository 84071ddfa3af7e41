"""Samples of events: each is valid by the schema that the service publishes of it."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from fhirpub.plugin_host.loader import load
from fhirpub.webhooks.management.event_types import EventType, EventTypes
from fhirpub.webhooks.management.samples import Samples
from tests.shelf import SHELF

KNOWN = EventTypes.of(load(SHELF).values())
SAMPLES = Samples(KNOWN, base_url="https://fhir.example.org", clock=lambda: 1_795_242_833_412)
REGISTRY: Registry[Any] = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema)) for schema in KNOWN.shared
)
BY_NAME = {event_type.name: event_type for event_type in KNOWN.all}


def body_of(name: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(SAMPLES.of(name, endpoint_id="e").body(sequence=0))
    return body


@pytest.mark.parametrize(
    "event_type", [each for each in KNOWN.all if each.schema], ids=lambda each: each.name
)
def test_a_sample_is_valid_by_the_schema_of_its_event(event_type: EventType) -> None:
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER

    jsonschema.Draft202012Validator(
        event_type.schema, registry=REGISTRY, format_checker=checker
    ).validate(body_of(event_type.name))


@pytest.mark.parametrize("name", BY_NAME)
def test_a_sample_has_the_sequence_of_tests(name: str) -> None:
    assert (body_of(name)["event_type"], body_of(name)["sequence"]) == (name, 0)


@pytest.mark.parametrize("name", ["observation.updated", "endpoint.test"])
def test_a_sample_is_of_now(name: str) -> None:
    assert body_of(name)["timestamp"] == "2026-11-21T06:33:53.412Z"


def test_texts_of_a_sample_say_what_it_is() -> None:
    data = body_of("diagnostic_report.created")["data"]

    assert data["identifier"] == {"system": "sample", "value": "sample"}
    assert data["status"] == "registered"


def test_two_samples_are_two_events_about_two_resources() -> None:
    one, two = body_of("observation.updated"), body_of("observation.updated")

    assert one["event_id"] != two["event_id"]
    assert one["data"]["id"] != two["data"]["id"]


def test_a_sample_is_about_a_resource_at_its_address() -> None:
    event = SAMPLES.of("observation.updated", endpoint_id="e")

    address = f"Observation/{event.ids['id']}"
    assert event.resource == address
    assert event.ids["self"] == f"https://fhir.example.org/fhir/r4/{address}/_history/1"


def test_an_event_without_a_schema_has_ids_alone() -> None:
    (name, *_) = [each.name for each in KNOWN.all if not each.schema]

    assert body_of(name)["data"].keys() == {"resource_type", "id", "version_id", "self"}


def test_a_sample_of_a_challenge_has_one() -> None:
    assert body_of("endpoint.verification")["data"]["challenge"]


def test_an_object_that_needs_nothing_has_everything() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"const": "x"}}}

    assert SAMPLES._value(schema) == {"a": 1, "b": "x"}
    assert SAMPLES._value(schema | {"required": ["b"]}) == {"b": "x"}
