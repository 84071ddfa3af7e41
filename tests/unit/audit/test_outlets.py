"""Checkpoints are kept in a file and sent by syslog over TLS, again if they could not be sent."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fhirpub.audit import outlets
from fhirpub.audit.outlets import FileOutlet, SyslogOutlet, message, outlets_of
from fhirpub.config.audit import AuditConfig
from fhirpub.errors import ConfigurationError
from fhirpub.testing.certificate import Certificate
from tests.waiting import until

AT = 1_795_000_000_123


@dataclass
class Server:
    """A syslog server that reads frames by their length."""

    port: int = 0
    messages: list[str] = field(default_factory=list)
    serving: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving += 1
        try:
            while True:
                length = await reader.readuntil(b" ")
                self.messages.append((await reader.readexactly(int(length))).decode())
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            self.serving -= 1


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
        await until(lambda: not server.serving)


async def received(server: Server, count: int) -> list[str]:
    async with asyncio.timeout(30):
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


def test_a_message_is_counted_in_bytes() -> None:
    length, _space, text = message('{"tenant":"Süd"}', at=AT).partition(b" ")

    assert int(length) == len(text)
    assert text.decode().endswith(' {"tenant":"Süd"}')


async def test_what_waits_for_the_server_is_sent_with_the_time_of_its_signature(
    server: Server, certificate: Certificate
) -> None:
    outlet = SyslogOutlet("127.0.0.1", 1, ca_file=str(certificate.file))
    await outlet.keep(["one"], at=AT)

    outlet._port = server.port
    await outlet.keep(["two"], at=AT + 60_000)

    moments = [text.split(" ")[1] for text in await received(server, 2)]
    assert moments == ["2026-11-18T11:06:40.123Z", "2026-11-18T11:07:40.123Z"]


async def test_the_last_thousand_messages_wait_for_a_server_that_is_away(
    server: Server, certificate: Certificate
) -> None:
    outlet = SyslogOutlet("127.0.0.1", 1, ca_file=str(certificate.file))
    await outlet.keep(["first"], at=AT)
    with capture_logs() as logged:
        await outlet.keep([str(number) for number in range(1_000)], at=AT)
    assert [line["waiting"] for line in logged] == [1_000]

    outlet._port = server.port
    await outlet.keep(["last"], at=AT)

    texts = [text.split(" - ", 1)[1] for text in await received(server, 1_001)]
    assert texts == [*map(str, range(1_000)), "last"]


async def test_what_was_sent_is_not_sent_again(server: Server, certificate: Certificate) -> None:
    outlet = SyslogOutlet("127.0.0.1", server.port, ca_file=str(certificate.file))
    await outlet.keep(["one"], at=AT)
    await outlet.keep(["two"], at=AT)

    texts = [text.split(" - ", 1)[1] for text in await received(server, 2)]
    assert texts == ["one", "two"]


async def test_checkpoints_are_appended_to_what_the_file_holds(tmp_path: Path) -> None:
    file = tmp_path / "checkpoints.ndjson"
    outlet = FileOutlet(file)

    await outlet.keep(['{"tenant":"Süd"}', "2"], at=AT)
    await outlet.keep(["3"], at=AT)

    assert file.read_text(encoding="utf-8") == '{"tenant":"Süd"}\n2\n3\n'


async def test_a_file_that_cannot_be_written_is_logged_with_the_reason(tmp_path: Path) -> None:
    with capture_logs() as logged:
        await FileOutlet(tmp_path / "no" / "file").keep(["1"], at=AT)

    assert [(one["log_level"], one["event"], one["reason"]) for one in logged] == [
        ("error", "checkpoint not written to the file", "No such file or directory")
    ]


def test_one_setting_is_one_outlet(certificate: Certificate) -> None:
    (file,) = outlets_of(AuditConfig(checkpoints_file="checkpoints.ndjson"))
    (syslog,) = outlets_of(AuditConfig(checkpoints_syslog="logs.example.org:6514"))

    assert isinstance(file, FileOutlet)
    assert isinstance(syslog, SyslogOutlet)
    assert (syslog._host, syslog._port) == ("logs.example.org", 6514)


def test_an_address_of_ipv6_loses_its_brackets() -> None:
    (syslog,) = outlets_of(AuditConfig(checkpoints_syslog="[::1]:6514"))

    assert isinstance(syslog, SyslogOutlet)
    assert (syslog._host, syslog._port) == ("::1", 6514)


def test_an_authority_that_cannot_be_read_is_named() -> None:
    config = AuditConfig(checkpoints_syslog="a:6514", checkpoints_syslog_ca_file="/no/file")

    with pytest.raises(ConfigurationError, match="ca_file: /no/file cannot be read"):
        outlets_of(config)


@pytest.mark.parametrize("port", ["", "x", "-1", "65 14"])
def test_a_port_that_is_no_number_is_refused(port: str) -> None:
    with pytest.raises(ConfigurationError, match="must be host:port"):
        outlets_of(AuditConfig(checkpoints_syslog=f"logs.example.org:{port}"))


async def test_a_server_that_does_not_answer_is_not_waited_for(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlets, "_SECONDS", 0.05)

    async def be_silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.close()

    released = asyncio.Event()
    listening = await asyncio.start_server(be_silent, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    outlet = SyslogOutlet("127.0.0.1", port, ca_file=str(certificate.file))
    async with asyncio.timeout(30):
        with capture_logs() as logged:
            await outlet.keep(["{}"], at=AT)

    released.set()
    listening.close()
    assert [(one["reason"], one["waiting"]) for one in logged] == [("TimeoutError", 1)]
