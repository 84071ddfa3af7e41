"""A broker for AMQP 0-9-1 in the loop of a test, as far as a publisher with confirms needs it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pamqp import commands, frame
from pamqp.body import ContentBody

from fhirpub.testing.receiver import close_server
from tests.ports import free_port

_GREETING = 8
_CAPABILITIES: Any = {"publisher_confirms": True, "basic.nack": True}
_NOT_FOUND, _NO_ROUTE, _RESOURCE_ERROR = 404, 312, 506
_REPLIES: dict[type[Any], Any] = {
    commands.Connection.StartOk: commands.Connection.Tune(2047, 131_072, 0),
    commands.Connection.Open: commands.Connection.OpenOk(),
    commands.Confirm.Select: commands.Confirm.SelectOk(),
    commands.Channel.Close: commands.Channel.CloseOk(),
    commands.Connection.Close: commands.Connection.CloseOk(),
}


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A message that was published, or one that came back as no queue takes it."""

    exchange: str
    routing_key: str
    properties: commands.Basic.Properties
    body: bytes
    mandatory: bool


class SmallBroker:
    """Exchanges whose names are in ``bound`` have a queue that takes every message."""

    def __init__(self) -> None:
        """Choose a port; nothing is opened yet."""
        self.port = free_port()
        self.exchanges: dict[str, commands.Exchange.Declare] = {}
        self.declared: list[str] = []
        self.bound: set[str] = set()
        self.refuses_channels = False
        self.hung = 0
        """So many of the first connections get no confirmation; they end with ``ended``."""
        self.ended = asyncio.Event()
        self.messages: list[Taken] = []
        self.connections = self.channels = self.closed = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    async def arrived(self) -> Sequence[bytes]:
        """Return the bodies of all messages that a queue has taken."""
        return [message.body for message in self.messages]

    async def recover(self) -> None:
        """Take connections."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def break_down(self) -> None:
        """Take no connections any more, and break off those that are open."""
        if self._server is not None:
            await close_server(self._server)
        self.break_off()

    def break_off(self) -> None:
        """End the connections that are open without a word."""
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self.connections += 1
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readexactly(_GREETING)
            start = commands.Connection.Start(server_properties={"capabilities": _CAPABILITIES})
            self._send(writer, 0, start)
            await self._answer(_frames(reader), writer, self.connections)
        self._writers.discard(writer)
        writer.close()

    def _send(self, writer: asyncio.StreamWriter, channel: int, *values: Any) -> None:
        for value in values:
            writer.write(frame.marshal(value, channel))

    async def _answer(
        self, frames: AsyncIterator[tuple[int, Any]], writer: asyncio.StreamWriter, number: int
    ) -> None:
        tags: Counter[int] = Counter()
        async for channel, sent in frames:
            reply = [_REPLIES[type(sent)]] if type(sent) in _REPLIES else []
            match sent:
                case commands.Channel.Open():
                    reply = self._open_channel()
                case commands.Exchange.Declare():
                    reply = self._declare(sent)
                case commands.Basic.Publish():
                    tags[channel] += 1
                    reply = await self._take(sent, frames, tags[channel])
                    if number <= self.hung:
                        await self.ended.wait()
                        return
            self._send(writer, channel, *reply)
            if isinstance(sent, commands.Connection.Close):
                self.closed += 1
                return

    def _open_channel(self) -> list[Any]:
        if self.refuses_channels:
            return [commands.Channel.Close(_RESOURCE_ERROR, "RESOURCE_ERROR", 20, 10)]
        self.channels += 1
        return [commands.Channel.OpenOk()]

    def _declare(self, sent: commands.Exchange.Declare) -> list[Any]:
        if not sent.passive:
            self.declared.append(sent.exchange)
            self.exchanges.setdefault(sent.exchange, sent)
        elif sent.exchange not in self.exchanges:
            text = f"NOT_FOUND - no exchange '{sent.exchange}' in vhost '/'"
            return [commands.Channel.Close(_NOT_FOUND, text, 40, 10)]
        return [commands.Exchange.DeclareOk()]

    async def _take(
        self, sent: commands.Basic.Publish, frames: AsyncIterator[tuple[int, Any]], tag: int
    ) -> list[Any]:
        _channel, header = await anext(frames)
        body = b""
        while len(body) < header.body_size:
            _channel, part = await anext(frames)
            body += part.value
        reply: list[Any] = [commands.Basic.Ack(tag)]
        if sent.exchange in self.bound:
            taken = Taken(
                exchange=sent.exchange,
                routing_key=sent.routing_key,
                properties=header.properties,
                body=body,
                mandatory=sent.mandatory,
            )
            self.messages.append(taken)
        elif sent.mandatory:
            back = commands.Basic.Return(_NO_ROUTE, "NO_ROUTE", sent.exchange, sent.routing_key)
            reply = [back, header, ContentBody(body), *reply]
        return reply


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[tuple[int, Any]]:
    """Yield each frame with its channel: a head of 7 bytes, which has the size, and an end."""
    with suppress(asyncio.IncompleteReadError):
        while True:
            head = await reader.readexactly(7)
            rest = await reader.readexactly(int.from_bytes(head[3:], "big") + 1)
            _size, channel, value = frame.unmarshal(head + rest)
            yield channel, value
