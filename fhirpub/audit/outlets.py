"""Keeps checkpoints outside the store: in a file, and by syslog over TLS.

Those who can write to the store cannot change what was kept elsewhere. A checkpoint that cannot
be kept is in the store all the same, and the sealing goes on.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from fhirpub.config.audit import AuditConfig
from fhirpub.errors import ConfigurationError
from fhirpub.runtime.logging import logger

_SECONDS = 10.0
_MAX_KEPT = 1_000
"""The maximum number of messages that wait for a server that cannot be reached."""
_PRIORITY = 13 * 8 + 5
"""Facility 13, log audit, and severity 5, notice (RFC 5424, section 6.2.1)."""

_log = logger()


class Outlet(ABC):
    """A place outside the store where checkpoints are kept."""

    @abstractmethod
    async def keep(self, lines: Sequence[str], *, at: int) -> None:
        """Keep checkpoints, each a line of JSON, signed at a time in milliseconds.

        A failure is logged, and raises nothing.
        """


class FileOutlet(Outlet):
    """Appends lines to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def keep(self, lines: Sequence[str], *, at: int) -> None:  # noqa: ARG002
        await asyncio.to_thread(self._append, "".join(f"{line}\n" for line in lines))

    def _append(self, text: str) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as problem:
            _log.error("checkpoint not written to the file", reason=problem.strerror)


class SyslogOutlet(Outlet):
    """Sends messages to a syslog server over TLS (RFC 5424, RFC 5425).

    One connection for each round, about once a minute. What cannot be sent is sent with the next
    one, up to a number of messages.
    """

    def __init__(self, host: str, port: int, *, ca_file: str = "") -> None:
        """Take the address; raises ConfigurationError if the authorities cannot be read."""
        self._host, self._port = host, port
        try:
            self._tls = ssl.create_default_context(cafile=ca_file or None)
        except (OSError, ssl.SSLError):
            raise ConfigurationError(
                f"[audit] checkpoints_syslog_ca_file: {ca_file} cannot be read, or is not in PEM"
            ) from None
        self._waiting: list[bytes] = []
        self._sending = asyncio.Lock()

    async def keep(self, lines: Sequence[str], *, at: int) -> None:
        self._waiting += [message(line, at=at) for line in lines]
        async with self._sending:
            taken, self._waiting = self._waiting, []
            try:
                async with asyncio.timeout(_SECONDS):
                    await self._send(taken)
            except (OSError, TimeoutError) as problem:  # SSLError is one
                self._waiting = [*taken, *self._waiting][-_MAX_KEPT:]
                reason, waiting = type(problem).__name__, len(self._waiting)
                _log.error("checkpoint not sent", reason=reason, waiting=waiting)

    async def _send(self, messages: Sequence[bytes]) -> None:
        _reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        try:
            writer.writelines(messages)
            await writer.drain()
        finally:
            writer.close()
            await writer.wait_closed()


def message(line: str, *, at: int) -> bytes:
    """Return a message in the frame of syslog over TLS: its length, a space, and itself."""
    moment = datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
    moment = moment.replace("+00:00", "Z")
    host = socket.gethostname() or "-"
    header = f"<{_PRIORITY}>1 {moment} {host} fhirpub {os.getpid()} checkpoint -"
    text = f"{header} {line}".encode()
    return b"%d %b" % (len(text), text)


def outlets_of(config: AuditConfig) -> list[Outlet]:
    """Return the outlets that the settings name. Raises ConfigurationError."""
    outlets: list[Outlet] = []
    if config.checkpoints_file:
        outlets.append(FileOutlet(Path(config.checkpoints_file)))
    if config.checkpoints_syslog:
        host, _colon, port = config.checkpoints_syslog.rpartition(":")
        if not host or not port.isdigit():
            raise ConfigurationError(
                "[audit] checkpoints_syslog: must be host:port, such as logs.example.org:6514"
            )
        outlets.append(
            SyslogOutlet(host.strip("[]"), int(port), ca_file=config.checkpoints_syslog_ca_file)
        )
    return outlets
