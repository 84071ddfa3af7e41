"""Who receives an event about an endpoint, and which of them are the same event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery, an_endpoint
from fhirpub.testing.samples import OTHER
from fhirpub.webhooks.management.operational_events import (
    EXHAUSTED,
    ServiceEvents,
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
