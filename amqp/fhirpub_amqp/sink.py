"""Publishes events with publisher confirms, over one connection that is opened when needed."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from aio_pika import DeliveryMode, ExchangeType, Message, connect
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange
from aio_pika.exceptions import DeliveryError

from fhirpub.plugin_api import EventSink, SinkEvent
from fhirpub_amqp.settings import AmqpSettings


class AmqpSink(EventSink):
    """A sink that returns once the broker has confirmed an event: it is in every queue, durably.

    The routing key is the type of the event, such as ``diagnostic_report.created``.
    """

    name = "amqp"

    def __init__(self, settings: AmqpSettings) -> None:
        """Take the settings; nothing is opened yet."""
        self._settings = settings
        self._opening = asyncio.Lock()
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        self._exchanges: dict[str, AbstractExchange] = {}

    async def send(self, event: SinkEvent) -> None:
        """Publish an event. It raises if the broker is away, or has no queue for it."""
        message = Message(
            event.body,
            headers={
                **event.headers,
                "fhirpub-tenant": event.tenant,
                "fhirpub-endpoint": event.endpoint,
                "fhirpub-resource": event.resource,
                "fhirpub-sequence": event.sequence,
            },
            content_type="application/json",
            delivery_mode=DeliveryMode.PERSISTENT,
            message_id=event.event_id,
            type=event.event_type,
            app_id="fhirpub",
        )
        connection, exchange = await self._exchange(event.destination or self._settings.exchange)
        try:
            await exchange.publish(
                message, routing_key=event.event_type, mandatory=self._settings.mandatory
            )
        except DeliveryError:  # there is no queue; the connection is as good as before
            raise
        except Exception:
            await self._discard(connection)
            raise

    async def close(self) -> None:
        """Close the connection."""
        async with self._opening:
            await self._discard(self._connection)

    async def _exchange(self, name: str) -> tuple[AbstractConnection, AbstractExchange]:
        """Return an exchange, declared once for a channel, and its connection."""
        async with self._opening:
            if self._connection is None:
                self._connection = await connect(
                    self._settings.url, timeout=self._settings.connect_seconds
                )
            connection = self._connection
            try:
                if self._channel is None:
                    # What no queue takes comes back as an exception.
                    self._channel = await connection.channel(on_return_raises=True)
                if name not in self._exchanges:
                    self._exchanges[name] = await self._find(self._channel, name)
            except Exception:
                await self._discard(connection)
                raise
            return connection, self._exchanges[name]

    async def _discard(self, connection: AbstractConnection | None) -> None:
        """Close a connection that failed, unless another event has opened the next one already."""
        if connection is None:
            return
        if connection is self._connection:
            self._connection, self._channel = None, None
            self._exchanges.clear()
        with suppress(Exception):  # it may be lost
            await connection.close()

    async def _find(self, channel: AbstractChannel, name: str) -> AbstractExchange:
        if self._settings.declare:
            return await channel.declare_exchange(name, ExchangeType.TOPIC, durable=True)
        return await channel.get_exchange(name)
