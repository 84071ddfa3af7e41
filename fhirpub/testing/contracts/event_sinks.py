"""The promises of a sink of events as tests."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Sequence
from typing import Protocol

import pytest

from fhirpub.plugin_api import EventRejected, EventSink, SinkEvent

_SECONDS = 30.0
_LARGEST_BODY = 20_000


class SinkReceiver(Protocol):
    """What a sink sends to, for `EventSinkContract`."""

    async def arrived(self) -> Sequence[bytes]:
        """Return the bodies of all events that have arrived durably, in their order."""

    async def break_down(self) -> None:
        """Become unreachable, or refuse everything."""

    async def recover(self) -> None:
        """Take events again; what has arrived before is still there."""


class EventSinkContract:
    """A test for every promise of `fhirpub.plugin_api.EventSink`; inherit it.

    Fixtures to provide: ``sink``, the sink, and ``receiver``, what it sends to: a `SinkReceiver`
    that is empty at first. The tests are coroutines, so that ``asyncio_mode`` of pytest-asyncio
    must be ``auto``.
    """

    destination = ""
    """What follows ``sink:NAME/`` in the URL of the endpoint."""

    def event(self, number: int = 1, *, resource: str = "", size: int = 0) -> SinkEvent:
        """Return an event, as the service makes them.

        Args:
            number: Its position in the queue of the endpoint.
            resource: The id of its resource, by default a new one.
            size: The least number of bytes of its body.

        Returns:
            The event.
        """
        name = uuid.uuid4().hex
        body = {
            "transaction_id": f"req_{name}",
            "event_id": f"evt_{name}",
            "event_type": "diagnostic_report.created",
            "sequence": number,
            "data": {
                "resource_type": "DiagnosticReport",
                "id": resource or str(uuid.uuid4()),
                "text": "é" * (size // 2),
            },
        }
        return SinkEvent(
            tenant="11111111-1111-4111-8111-111111111111",
            endpoint="22222222-2222-4222-8222-222222222222",
            destination=self.destination,
            event_id=f"evt_{name}",
            event_type="diagnostic_report.created",
            sequence=number,
            attempt=1,
            body=json.dumps(body, ensure_ascii=False).encode(),
            headers={"webhook-id": f"evt_{name}", "webhook-signature": "v1,c2lnbmVk"},
        )

    async def test_an_event_has_arrived_byte_for_byte_when_send_returns(
        self, sink: EventSink, receiver: SinkReceiver
    ) -> None:
        event = self.event()

        await sink.send(event)

        assert await receiver.arrived() == [event.body]

    async def test_the_largest_event_arrives(
        self, sink: EventSink, receiver: SinkReceiver
    ) -> None:
        event = self.event(size=_LARGEST_BODY)

        await sink.send(event)

        assert await receiver.arrived() == [event.body]

    async def test_events_that_are_sent_one_after_the_other_arrive_in_this_order(
        self, sink: EventSink, receiver: SinkReceiver
    ) -> None:
        events = [self.event(number, resource="one") for number in range(1, 21)]

        for event in events:
            await sink.send(event)

        assert await receiver.arrived() == [event.body for event in events]

    async def test_events_that_are_sent_at_once_all_arrive(
        self, sink: EventSink, receiver: SinkReceiver
    ) -> None:
        events = [self.event(number) for number in range(1, 51)]

        await asyncio.gather(*(sink.send(event) for event in events))

        assert sorted(await receiver.arrived()) == sorted(event.body for event in events)

    async def test_an_event_that_is_sent_again_is_taken(
        self, sink: EventSink, receiver: SinkReceiver
    ) -> None:
        event = self.event()

        await sink.send(event)
        await sink.send(event)

        assert set(await receiver.arrived()) == {event.body}

    async def test_a_send_to_a_receiver_that_is_down_fails(
        self, sink: EventSink, receiver: SinkReceiver
    ) -> None:
        await sink.send(self.event())
        await receiver.break_down()

        with pytest.raises(Exception) as failure:  # noqa: PT011 - of any kind
            async with asyncio.timeout(_SECONDS):
                await sink.send(self.event(2))

        assert not isinstance(failure.value, EventRejected), "the event would be a dead letter"

    async def test_events_arrive_once_the_receiver_is_back(
        self, sink: EventSink, receiver: SinkReceiver
    ) -> None:
        first, second = self.event(), self.event(2)
        await sink.send(first)
        await receiver.break_down()
        with pytest.raises(Exception):  # noqa: B017, PT011 - of any kind
            async with asyncio.timeout(_SECONDS):
                await sink.send(second)

        await receiver.recover()
        await sink.send(second)

        arrived = await receiver.arrived()
        assert arrived[0] == first.body
        assert second.body in arrived

    async def test_a_send_that_is_cancelled_does_not_spoil_the_next(
        self, sink: EventSink, receiver: SinkReceiver
    ) -> None:
        for number in range(1, 11):
            sending = asyncio.create_task(sink.send(self.event(number)))
            await asyncio.sleep(0.001 * number)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        last = self.event(11)

        await sink.send(last)

        assert (await receiver.arrived())[-1] == last.body

    async def test_a_sink_that_was_closed_opens_again(
        self, sink: EventSink, receiver: SinkReceiver
    ) -> None:
        await sink.close()
        event = self.event()
        await sink.send(event)
        await sink.close()
        await sink.close()

        assert await receiver.arrived() == [event.body]
