"""The sink for AMQP against a real RabbitMQ, with `scripts/test --full`."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aio_pika.exceptions import DeliveryError

from fhirpub.config.loader import variable
from fhirpub.plugin_api import EventSink
from fhirpub.testing.plugin_contracts import EventSinkContract
from fhirpub.testing.process import ServiceProcess
from fhirpub_amqp.settings import AmqpSettings
from fhirpub_amqp.sink import AmqpSink
from tests.amqp.broker import IS_INSTALLED, Broker, Queue
from tests.bodies import register_body
from tests.faults.webhook_checks import impatient

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not variable("FHIRPUB_TEST_FULL"), reason="runs with scripts/test --full"),
    pytest.mark.skipif(not IS_INSTALLED, reason="needs rabbitmq-server"),
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def settings(broker: Broker) -> AmqpSettings:
    """Settings with an exchange of their own."""
    return AmqpSettings(url=broker.url, exchange=uuid.uuid4().hex)


@pytest.fixture
async def receiver(broker: Broker, settings: AmqpSettings) -> AsyncIterator[Queue]:
    queue = Queue(broker, settings.exchange)
    await queue.bind()
    yield queue
    await queue.recover()


@pytest.fixture
async def sink(settings: AmqpSettings) -> AsyncIterator[AmqpSink]:
    sink = AmqpSink(settings)
    yield sink
    await sink.close()


class TestAmqpSink(EventSinkContract):
    async def test_a_message_has_what_consumers_route_by_and_recognize_repeats_by(
        self, sink: EventSink, receiver: Queue
    ) -> None:
        event = self.event(7)

        await sink.send(event)
        await receiver.arrived()

        (message,) = receiver.messages
        assert message.routing_key == "diagnostic_report.created"
        assert message.message_id == event.event_id
        assert message.content_type == "application/json"
        assert message.headers["webhook-signature"] == event.headers["webhook-signature"]
        assert message.headers["fhirpub-sequence"] == 7
        assert message.headers["fhirpub-resource"] == event.resource

    async def test_an_event_for_which_there_is_no_queue_is_not_lost(
        self, settings: AmqpSettings
    ) -> None:
        sink = AmqpSink(replace(settings, exchange=uuid.uuid4().hex))

        with pytest.raises(DeliveryError):
            await sink.send(self.event())
        await sink.close()

    async def test_an_exchange_that_is_not_declared_must_exist(
        self, settings: AmqpSettings, receiver: Queue
    ) -> None:
        strict = replace(settings, declare=False)
        sink, lost = AmqpSink(strict), AmqpSink(replace(strict, exchange=uuid.uuid4().hex))

        await sink.send(self.event())
        with pytest.raises(Exception, match="no exchange"):
            await lost.send(self.event())
        await lost.close()
        await sink.close()

        assert len(await receiver.arrived()) == 1

    async def test_the_endpoint_may_name_another_exchange(
        self, broker: Broker, sink: EventSink
    ) -> None:
        another = Queue(broker, uuid.uuid4().hex)
        await another.bind()
        event = replace(self.event(), destination=another._exchange)

        await sink.send(event)

        assert await another.arrived() == [event.body]


async def test_a_service_sends_what_is_committed_while_the_broker_is_killed(
    broker: Broker, tmp_path: Path
) -> None:
    queue = Queue(broker, "reports")
    await queue.bind()
    settings: dict[str, dict[str, Any]] = {
        "plugins": {"enabled": ["diagnosticreport", "amqp"]},
        "amqp": {"url": broker.url},
        "webhooks": impatient(tmp_path),
    }
    with ServiceProcess(tmp_path, settings=settings) as service:
        lab = service.integrator()
        words = ["--tenant", lab.tenant.id, "--url", "sink:amqp/reports"]
        endpoint = service.command("endpoint", "add", *words)["id"]
        for number in range(40):
            lab.register(register_body(f"R-{number}"))
            if number == 20:
                broker.kill()
        broker.start()
        async with asyncio.timeout(60):
            while len(set(await queue.arrived())) < 40:
                await asyncio.sleep(0.2)
        stats = service.command("endpoint", "stats", endpoint)

    events = [json.loads(body) for body in await queue.arrived()]
    assert {event["sequence"] for event in events} == set(range(1, 41))
    assert stats["deliveries"] == {"delivered": 40}
