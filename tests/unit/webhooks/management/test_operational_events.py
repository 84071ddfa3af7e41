"""Who receives an event about an endpoint, and which of them are the same event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery, an_endpoint
from fhirpub.testing.samples import OTHER
from fhirpub.webhooks.management.operational_events import (
    EXHAUSTED,
    ServiceEvents,
    is_service_event,
    subscribers_of,
)

SERVICE = ServiceEvents("https://fhir.example.org")
FAILING = an_endpoint(events=(EXHAUSTED,))


@pytest.mark.parametrize("pattern", [EXHAUSTED, "message.*", "*.exhausted"])
def test_an_endpoint_that_names_the_event_receives_it(pattern: str) -> None:
    watching = an_endpoint(events=(pattern,))

    assert subscribers_of(FAILING, EXHAUSTED, [watching]) == [watching]


@pytest.mark.parametrize("pattern", ["*", "*.*", "endpoint.*"])
def test_an_endpoint_for_everything_or_other_events_does_not(pattern: str) -> None:
    assert subscribers_of(FAILING, EXHAUSTED, [an_endpoint(events=(pattern,))]) == []


def test_an_endpoint_receives_no_event_about_itself() -> None:
    assert subscribers_of(FAILING, EXHAUSTED, [FAILING]) == []


def test_no_endpoint_of_another_tenant_receives_it() -> None:
    theirs = an_endpoint(tenant=OTHER, events=(EXHAUSTED,))

    assert subscribers_of(FAILING, EXHAUSTED, [theirs]) == []


def test_a_repeat_is_the_same_event_and_a_delivery_that_was_reopened_has_another() -> None:
    delivery = a_delivery(FAILING.id)
    reopened = replace(FAILING, reopened=FAILING.reopened + 1)

    first, repeat, another = [
        SERVICE.emit_exhausted(endpoint, delivery, now=NOW + number).id
        for number, endpoint in enumerate((FAILING, FAILING, reopened))
    ]

    assert first == repeat
    assert first != another


def test_an_exhausted_delivery_is_named_with_its_attempts() -> None:
    delivery = a_delivery(FAILING.id, 7, number=10)

    event = SERVICE.emit_exhausted(FAILING, delivery, now=NOW)

    assert (event.type, event.time, event.resource) == ("message.exhausted", NOW, "")
    assert event.ids == {
        "endpoint_id": FAILING.id,
        "event_id": "evt_7",
        "event_type": "diagnosticreport.created",
        "sequence": 7,
        "attempts": 10,
        "self": f"https://fhir.example.org/webhooks/v1/endpoints/{FAILING.id}",
    }


def test_an_endpoint_is_disabled_once_in_each_revision() -> None:
    later = replace(FAILING, revision=FAILING.revision + 1)

    first, repeat, another = [
        SERVICE.emit_disabled(endpoint, "gone", now=NOW + number)
        for number, endpoint in enumerate((FAILING, FAILING, later))
    ]

    assert (first.type, first.ids["why"]) == ("endpoint.disabled", "gone")
    assert first.id == repeat.id != another.id


def test_an_endpoint_is_failing_once_since_each_moment() -> None:
    first, repeat, another = [
        SERVICE.failing(FAILING, since=since, now=NOW) for since in (NOW - 2, NOW - 2, NOW - 1)
    ]

    assert first.type == "endpoint.failing"
    assert first.id == repeat.id != another.id


def test_events_of_two_endpoints_or_kinds_are_others() -> None:
    other = an_endpoint()
    ids = {
        SERVICE.failing(FAILING, since=1, now=NOW).id,
        SERVICE.failing(other, since=1, now=NOW).id,
        SERVICE.emit_disabled(FAILING, "gone", now=NOW).id,
    }

    assert len(ids) == 3


@pytest.mark.parametrize(
    ("name", "operational"),
    [
        ("message.exhausted", True),
        ("endpoint.disabled", True),
        ("endpoint.failing", True),
        ("endpoint.test", False),
        ("patient.created", False),
    ],
)
def test_three_events_are_of_the_service_itself(name: str, *, operational: bool) -> None:
    assert is_service_event(name) is operational
