"""What the sink sends to a broker, and how it treats its connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from aio_pika.exceptions import AMQPError, ChannelNotFoundEntity, DeliveryError

from fhirpub.plugin_api import EventSink
from fhirpub.testing.plugin_contracts import EventSinkContract
from fhirpub_amqp.settings import AmqpSettings
from fhirpub_amqp.sink import AmqpSink
from tests.amqp.events import EVENT
from tests.amqp.small_broker import SmallBroker
from tests.ports import free_port
from tests.waiting import until

EXCHANGE = "fhirpub.events"


def settings_of(receiver: SmallBroker, **changes: Any) -> AmqpSettings:
    return AmqpSettings(url=receiver.url, connect_seconds=30.0, **changes)


@pytest.fixture
async def receiver() -> AsyncIterator[SmallBroker]:
    """A broker with a queue for the exchange that is the default."""
    broker = SmallBroker()
    broker.bound.add(EXCHANGE)
    await broker.recover()
    yield broker
    await broker.break_down()


@pytest.fixture
async def sink(receiver: SmallBroker) -> AsyncIterator[AmqpSink]:
    sink = AmqpSink(settings_of(receiver))
    yield sink
    await sink.close()


class TestAmqpSinkOfASmallBroker(EventSinkContract):
    """The promises of a sink, by the protocol alone."""


async def test_a_message_has_the_identity_of_its_event(
    sink: EventSink, receiver: SmallBroker
) -> None:
    await sink.send(EVENT)

    (message,) = receiver.messages
    found = message.properties
    assert (found.message_id, found.message_type) == (EVENT.event_id, EVENT.event_type)
    assert (found.app_id, found.content_type) == ("fhirpub", "application/json")


async def test_a_message_survives_a_restart_of_the_broker(
    sink: EventSink, receiver: SmallBroker
) -> None:
    await sink.send(EVENT)

    assert receiver.messages[0].properties.delivery_mode == 2


async def test_a_message_has_the_headers_of_its_delivery_and_its_origin(
    sink: EventSink, receiver: SmallBroker
) -> None:
    await sink.send(EVENT)

    assert receiver.messages[0].properties.headers == {
        **EVENT.headers,
        "fhirpub-tenant": EVENT.tenant,
        "fhirpub-endpoint": EVENT.endpoint,
        "fhirpub-resource": f"DiagnosticReport/{json.loads(EVENT.body)['data']['id']}",
        "fhirpub-sequence": EVENT.sequence,
    }


async def test_a_consumer_may_choose_by_the_type_of_an_event(
    sink: EventSink, receiver: SmallBroker
) -> None:
    await sink.send(replace(EVENT, event_type="diagnostic_report.amended"))

    assert receiver.messages[0].routing_key == "diagnostic_report.amended"


async def test_an_exchange_is_a_durable_one_of_topics(
    sink: EventSink, receiver: SmallBroker
) -> None:
    await sink.send(EVENT)

    declared = receiver.exchanges[EXCHANGE]
    assert (declared.exchange_type, declared.durable, declared.passive) == ("topic", True, False)
    assert not declared.auto_delete


async def test_an_endpoint_may_name_its_exchange(sink: EventSink, receiver: SmallBroker) -> None:
    receiver.bound.add("reports")

    await sink.send(replace(EVENT, destination="reports"))
    await sink.send(EVENT)

    assert [message.exchange for message in receiver.messages] == ["reports", EXCHANGE]
    assert {message.routing_key for message in receiver.messages} == {EVENT.event_type}


async def test_exchanges_that_take_turns_are_declared_once(
    sink: EventSink, receiver: SmallBroker
) -> None:
    receiver.bound.add("reports")

    for _ in range(2):
        await sink.send(replace(EVENT, destination="reports"))
        await sink.send(EVENT)

    assert receiver.declared == ["reports", EXCHANGE]


async def test_the_settings_name_the_exchange_of_other_endpoints(receiver: SmallBroker) -> None:
    receiver.bound.add("others")
    sink = AmqpSink(settings_of(receiver, exchange="others"))

    await sink.send(EVENT)
    await sink.close()

    assert [message.exchange for message in receiver.messages] == ["others"]


async def test_events_share_a_connection_a_channel_and_the_declaration(
    sink: EventSink, receiver: SmallBroker
) -> None:
    await asyncio.gather(*(sink.send(replace(EVENT, sequence=n)) for n in range(5)))
    await sink.send(EVENT)

    assert (receiver.connections, receiver.channels) == (1, 1)
    assert receiver.declared == [EXCHANGE]


async def test_an_event_without_a_queue_is_not_delivered(
    sink: EventSink, receiver: SmallBroker
) -> None:
    with pytest.raises(DeliveryError):
        await sink.send(replace(EVENT, destination="without"))

    assert receiver.messages == []


async def test_an_event_without_a_queue_costs_no_new_connection(
    sink: EventSink, receiver: SmallBroker
) -> None:
    with pytest.raises(DeliveryError):
        await sink.send(replace(EVENT, destination="without"))
    await sink.send(EVENT)

    assert (receiver.connections, receiver.channels, receiver.closed) == (1, 1, 0)


async def test_an_event_without_a_queue_may_be_lost_if_the_settings_allow_it(
    receiver: SmallBroker,
) -> None:
    receiver.bound.clear()
    sink = AmqpSink(settings_of(receiver, mandatory=False))

    await sink.send(EVENT)
    await sink.close()

    assert receiver.messages == []


async def test_an_exchange_that_must_not_be_declared_has_to_exist(receiver: SmallBroker) -> None:
    sink = AmqpSink(settings_of(receiver, declare=False))

    with pytest.raises(ChannelNotFoundEntity, match="no exchange"):
        await sink.send(EVENT)
    await sink.close()

    assert receiver.exchanges == {}


async def test_an_exchange_that_exists_is_not_declared_if_the_settings_forbid_it(
    sink: EventSink, receiver: SmallBroker
) -> None:
    await sink.send(EVENT)
    strict = AmqpSink(settings_of(receiver, declare=False))

    await strict.send(replace(EVENT, body=b"{}"))
    await strict.close()

    assert [message.body for message in receiver.messages] == [EVENT.body, b"{}"]
    assert receiver.declared == [EXCHANGE]


async def test_events_go_on_once_a_missing_exchange_is_there(receiver: SmallBroker) -> None:
    sink = AmqpSink(settings_of(receiver, declare=False))
    with pytest.raises(ChannelNotFoundEntity):
        await sink.send(EVENT)
    other = AmqpSink(settings_of(receiver))
    await other.send(EVENT)

    await sink.send(EVENT)
    await sink.close()
    await other.close()

    assert await receiver.arrived() == [EVENT.body, EVENT.body]


async def test_exchanges_are_declared_again_on_a_new_connection(
    sink: EventSink, receiver: SmallBroker
) -> None:
    await sink.send(EVENT)
    receiver.exchanges.clear()
    await sink.close()

    await sink.send(EVENT)

    assert receiver.declared == [EXCHANGE, EXCHANGE]


async def test_a_connection_that_broke_is_replaced_by_one_for_all_who_wait(
    sink: EventSink, receiver: SmallBroker
) -> None:
    await sink.send(EVENT)
    receiver.break_off()
    with suppress(Exception):  # it may notice at once
        await sink.send(EVENT)

    await asyncio.gather(*(sink.send(EVENT) for _ in range(5)))

    assert receiver.connections == 2


async def test_what_fails_late_leaves_the_next_connection_as_it_is(
    sink: AmqpSink, receiver: SmallBroker
) -> None:
    receiver.hung = 1
    late = asyncio.create_task(sink.send(EVENT))
    await until(lambda: receiver.messages)
    unfit = replace(EVENT, event_type="x" * 256)  # longer than a routing key can be
    failing = asyncio.create_task(sink.send(unfit))
    await until(lambda: failing.done() or sink._connection is None)
    await sink.send(EVENT)

    receiver.ended.set()
    await asyncio.gather(late, failing, return_exceptions=True)
    await sink.send(EVENT)

    assert receiver.connections == 2


async def test_a_broker_that_refuses_a_channel_gets_a_new_connection_next(
    sink: EventSink, receiver: SmallBroker
) -> None:
    receiver.refuses_channels = True
    with pytest.raises(AMQPError):
        await sink.send(EVENT)
    receiver.refuses_channels = False

    await sink.send(EVENT)

    assert (receiver.connections, len(receiver.messages)) == (2, 1)


async def test_a_sink_that_is_closed_closes_its_connection(
    sink: EventSink, receiver: SmallBroker
) -> None:
    await sink.send(EVENT)

    await sink.close()

    assert receiver.closed == 1


async def test_nothing_is_connected_before_the_first_event(
    sink: EventSink, receiver: SmallBroker
) -> None:
    await sink.close()

    assert receiver.connections == 0


async def test_a_broker_that_does_not_answer_is_given_up_after_the_time_in_the_settings() -> None:
    port, opened = free_port(), list[asyncio.StreamWriter]()
    silent = await asyncio.start_server(lambda _, writer: opened.append(writer), "127.0.0.1", port)
    sink = AmqpSink(AmqpSettings(url=f"amqp://127.0.0.1:{port}/", connect_seconds=0.05))

    async with silent, asyncio.timeout(60):
        with pytest.raises(TimeoutError):
            await sink.send(EVENT)
        await until(lambda: bool(opened))
        for writer in opened:
            writer.close()
