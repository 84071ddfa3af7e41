"""Checkpoints are kept in a file and sent by syslog over TLS, again if they could not be sent."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fhirpub.audit.outlets import SyslogOutlet, message, outlets_of
from fhirpub.config.audit import AuditConfig
from fhirpub.errors import ConfigurationError
from fhirpub.testing.certificate import Certificate

AT = 1_795_000_000_123


@dataclass
class Server:
    """A syslog server that reads frames by their length."""

    port: int = 0
    messages: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                length = await reader.readuntil(b" ")
            except asyncio.IncompleteReadError:
                break
            self.messages.append((await reader.readexactly(int(length))).decode())
        writer.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate.create(tmp_path_factory.mktemp("tls"), name="127.0.0.1")


@pytest.fixture
async def server(certificate: Certificate) -> AsyncGenerator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=certificate.server())
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server


async def received(server: Server, count: int) -> list[str]:
    async with asyncio.timeout(10):
        while len(server.messages) < count:
            await asyncio.sleep(0.01)
    return server.messages


def test_a_message_has_its_length_and_the_header_of_rfc_5424() -> None:
    length, _space, text = message('{"block":1}', at=AT).partition(b" ")

    assert int(length) == len(text)
    header, line = text.decode().split(" - ", 1)
    assert line == '{"block":1}'
    priority, moment, host, app, _process, kind = header.split(" ")
    assert (priority, app, kind) == ("<109>1", "fhirpub", "checkpoint")
    assert moment == "2026-11-18T11:06:40.123Z"
    assert host == socket.gethostname()


async def test_checkpoints_arrive_one_by_one(server: Server, certificate: Certificate) -> None:
    outlet = SyslogOutlet("127.0.0.1", server.port, ca_file=str(certificate.file))

    await outlet.keep(['{"block":1}', '{"block":2}'], at=AT)

    lines = [json.loads(text.split(" - ", 1)[1]) for text in await received(server, 2)]
    assert lines == [{"block": 1}, {"block": 2}]


async def test_what_could_not_be_sent_is_sent_with_the_next_round(
    server: Server, certificate: Certificate
) -> None:
    outlet = SyslogOutlet("127.0.0.1", 1, ca_file=str(certificate.file))
    with capture_logs() as logged:
        await outlet.keep(["one"], at=AT)
    assert [(line["event"], line["waiting"]) for line in logged] == [("checkpoint not sent", 1)]

    outlet._port = server.port
    await outlet.keep(["two"], at=AT)
    await outlet.keep(["three"], at=AT)

    texts = [text.split(" - ", 1)[1] for text in await received(server, 3)]
    assert texts == ["one", "two", "three"]


async def test_what_comes_during_an_attempt_that_fails_is_sent_as_well(
    server: Server, certificate: Certificate
) -> None:
    outlet = SyslogOutlet("127.0.0.1", 1, ca_file=str(certificate.file))
    await asyncio.gather(outlet.keep(["one"], at=AT), outlet.keep(["two"], at=AT))

    outlet._port = server.port
    await outlet.keep(["three"], at=AT)

    texts = [text.split(" - ", 1)[1] for text in await received(server, 3)]
    assert texts == ["one", "two", "three"]


async def test_a_server_with_another_certificate_gets_nothing(
    server: Server, tmp_path: Path
) -> None:
    other = Certificate.create(tmp_path, name="127.0.0.1")
    outlet = SyslogOutlet("127.0.0.1", server.port, ca_file=str(other.file))

    with capture_logs() as logged:
        await outlet.keep(["one"], at=AT)

    assert logged[0]["reason"] == "SSLCertVerificationError"
    assert server.messages == []


def test_outlets_are_those_of_the_settings(certificate: Certificate) -> None:
    none = AuditConfig()
    both = replace(
        none,
        checkpoints_file="checkpoints.ndjson",
        checkpoints_syslog="[::1]:6514",
        checkpoints_syslog_ca_file=str(certificate.file),
    )

    assert outlets_of(none) == []
    assert len(outlets_of(both)) == 2


@pytest.mark.parametrize(
    "config",
    [
        AuditConfig(checkpoints_syslog="logs.example.org"),
        AuditConfig(checkpoints_syslog=":6514"),
        AuditConfig(checkpoints_syslog="a:6514", checkpoints_syslog_ca_file="/no/file"),
    ],
)
def test_settings_of_syslog_that_cannot_be_used_are_refused(config: AuditConfig) -> None:
    with pytest.raises(ConfigurationError, match="checkpoints_syslog"):
        outlets_of(config)
