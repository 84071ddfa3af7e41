"""``fhirpub-hl7v2 listen``: each message is published before it is acknowledged, within limits."""

from __future__ import annotations

import re
import select
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import hl7
import pytest
from hl7.client import MLLPClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fhirpub.testing.certificate import Certificate
from fhirpub.testing.service import Integrator, RunningService
from tests.hl7v2.conftest import MAPPING, environment
from tests.hl7v2.messages import message, obr, obx, pid, segment
from tests.waiting import wait_until

Listening = Callable[..., "Process"]


class Process:
    """A listener as a process of its own."""

    def __init__(self, lab: Integrator, folder: Path, *options: str, url: str = "") -> None:
        (folder / "mapping.toml").write_text(MAPPING)
        self.errors = folder / "errors.txt"
        base = url or lab.service.base_url
        words = ["listen", "--port", "0", "--mapping", "mapping.toml", "--url", base, *options]
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fhirpub_hl7v2", *words],
                cwd=folder,
                env=environment(lab),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "listens on" in line, self.errors.read_text()
        self.port = int(line.rpartition(":")[2])

    def send(self, raw: bytes) -> hl7.Message:
        """Send a message with a client that is not ours, and return the acknowledgement."""
        with MLLPClient("127.0.0.1", self.port) as client:
            client.socket.settimeout(30)
            return hl7.parse(client.send_message(raw)[1:-2].decode())

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@pytest.fixture
def listening(lab: Integrator, tmp_path: Path) -> Iterator[Listening]:
    """Start listeners, and end them."""
    started: list[Process] = []

    def start(*options: str, url: str = "") -> Process:
        started.append(Process(lab, tmp_path, *options, url=url))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


@pytest.fixture(scope="module", params=["sqlite", "mongodb"])
def on_each_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Integrator]:
    """A client of a service on each store."""
    url = request.getfixturevalue("replica_set").url("hl7v2") if request.param == "mongodb" else ""
    with RunningService(tmp_path_factory.mktemp("hl7v2"), store_url=url) as running:
        yield running.integrator()


def total(lab: Integrator) -> int:
    return int(lab.get("/fhir/r4/DiagnosticReport?_summary=count").json["total"])


def code(answer: hl7.Message) -> str:
    return str(answer["MSA.F1"])


def end_of(connection: socket.socket) -> bytes:
    """Return all that a connection still sends; nothing more after a reset."""
    received = b""
    with suppress(ConnectionResetError):
        while chunk := connection.recv(65_536):
            received += chunk
    return received


def test_a_report_goes_from_preliminary_to_corrected_on_each_store(
    on_each_store: Integrator, tmp_path: Path
) -> None:
    listener = Process(on_each_store, tmp_path)
    try:
        codes = [
            code(listener.send(message(pid(), obr({25: status}), obx({5: value, 11: status}))))
            for status, value in (("P", "13.1"), ("F", "13.2"), ("C", "12.3"), ("C", "12.3"))
        ]
        assert listener.stop() == 0
    finally:
        listener.process.kill()
        listener.process.communicate()

    (entry,) = on_each_store.get("/fhir/r4/DiagnosticReport").json["entry"]
    assert codes == ["AA", "AA", "AA", "AA"]
    assert entry["resource"]["status"] == "corrected"
    assert entry["resource"]["meta"]["versionId"] == "3"


def test_an_acknowledgement_names_the_message_and_swaps_the_applications(
    listening: Listening,
) -> None:
    answer = listening().send(message())

    assert str(answer["MSA.F2"]) == "M1"
    assert [str(answer[f"MSH.F{at}"]) for at in (3, 4, 5, 6, 12)] == [
        "EHR",
        "HOSP",
        "LIS",
        "North Quay",
        "2.5.1",
    ]


def test_problems_stand_in_err_segments(listening: Listening) -> None:
    answer = listening().send(message(pid(), obr({25: "Q"}), obx({11: "Q"})))

    errors = [str(error) for error in answer.segments("ERR")]
    assert code(answer) == "AE"
    assert [error.split("|")[2] for error in errors] == ["OBX^1^11", "OBR^1^25"]


def test_before_2_5_problems_stand_in_err_1(listening: Listening) -> None:
    answer = listening().send(message(pid(), obr({25: "Q"}), obx(), msh={12: "2.3"}))

    assert str(answer.segment("ERR")).startswith("ERR|OBR^1^25^102&")


def test_problems_of_the_service_stand_in_err_segments(listening: Listening) -> None:
    collected = segment("SPM", {4: "BLD^Blood", 17: "20260302104500^20260302081500"})

    answer = listening().send(message(pid(), obr(), obx(), collected))

    assert code(answer) == "AE"
    assert "per-1" in str(answer)


@pytest.mark.parametrize("msh", [{9: "ADT^A01"}, {12: "2.8"}, {11: "T"}])
def test_what_is_not_supported_is_rejected(listening: Listening, msh: dict[int, str]) -> None:
    assert code(listening().send(message(msh=msh))) == "AR"


def test_a_late_message_is_not_applied_and_says_so(listening: Listening) -> None:
    listener = listening()
    listener.send(message())

    answer = listener.send(message(pid(), obr({25: "P"}), obx({5: "1", 11: "P"})))

    assert code(answer) == "AE"
    assert "a later state of the report is stored already" in str(answer)


def test_an_unreachable_service_means_send_it_again(listening: Listening) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nothing:
        url = f"http://127.0.0.1:{nothing.getsockname()[1]}"
    listener = listening("--deadline-seconds", "1", url=url)

    answer = listener.send(message())

    assert code(answer) == "AE"
    assert "send the message again" in str(answer)


