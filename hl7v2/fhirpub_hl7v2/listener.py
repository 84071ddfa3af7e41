"""A server for MLLP: one message after another on each connection, within limits."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

import structlog

from fhirpub.runtime.clock import Clock
from fhirpub_hl7v2.acknowledgement import Acknowledgement, Sender, to_bytes
from fhirpub_hl7v2.frames import END, START, Frames, Memory, NotMllp, TooLarge
from fhirpub_hl7v2.problems import Code, Problem
from fhirpub_hl7v2.receiver import Receiver

log = structlog.get_logger()

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_WRITE_SECONDS = 30.0
_HANDSHAKE_SECONDS = 10.0
_PLAIN_ID = re.compile(r"[\w.-]{1,50}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What peers may use. Times are in seconds.

    ``idle`` is the longest pause between messages, ``arrival`` the longest time in which one may
    arrive. An empty ``allowed`` means every address.
    """

    message_bytes: int
    connections: int
    idle: float
    arrival: float
    allowed: Sequence[Network] = ()


@dataclass(slots=True)
class Listener:
    """Receives messages over MLLP."""

    receiver: Receiver
    limits: Limits
    clock: Clock
    memory: Memory
    _idle: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _open: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _is_stopping: bool = field(default=False, init=False)

    @asynccontextmanager
    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
        """Accept connections; the value is the port. At the end, messages in work are finished."""
        handshake = _HANDSHAKE_SECONDS if tls else None
        server = await asyncio.start_server(
            self._accept, host, port, ssl=tls, ssl_handshake_timeout=handshake
        )
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            self._is_stopping = True
            for task in self._idle:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # asyncio runs this in one
        peer = str((writer.get_extra_info("peername") or ("",))[0])
        self._open.add(task)
        try:
            if not self._is_allowed(peer):
                log.warning("connection refused", peer=peer, reason="address not allowed")
            elif len(self._open) > self.limits.connections:
                log.warning("connection refused", peer=peer, reason="too many connections")
            else:
                await self._serve(reader, writer, peer)
        except (asyncio.CancelledError, OSError, TimeoutError):
            pass  # stopped, cut or silent: nothing is in work, or its sender repeats it
        except NotMllp:
            log.warning("connection closed", peer=peer, reason="not a whole message in MLLP")
        finally:
            self._open.discard(task)
            writer.close()

    def _is_allowed(self, peer: str) -> bool:
        if not self.limits.allowed:
            return True
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None) or address
        return any(mapped in network for network in self.limits.allowed)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str
    ) -> None:
        frames = Frames(reader, self.memory, self.limits.message_bytes)
        try:
            while not self._is_stopping and await self._begins(frames):
                try:
                    async with asyncio.timeout(self.limits.arrival):
                        raw = await frames.message()
                except TooLarge as problem:
                    await self._refuse(writer, problem, peer)
                    return
                await self._answer(writer, raw, await self.receiver.receive(raw), peer)
                frames.release()
        finally:
            frames.release()

    async def _begins(self, frames: Frames) -> bool:
        """Wait for a message; a stop ends this wait, and no other."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # as above
        self._idle.add(task)
        try:
            async with asyncio.timeout(self.limits.idle):
                return await frames.begins()
        finally:
            self._idle.discard(task)

    async def _refuse(self, writer: asyncio.StreamWriter, problem: TooLarge, peer: str) -> None:
        """Answer a message that is not read to its end, so that its sender sees why."""
        found = [Problem(str(problem), code=Code.INTERNAL)]
        await self._answer(writer, problem.begin, Acknowledgement("AE", str(problem), found), peer)

    async def _answer(
        self, writer: asyncio.StreamWriter, raw: bytes, answer: Acknowledgement, peer: str
    ) -> None:
        sender = Sender.of(raw)
        _log(answer, sender, peer, len(raw))
        now = datetime.fromtimestamp(self.clock() / 1000, UTC).strftime("%Y%m%d%H%M%S+0000")
        made = to_bytes(answer, sender, uuid4().hex[:20], now)
        writer.write(START + made + END)
        async with asyncio.timeout(_WRITE_SECONDS):
            await writer.drain()


def _log(answer: Acknowledgement, sender: Sender, peer: str, size: int) -> None:
    """Log what became of a message: its control id if that is a plain one, and no other value."""
    number = sender.field(10)
    facts = {"message": number if _PLAIN_ID.fullmatch(number) else "?", "peer": peer, "size": size}
    if answer.code == "AA":
        log.info("message published", **facts)
        for warning in answer.warnings:
            log.warning("kept as registered", reason=warning.text, **facts)
    else:
        places = [problem.place for problem in answer.problems if problem.place]
        log.warning(
            "message refused", code=answer.code, places=places, reason=answer.text, **facts
        )
