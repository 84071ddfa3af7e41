"""What is sent shows no secret when it is printed."""

from __future__ import annotations

from fhirpub.webhooks.transport.message import Message


def a_message() -> Message:
    return Message(
        tenant="t",
        url="https://a.example",
        token="hidden-1",
        secrets=("hidden-2",),
        event_id="e",
        event_type="x.created",
        body=b"hidden-3",
        number=1,
        sequence=2,
    )


def test_a_message_shows_neither_its_secrets_nor_its_body() -> None:
    message = a_message()

    assert "hidden" not in repr(message)
    assert "event_id='e'" in repr(message)


def test_a_message_without_an_endpoint_shares_no_connection_and_has_no_trace() -> None:
    message = a_message()

    assert (message.endpoint, message.traceparent) == ("", "")
