"""The bytes that receivers get, and their published schemas."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from referencing import Registry, Resource

from fhirpub.interactions.versions import with_trace
from fhirpub.plugin_api import Change
from fhirpub.storage.contract import Version
from fhirpub.storage.webhook_contract import OutboxEntry, Payload
from fhirpub.webhooks.transport.envelope import (
    LARGEST_BODY,
    WebhookEvent,
    event_of_endpoint,
    events_of,
    time_of,
    trace_of,
    without_details,
)
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT

FHIR_URL = "https://lab.example/fhir/r4"
REPORT_ID = "0b8ffb7e-9d0c-4a53-9a44-2b1d3f0e6c11"
SCHEMAS = {
    path.name.removesuffix(".schema.json"): json.loads(path.read_text(encoding="utf-8"))
    for path in files("fhirpub.schemas").joinpath("events").iterdir()
}
VERSION = Version(
    id=REPORT_ID,
    version=1,
    type="DiagnosticReport",
    system="https://lab.example/reports",
    value="R-1",
    status="final",
    created=1_795_242_833_412,
    updated=1_795_242_833_412,
    body=b"{}",
)


def event_of(version: Version, *, before: str | None = None, value: str = "R-1") -> WebhookEvent:
    """Return the event that the resource type added to a version when it was committed."""
    identifier = {"system": version.system, "value": value}
    change = Change(
        id=version.id,
        version=version.version,
        after={"identifier": [identifier], "status": version.status},
        before=None if before is None else {"status": before},
        parts={},
        added=() if before is None else ("Observation/1",),
    )
    stored = [
        {"id": f"{version.id}.{version.version}.{number}", "type": one.type, "data": one.data}
        for number, one in enumerate(DIAGNOSTIC_REPORT.events(change), start=1)
    ]
    (event,) = events_of(
        OutboxEntry.of(replace(version, events=orjson.dumps(stored))), fhir_url=FHIR_URL
    )
    return event


CREATED = event_of(VERSION)
UPDATED = event_of(replace(VERSION, version=2, status="amended"), before="final")
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACED = replace(UPDATED, traceparent=TRACE)


def test_a_registration_is_sent_as_created() -> None:
    assert json.loads(CREATED.body(sequence=42)) == {
        "transaction_id": "req_0b8ffb7e9d0c4a539a442b1d3f0e6c11_1",
        "event_id": "evt_0b8ffb7e9d0c4a539a442b1d3f0e6c11_1_1",
        "event_type": "diagnostic_report.created",
        "timestamp": "2026-11-21T06:33:53.412Z",
        "sequence": 42,
        "api_version": "1",
        "data": {
            "resource_type": "DiagnosticReport",
            "id": REPORT_ID,
            "version_id": "1",
            "identifier": {"system": "https://lab.example/reports", "value": "R-1"},
            "status": "final",
            "self": f"{FHIR_URL}/DiagnosticReport/{REPORT_ID}/_history/1",
        },
    }


def test_an_update_includes_the_previous_status() -> None:
    data = json.loads(UPDATED.body(sequence=1))["data"]

    assert (data["version_id"], data["status"], data["previous_status"]) == (
        *("2", "amended", "final"),
    )


@pytest.mark.parametrize("payload", ["standard", "id-only"])
def test_a_body_names_the_trace_of_its_request(payload: Payload) -> None:
    body = TRACED.body(sequence=1, payload=payload)

    assert trace_of(body) == TRACE
    assert trace_of(without_details(body)) == TRACE


def test_a_body_without_a_trace_names_none() -> None:
    named = replace(UPDATED, details={"traceparent": TRACE})

    assert trace_of(UPDATED.body(sequence=1)) == ""
    assert trace_of(named.body(sequence=1)) == ""


def test_the_trace_that_was_stored_with_a_version_is_that_of_its_events() -> None:
    stored = with_trace(b'[{"id":"x.1.1","type":"a.b","data":{}}]', TRACE)

    (event,) = events_of(OutboxEntry.of(replace(VERSION, events=stored)), fhir_url=FHIR_URL)

    assert event.traceparent == TRACE
    assert "traceparent" not in event.details


def test_an_endpoint_may_be_sent_ids_only() -> None:
    data = json.loads(UPDATED.body(sequence=1, payload="id-only"))["data"]

    assert data.keys() == {"resource_type", "id", "version_id", "self"}


def test_an_event_that_would_be_too_large_is_sent_with_ids_only() -> None:
    long = event_of(VERSION, value="9" * LARGEST_BODY)

    assert long.body(sequence=1) == CREATED.body(sequence=1, payload="id-only")


def test_the_same_event_has_the_same_bytes() -> None:
    assert event_of(VERSION).body(sequence=7) == CREATED.body(sequence=7)


@given(st.uuids(), st.integers(1, 10**9))
def test_ids_can_stand_in_signatures(resource_id: object, version: int) -> None:
    event = event_of(replace(VERSION, id=str(resource_id), version=version))

    assert re.fullmatch("[A-Za-z0-9_]{1,64}", event.id)
    assert re.fullmatch("[A-Za-z0-9_]{1,64}", event.transaction_id)


def test_events_of_one_commit_share_its_transaction_and_nothing_else() -> None:
    stored = [{"id": f"{REPORT_ID}.3.{n}", "type": "a.b", "data": {}} for n in (1, 2)]
    version = replace(VERSION, version=3, events=orjson.dumps(stored))

    first, second = events_of(OutboxEntry.of(version), fhir_url=FHIR_URL)

    assert first.transaction_id == second.transaction_id
    assert first.id != second.id


# The published schemas

REGISTRY: Registry[Any] = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()
)


def validator_of(event_type: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(SCHEMAS[event_type], registry=REGISTRY)


@pytest.mark.parametrize("payload", ["standard", "id-only"])
@pytest.mark.parametrize("event", [CREATED, UPDATED, TRACED], ids=["created", "updated", "traced"])
def test_every_body_is_as_its_schema_says(event: WebhookEvent, payload: Payload) -> None:
    body = json.loads(event.body(sequence=1, payload=payload))

    validator_of(event.type).validate(body)


@pytest.mark.parametrize("event", [CREATED, UPDATED], ids=lambda event: event.type)
def test_a_schema_names_everything_that_is_sent(event: WebhookEvent) -> None:
    body = json.loads(replace(event, traceparent=TRACE).body(sequence=1))
    every, own = SCHEMAS["envelope"]["properties"], SCHEMAS[event.type]["properties"]

    assert body.keys() == every.keys()
    assert body["data"].keys() == every["data"]["properties"].keys() | (
        own["data"]["properties"].keys()
    )


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (("event_id",), "evt.1"),
        (("event_type",), "diagnostic_report.updated"),
        (("timestamp",), "2026-11-21"),
        (("sequence",), -1),
        (("data", "id"), "1"),
        (("data", "version_id"), 1),
        (("data", "status"), "amended"),
        (("data", "identifier"), {"system": "s"}),
    ],
)
def test_a_schema_refuses_what_is_never_sent(place: tuple[str, ...], wrong: object) -> None:
    body = json.loads(CREATED.body(sequence=1))
    *above, last = place
    holder = body[above[0]] if above else body
    holder[last] = wrong

    assert not validator_of(CREATED.type).is_valid(body)


def test_the_schemas_statuses_are_those_that_the_service_accepts() -> None:
    created = SCHEMAS["diagnostic_report.created"]["properties"]["data"]["properties"]
    updated = SCHEMAS["diagnostic_report.updated"]["properties"]["data"]["properties"]

    assert set(created["status"]["enum"]) == DIAGNOSTIC_REPORT.create_statuses
    assert set(updated["status"]["enum"]) == DIAGNOSTIC_REPORT.update_statuses


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_one(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$id"] == f"urn:fhirpub:schemas:events:{name}"


def event_with(text: str) -> WebhookEvent:
    return replace(CREATED, details={"text": text})


def test_a_body_of_the_largest_size_is_sent_whole_and_one_byte_more_is_not() -> None:
    empty = len(event_with("").body(sequence=1))

    largest = event_with("x" * (LARGEST_BODY - empty)).body(sequence=1)
    larger = event_with("x" * (LARGEST_BODY - empty + 1)).body(sequence=1)

    assert len(largest) == LARGEST_BODY == 20_000
    assert json.loads(largest)["data"]["text"]
    assert "text" not in json.loads(larger)["data"]


def test_the_size_of_a_body_is_counted_in_bytes() -> None:
    body = event_with("ñ" * (LARGEST_BODY // 2)).body(sequence=1)

    assert "text" not in json.loads(body)["data"]


def test_an_event_is_about_the_resource_of_its_version() -> None:
    assert UPDATED.resource == f"DiagnosticReport/{REPORT_ID}"
    assert UPDATED.ids["version_id"] == "2"
    assert UPDATED.ids["self"] == f"{FHIR_URL}/DiagnosticReport/{REPORT_ID}/_history/2"


def test_the_time_of_an_event_is_read_from_its_body() -> None:
    assert time_of(CREATED.body(sequence=1)) == 1_795_242_833_412


def test_details_hide_no_id() -> None:
    body = replace(CREATED, details={"self": "https://evil.example"}).body(sequence=1)

    assert json.loads(body)["data"]["self"] == CREATED.ids["self"]


def test_after_an_erasure_a_body_has_its_ids_and_place_alone() -> None:
    body = json.loads(without_details(TRACED.body(sequence=7)))

    assert set(body["data"]) == {"resource_type", "id", "version_id", "self"}
    assert (body["sequence"], body["traceparent"]) == (7, TRACE)


def test_an_event_of_an_endpoint_names_it_and_what_happened() -> None:
    event = event_of_endpoint(
        "endpoint.disabled", "e-1", name="0f" * 16, now=7, base_url=FHIR_URL, more={"why": "gone"}
    )

    assert (event.id, event.transaction_id, event.time) == (
        "evt_" + "0f" * 16,
        "req_" + "0f" * 16,
        7,
    )
    assert event.ids == {
        "endpoint_id": "e-1",
        "why": "gone",
        "self": f"{FHIR_URL}/webhooks/v1/endpoints/e-1",
    }
    assert event.resource == ""
