"""The event types, and the meaning of patterns."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from fhirpub.storage.webhook_contract import Delivery, Endpoint
from fhirpub.webhooks.management.event_types import EventTypes, matches
from fhirpub.webhooks.management.operational_events import ServiceEvents
from fhirpub.webhooks.transport.envelope import WebhookEvent
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT

KNOWN = EventTypes.of([DIAGNOSTIC_REPORT])


def test_the_events_of_enabled_types_and_of_the_service_are_known() -> None:
    assert {"diagnostic_report.created", "diagnostic_report.updated", "endpoint.test"} <= set(
        KNOWN.names
    )


def test_an_event_of_a_type_that_is_not_enabled_is_unknown() -> None:
    assert "diagnostic_report.created" not in EventTypes.of([]).names


def test_a_type_without_published_schemas_is_known_by_its_name() -> None:
    other = replace(DIAGNOSTIC_REPORT, name="CarePlan")

    assert set(EventTypes.of([other]).names) >= {"care_plan.created", "care_plan.updated"}


def test_a_type_may_have_events_of_its_own() -> None:
    names = ("care_plan.created", "care_plan.withdrawn")
    known = EventTypes.of([replace(DIAGNOSTIC_REPORT, name="CarePlan", event_types=names)])

    ours = {name for name in known.names if name.startswith("care")}
    assert ours == {*names, "care_plan.erased"}
    assert known.problem("care_plan.withdrawn") == ""


@pytest.mark.parametrize(
    "pattern",
    ["*", "*.*", "diagnostic_report.*", "*.created", "diagnostic_report.created", "endpoint.*"],
)
def test_a_pattern_that_means_something_is_good(pattern: str) -> None:
    assert KNOWN.problem(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "near"),
    [
        ("diagnostic_report.create", "did you mean diagnostic_report.created?"),
        ("diagnosticreport.*", "did you mean diagnostic_report.*?"),
        ("", "known are "),
        ("**", "known are "),
    ],
)
def test_an_unknown_pattern_is_refused_with_the_nearest(pattern: str, near: str) -> None:
    assert near in KNOWN.problem(pattern)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("*", True),
        ("*.*", True),
        ("a_b.*", True),
        ("*.created", True),
        ("a_b.created", True),
        ("a_b.updated", False),
        ("a.*", False),
        ("*.create", False),
    ],
)
def test_an_event_is_wanted_by_its_halves(pattern: str, *, wanted: bool) -> None:
    assert matches(["x.y", pattern], "a_b.created") is wanted


# Events about endpoints

ENDPOINT = Endpoint(id="e1", tenant="t1", url="https://a.example/", created=1)
DELIVERY = Delivery(
    endpoint="e1",
    tenant="t1",
    sequence=7,
    event_id="evt_1",
    event_type="a.b",
    resource="",
    created=1,
    body=b"",
    number=11,
)
SERVICE_EVENTS = ServiceEvents("https://lab.example")
EVENTS = [
    SERVICE_EVENTS.emit_exhausted(ENDPOINT, DELIVERY, now=1),
    SERVICE_EVENTS.emit_disabled(ENDPOINT, "gone", now=1),
    SERVICE_EVENTS.failing(ENDPOINT, since=1, now=2),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
def test_events_about_endpoints_match_their_schemas(event: WebhookEvent) -> None:
    schemas = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in files("fhirpub.schemas").joinpath("events").iterdir()
    ]
    resources = [(item["$id"], Resource.from_contents(item)) for item in schemas]
    registry: Registry[Any] = Registry().with_resources(resources)
    (schema,) = [event_type.schema for event_type in KNOWN.all if event_type.name == event.type]
    body = json.loads(event.body(sequence=1))

    jsonschema.Draft202012Validator(schema, registry=registry).validate(body)
    properties = schema["properties"].get("data", {}).get("properties", {})
    assert body["data"].keys() == {"endpoint_id", "self", *properties}
