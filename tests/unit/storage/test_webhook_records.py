"""What the records of webhooks compute, what is usual, and what their texts leave out."""

from __future__ import annotations

from fhirpub.storage.webhook_records import (
    Attempt,
    Delivery,
    DeliveryQuery,
    Endpoint,
    EndpointSecret,
    OutboxEntry,
)
from fhirpub.testing.samples import a_version

DELIVERY = Delivery(
    endpoint="ep",
    tenant="t",
    sequence=3,
    event_id="ev",
    event_type="a.created",
    resource="A/1",
    created=7,
    body=b"secret body",
)
ENDPOINT = Endpoint(
    id="ep",
    tenant="t",
    url="https://receiver.example",
    created=1,
    secrets=(EndpointSecret(b"sealed secret"),),
    token=b"sealed token",
)


def test_an_outbox_entry_has_the_key_the_time_and_the_events_of_its_version() -> None:
    version = a_version(version=4, created=1, updated=9, events=b'[{"a":1}]')

    assert OutboxEntry.of(version) == OutboxEntry(
        id=version.id, version=4, type="DiagnosticReport", updated=9, events=b'[{"a":1}]'
    )


def test_the_key_of_a_delivery_is_its_endpoint_and_its_event() -> None:
    assert DELIVERY.key == ("ep", "ev")


def test_a_new_delivery_is_pending_and_due_at_once() -> None:
    found = (DELIVERY.state, DELIVERY.due, DELIVERY.number, DELIVERY.leased, DELIVERY.ended)

    assert found == ("pending", 0, 0, 0, None)


def test_the_text_of_a_delivery_has_no_body() -> None:
    assert "secret body" not in repr(DELIVERY)


def test_the_text_of_an_attempt_has_no_answer() -> None:
    assert "hidden" not in repr(Attempt(number=1, begun=2, answer=b"hidden"))


def test_the_text_of_an_endpoint_has_no_secrets() -> None:
    assert "sealed" not in repr(ENDPOINT)


def test_an_endpoint_gets_every_event_in_the_order_of_each_resource() -> None:
    found = (ENDPOINT.events, ENDPOINT.payload, ENDPOINT.ordering, ENDPOINT.state)

    assert found == (("*",), "standard", "per_resource", "active")


def test_an_endpoint_begins_at_its_first_revision() -> None:
    assert (ENDPOINT.revision, ENDPOINT.reopened, ENDPOINT.condition) == (1, 0, b"{}")


def test_a_query_restricts_nothing_until_it_names_something() -> None:
    query = DeliveryQuery(endpoint="ep")

    assert (query.states, query.event_ids, query.after, query.before) == (
        frozenset(),
        None,
        0,
        None,
    )
    assert (query.since, query.until, query.newest_first, query.limit) == (None, None, False, 100)