def test_a_sender_that_lost_the_answer_repeats_without_a_double(
    lab: Integrator, listening: Listening
) -> None:
    listener = listening()
    with listener.connect() as connection:
        connection.sendall(b"\x0b" + message() + b"\x1c\r")

    answer = listener.send(message())

    assert code(answer) == "AA"
    assert total(lab) == 1


def test_several_messages_may_be_sent_at_once_on_a_connection(
    lab: Integrator, listening: Listening
) -> None:
    other = message(pid(), obr({3: "NQ-2^LIS"}), obx(), msh={10: "M2"})
    with listening().connect() as connection:
        connection.sendall(b"\x0b" + message() + b"\x1c\r\r\n\x0b" + other + b"\x1c\r")
        received = b""
        while received.count(b"\x1c\r") < 2:
            received += connection.recv(65_536)

    assert re.findall(rb"MSA\|AA\|(M\d)", received) == [b"M1", b"M2"]
    assert total(lab) == 2


def test_a_message_that_is_too_large_is_refused_and_the_connection_closed(
    lab: Integrator, listening: Listening
) -> None:
    with listening("--message-bytes", "2048").connect() as connection:
        connection.sendall(b"\x0b" + message(segment("NTE", {3: "x" * 70_000})))
        received = end_of(connection)

    assert b"MSA|AE|M1|is larger than 2048 bytes" in received
    assert total(lab) == 0


def test_a_sender_that_is_slow_is_disconnected(listening: Listening) -> None:
    with listening("--arrival-seconds", "0.5").connect() as connection:
        connection.sendall(b"\x0b" + message()[:40])

        assert end_of(connection) == b""


def test_a_silent_connection_is_closed(listening: Listening) -> None:
    with listening("--idle-seconds", "0.5").connect() as connection:
        assert end_of(connection) == b""


def test_what_is_not_mllp_is_disconnected(listening: Listening) -> None:
    listener = listening()
    with listener.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")

        assert end_of(connection) == b""
    assert code(listener.send(message())) == "AA"


def test_connections_beyond_the_limit_are_closed(listening: Listening) -> None:
    listener = listening("--connections", "3")
    opened = [listener.connect() for _ in range(10)]

    def ended() -> list[socket.socket]:
        return select.select(opened, [], [], 0)[0]

    assert wait_until(lambda: len(ended()) >= 7)
    time.sleep(0.5)
    received = [end_of(connection) for connection in ended()]
    for connection in opened:
        connection.close()

    assert received == 7 * [b""]


def test_an_address_that_is_not_allowed_is_disconnected(listening: Listening) -> None:
    with listening("--allow", "10.1.0.0/16").connect() as connection:
        assert end_of(connection) == b""


def test_messages_come_over_tls_from_a_client_with_a_certificate(
    listening: Listening, tmp_path: Path
) -> None:
    certificate = Certificate.create(tmp_path, name="127.0.0.1")
    file = str(certificate.file)
    listener = listening("--tls-cert", file, "--tls-client-ca", file)
    context = ssl.create_default_context(cafile=file)
    context.check_hostname = False
    with pytest.raises(OSError), context.wrap_socket(listener.connect()) as stranger:  # noqa: PT012
        stranger.sendall(b"\x0b" + message() + b"\x1c\r")
        if not stranger.recv(1000):
            raise ConnectionResetError

    context.load_cert_chain(file)
    with context.wrap_socket(listener.connect()) as known:
        known.sendall(b"\x0b" + message() + b"\x1c\r")
        assert b"MSA|AA|M1" in known.recv(65_536)


def test_logs_have_no_data_of_the_patient(listening: Listening) -> None:
    listener = listening()
    listener.send(message())
    listener.send(message(pid({7: "20261399"}), obr({25: "Q"}), obx({14: "Ashdown"})))
    listener.stop()

    logged = listener.errors.read_text()
    assert "message refused" in logged
    assert not re.search("Ashdown|Juniper|30111222|NQ-1001|13\\.2|Hemoglobin", logged)


def test_a_message_in_work_is_answered_before_the_listener_ends(listening: Listening) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        listener = listening("--deadline-seconds", "2", url=url)
        with listener.connect() as connection:
            connection.sendall(b"\x0b" + message() + b"\x1c\r")
            with silent.accept()[0]:
                listener.process.send_signal(signal.SIGTERM)

                assert b"MSA|AE|M1" in end_of(connection)
    assert listener.process.wait(30) == 0


FRAGMENTS = st.one_of(
    st.sampled_from([b"|", b"^", b"~", b"\\", b"&", b"\r", b'""', b"\\X", b"\\.sp9", b"MSH|"]),
    st.binary(max_size=6).map(lambda raw: re.sub(rb"[\x0b\x1c]", b"", raw)),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 4), FRAGMENTS), max_size=5))
def test_every_mutated_message_is_acknowledged(
    mutating: Process, edits: list[tuple[int, int, bytes]]
) -> None:
    raw = message()
    for at, length, fragment in edits:
        raw = raw[:at] + fragment + raw[at + length :]

    with mutating.connect() as connection:
        connection.sendall(b"\x0b" + raw + b"\x1c\r")
        answer = connection.recv(65_536)

    assert re.search(rb"\rMSA.A[AER]", answer)
    assert mutating.process.poll() is None


@pytest.fixture
def mutating(listening: Listening) -> Process:
    return listening()
