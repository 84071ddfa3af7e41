"""The event types, and the meaning of patterns."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from fhirpub.plugin_api.resource_type import no_events
from fhirpub.storage.webhook_contract import Delivery, Endpoint
from fhirpub.webhooks.management.event_types import EventType, EventTypes, matches
from fhirpub.webhooks.management.operational_events import ServiceEvents
from fhirpub.webhooks.transport.envelope import WebhookEvent
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT

CARE_PLAN = replace(DIAGNOSTIC_REPORT, name="CarePlan")
OWN = (
    "endpoint.disabled",
    "endpoint.failing",
    "endpoint.test",
    "endpoint.verification",
    "message.exhausted",
)
"""The events of the service itself."""
ACTIONS = ("created", "updated", "erased")


def known() -> EventTypes:
    """Return the events of reports."""
    return EventTypes.of([DIAGNOSTIC_REPORT])


def test_the_events_of_enabled_types_and_of_the_service_are_known() -> None:
    assert {"diagnostic_report.created", "diagnostic_report.updated", "endpoint.test"} <= set(
        known().names
    )


def test_an_event_of_a_type_that_is_not_enabled_is_unknown() -> None:
    assert "diagnostic_report.created" not in EventTypes.of([]).names


def test_a_type_without_published_schemas_is_known_by_its_name() -> None:
    other = replace(DIAGNOSTIC_REPORT, name="CarePlan")

    assert set(EventTypes.of([other]).names) >= {"care_plan.created", "care_plan.updated"}


@pytest.mark.parametrize(
    ("type_name", "subject"),
    [
        ("Flag", "flag"),
        ("MolecularSequenceStudy", "molecular_sequence_study"),
        ("Hl7Order", "hl7_order"),
    ],
)
def test_events_without_a_description_are_named_by_the_words_of_their_type(
    type_name: str, subject: str
) -> None:
    types = EventTypes.of([replace(DIAGNOSTIC_REPORT, name=type_name)])

    assert [name for name in types.names if name not in OWN] == [
        f"{subject}.{action}" for action in ACTIONS
    ]


def test_events_that_a_type_declares_stay_in_its_order() -> None:
    declared = ("care_plan.withdrawn", "care_plan.created")
    types = EventTypes.of([replace(CARE_PLAN, event_types=declared)])

    assert types.names == (*OWN, *declared, "care_plan.erased")


def test_all_of_a_subject_is_proposed_where_that_is_nearest() -> None:
    assert EventTypes.of([CARE_PLAN]).problem("careplan.*") == (
        "is not an event of this service; did you mean care_plan.*?"
    )


def test_a_type_may_have_events_of_its_own() -> None:
    names = ("care_plan.created", "care_plan.withdrawn")
    types = EventTypes.of([replace(DIAGNOSTIC_REPORT, name="CarePlan", event_types=names)])

    ours = {name for name in types.names if name.startswith("care")}
    assert ours == {*names, "care_plan.erased"}
    assert types.problem("care_plan.withdrawn") == ""


def test_a_service_without_types_has_its_own_events_alone() -> None:
    assert EventTypes.of([]).names == OWN


def test_a_type_that_emits_nothing_has_no_events() -> None:
    silent = [replace(DIAGNOSTIC_REPORT, events=no_events), replace(CARE_PLAN, events=no_events)]

    assert EventTypes.of(silent).names == OWN


def test_events_that_are_described_come_first_and_erasures_last() -> None:
    account = replace(DIAGNOSTIC_REPORT, name="Account")

    assert EventTypes.of([CARE_PLAN, DIAGNOSTIC_REPORT, account]).names == (
        "diagnostic_report.created",
        "diagnostic_report.updated",
        *OWN,
        "account.created",
        "account.updated",
        "care_plan.created",
        "care_plan.updated",
        "account.erased",
        "care_plan.erased",
        "diagnostic_report.erased",
    )


def test_an_event_leads_to_the_type_of_its_resource() -> None:
    types = EventTypes.of([CARE_PLAN, DIAGNOSTIC_REPORT])

    resources = {event_type.name: event_type.resource for event_type in types.all}
    assert resources == {
        **dict.fromkeys(OWN, ""),
        **{f"diagnostic_report.{action}": "DiagnosticReport" for action in ACTIONS},
        **{f"care_plan.{action}": "CarePlan" for action in ACTIONS},
    }


def test_an_event_that_its_plugin_does_not_describe_has_no_schema() -> None:
    assert EventTypes.of([CARE_PLAN]).named("care_plan.updated") == EventType(
        "care_plan.updated", "CarePlan", {}
    )


def test_an_event_that_a_schema_describes_is_listed_once_though_its_type_declares_it() -> None:
    declared = ("diagnostic_report.created", "diagnostic_report.withdrawn")
    types = EventTypes.of([replace(DIAGNOSTIC_REPORT, event_types=declared)])

    assert types.names.count("diagnostic_report.created") == 1
    assert types.named("diagnostic_report.created").schema
    assert types.named("diagnostic_report.withdrawn").schema == {}


def test_an_erasure_that_a_type_declares_itself_is_listed_once() -> None:
    declared = ("care_plan.created", "care_plan.erased")
    types = EventTypes.of([replace(CARE_PLAN, event_types=declared)])

    assert types.names == (*OWN, *declared)


def test_an_erasure_has_one_event_for_each_kind_of_resource() -> None:
    declared = ("care_plan.created", "care_plan_team.created")
    types = EventTypes.of([replace(CARE_PLAN, event_types=declared)])

    assert types.names == (*OWN, *declared, "care_plan.erased", "care_plan_team.erased")


def test_the_event_of_an_erasure_has_the_schema_of_all_events_and_its_own_type() -> None:
    (event_type,) = [each for each in known().all if each.name == "diagnostic_report.erased"]

    assert event_type.resource == "DiagnosticReport"
    assert event_type.schema == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:fhirpub:schemas:events:diagnostic_report.erased",
        "title": "A resource was erased on an order",
        "description": "Delete what you hold of it; self answers 410.",
        "$ref": "urn:fhirpub:schemas:events:envelope",
        "properties": {
            "event_type": {"const": "diagnostic_report.erased"},
            "data": {"properties": {"resource_type": {"const": "DiagnosticReport"}}},
        },
    }


def test_the_schemas_that_events_share_are_those_without_an_event() -> None:
    assert [schema["$id"].rpartition(":")[2] for schema in known().shared] == [
        "composition",
        "envelope",
        "service",
    ]


def test_each_schema_is_that_of_its_event() -> None:
    described = [event_type for event_type in known().all if event_type.schema]

    assert len(described) == 8
    for event_type in described:
        assert event_type.schema["$id"] == f"urn:fhirpub:schemas:events:{event_type.name}"


def test_the_name_of_an_event_is_good() -> None:
    assert [name for name in known().names if known().problem_of_name(name)] == []


def test_a_pattern_is_not_the_name_of_an_event() -> None:
    assert known().problem_of_name("*") == (
        f"is not an event of this service; known are {', '.join(known().names)}"
    )


def test_the_name_of_an_unknown_event_is_refused_with_the_nearest() -> None:
    assert known().problem_of_name("endpoint.tst") == (
        "is not an event of this service; did you mean endpoint.test?"
    )


@pytest.mark.parametrize(
    "pattern",
    ["*", "*.*", "diagnostic_report.*", "*.created", "diagnostic_report.created", "endpoint.*"],
)
def test_a_pattern_that_means_something_is_good(pattern: str) -> None:
    assert known().problem(pattern) == ""


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
    problem = known().problem(pattern)

    assert problem.startswith(f"is not an event of this service; {near}")


def test_where_no_pattern_is_near_all_names_are_listed() -> None:
    assert known().problem("x_y.z") == (
        f"is not an event of this service; known are {', '.join(known().names)}"
    )


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
        ("*.updated", False),
        ("a_b", False),
        ("a_b.", False),
        ("x*", False),
        ("", False),
    ],
)
def test_an_event_is_wanted_by_its_halves(pattern: str, *, wanted: bool) -> None:
    assert matches(["x.y", pattern], "a_b.created") is wanted


def test_without_a_pattern_no_event_is_wanted() -> None:
    assert not matches([], "a_b.created")


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
    (schema,) = [event_type.schema for event_type in known().all if event_type.name == event.type]
    body = json.loads(event.body(sequence=1))

    jsonschema.Draft202012Validator(schema, registry=registry).validate(body)
    properties = schema["properties"].get("data", {}).get("properties", {})
    assert body["data"].keys() == {"endpoint_id", "self", *properties}
