"""SIGTERM: accepted requests are answered and acknowledged writes kept before the end."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import chain
from pathlib import Path

import pytest

from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator
from tests.bodies import document, register_body
from tests.faults.load import Publisher, check_all, check_store, run_until_answers_fail
from tests.ports import is_refused
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

_REGISTER = "/fhir/r4/DiagnosticReport/$register"
_DRAIN_SECONDS = 25.0


one_process = pytest.mark.parametrize("process", [1], ids=["one process"], indirect=True)
two_workers = pytest.mark.parametrize("process", [2], ids=["two workers"], indirect=True)


@pytest.fixture(params=[1, 2], ids=["one process", "two workers"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServiceProcess]:
    settings = {"server": {"drain_seconds": _DRAIN_SECONDS}}
    with ServiceProcess(tmp_path, workers=request.param, settings=settings) as running:
        yield running


def head_of(lab: Integrator, body: bytes) -> bytes:
    lines = [
        f"POST {_REGISTER} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {lab.token}",
        "Content-Type: application/fhir+json",
        f"Content-Length: {len(body)}",
        "Expect: 100-continue",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def begin_to_send(connection: socket.socket, lab: Integrator, body: bytes, *, first: int) -> None:
    """Send the head of a request and the first bytes of its body once the service asks for it."""
    connection.sendall(head_of(lab, body))
    assert connection.recv(1_000).startswith(b"HTTP/1.1 100 ")
    connection.sendall(body[:first])


def answer_on(connection: socket.socket) -> tuple[int, bytes]:
    with closing(http.client.HTTPResponse(connection)) as response:
        response.begin()
        return response.status, response.read()


def test_a_stop_under_load_loses_nothing_and_cuts_no_answer_off(process: ServiceProcess) -> None:
    lab = process.integrator()

    for stop in range(2):
        publishers = [Publisher(lab, seed=3000 + stop * 10 + number) for number in range(5)]
        threads = run_until_answers_fail(publishers, process.port, 2000)
        assert wait_until(partial(all_are_acknowledged, publishers))
        begun = time.monotonic()
        process.terminate()
        status = process.wait()
        seconds = time.monotonic() - begun
        for thread in threads:
            thread.join()
        process.start()

        assert status == 0
        assert seconds < _DRAIN_SECONDS
        check_all(lab, chain.from_iterable(publisher.sent[-15:] for publisher in publishers))
        assert all(publisher.acknowledged for publisher in publishers)
        assert [publisher.refusals for publisher in publishers if publisher.refusals] == []
        failures = list(chain.from_iterable(publisher.failures for publisher in publishers))
        assert all(is_before_any_answer(failure) for failure in failures), failures

    check_store(process.config.storage.url)


def all_are_acknowledged(publishers: Sequence[Publisher]) -> bool:
    """Return whether each has had an answer."""
    return all(publisher.acknowledged for publisher in publishers)


def is_before_any_answer(failure: Exception) -> bool:
    """Distinguish a connection that is refused or closed from a response that is cut off."""
    return isinstance(failure, (ConnectionError, http.client.CannotSendRequest))


def test_a_body_on_its_way_is_still_taken_and_answered(process: ServiceProcess) -> None:
    lab = process.integrator()
    body = dumps(register_body("on-its-way"))

    with closing(socket.create_connection(("127.0.0.1", process.port), timeout=20)) as sending:
        begin_to_send(sending, lab, body, first=100)
        process.terminate()
        time.sleep(0.5)
        sending.sendall(body[100:])
        status, answer = answer_on(sending)

    assert process.wait() == 0
    assert status == 201
    process.start()
    assert lab.register(body).body == answer


@one_process
def test_a_large_answer_on_its_way_arrives_whole(process: ServiceProcess) -> None:
    lab = process.integrator()
    documents = [document(b"%PDF-" + os.urandom(4_000_000)) for _ in range(4)]
    registered = lab.register(register_body("large", presentedForm=documents))
    path = registered.headers["location"].removeprefix(lab.service.base_url)

    with closing(slow_reader(process.port)) as reading:
        asked = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {lab.token}\r\n\r\n"
        reading.sendall(asked.encode())
        reading.recv(1, socket.MSG_PEEK)
        process.terminate()
        time.sleep(0.3)
        status, answer = answer_on(reading)

    assert process.wait() == 0
    assert status == 200
    assert [attachment["data"] for attachment in loads(answer)["presentedForm"]] == [
        record["data"] for record in documents
    ]


def slow_reader(port: int) -> socket.socket:
    """Return a connection that buffers little before it is read."""
    reading = socket.socket()
    reading.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reading.settimeout(20)
    reading.connect(("127.0.0.1", port))
    return reading


@two_workers
def test_idle_connections_do_not_hold_the_stop_up(process: ServiceProcess) -> None:
    idle = [socket.create_connection(("127.0.0.1", process.port)) for _ in range(5)]
    time.sleep(0.2)
    begun = time.monotonic()

    process.terminate()
    status = process.wait()

    assert status == 0
    assert time.monotonic() - begun < _DRAIN_SECONDS / 2
    for item in idle:
        item.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_client_that_never_ends_is_waited_for_as_long_as_configured(
    tmp_path: Path, workers: int
) -> None:
    settings = {"server": {"drain_seconds": 1.0}}
    with ServiceProcess(tmp_path, workers=workers, settings=settings) as process:
        lab = process.integrator()
        body = dumps(register_body("never"))
        sending = socket.create_connection(("127.0.0.1", process.port))
        begin_to_send(sending, lab, body, first=100)
        begun = time.monotonic()

        process.terminate()
        status = process.wait()
        seconds = time.monotonic() - begun
        sending.close()

    assert status == 0
    assert 0.9 < seconds < 20


def test_no_connection_is_accepted_while_it_stops(process: ServiceProcess) -> None:
    lab = process.integrator()
    body = dumps(register_body("keeps it open"))

    with closing(socket.create_connection(("127.0.0.1", process.port), timeout=20)) as sending:
        begin_to_send(sending, lab, body, first=0)
        process.terminate()
        assert wait_until(lambda: is_refused(process.port), _DRAIN_SECONDS / 2)
        sending.sendall(body)
        status, _ = answer_on(sending)

    assert status == 201
    assert process.wait() == 0


def test_ctrl_c_stops_it_as_sigterm_does(process: ServiceProcess) -> None:
    os.killpg(process.pid, signal.SIGINT)

    assert process.wait() == 0


def test_a_stop_while_a_worker_is_replaced_ends_all(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path, workers=2) as process:
        for delay in (0.0, 0.01, 0.2):
            os.kill(process.workers[0], signal.SIGKILL)
            time.sleep(delay)
            process.terminate()

            assert process.wait() == 0
            process.start()


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.2])
def test_a_stop_while_workers_are_starting_is_a_stop(tmp_path: Path, delay: float) -> None:
    process = ServiceProcess(tmp_path, workers=2)

    process.launch()
    while not process.workers:
        time.sleep(0.005)
    time.sleep(delay)
    process.terminate()

    assert process.wait() == 0
    assert "Traceback" not in process.errors.read_text()


def test_a_worker_that_ends_while_it_starts_is_status_1(tmp_path: Path) -> None:
    process = ServiceProcess(tmp_path, workers=2, settings={"plugins": {"enabled": ["absent"]}})

    process.launch()

    assert process.wait() == 1
    assert "Traceback" not in process.errors.read_text()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_that_is_taken_is_one_line_and_status_1(tmp_path: Path, workers: int) -> None:
    with closing(socket.create_server(("127.0.0.1", 0), reuse_port=True)) as other:
        port = other.getsockname()[1]
        second = ServiceProcess(tmp_path, workers=workers, settings={"server": {"port": port}})
        with pytest.raises(RuntimeError, match="not ready"), second:
            pass

    (line,) = second.errors.read_text().splitlines()
    assert f"port {port}" in line
    assert "--port" in line
    assert second.status == 1


def test_stops_until_the_end_are_one(process: ServiceProcess) -> None:
    ended = threading.Event()

    def stop_again() -> None:
        with suppress(RuntimeError):  # it has ended
            while not ended.wait(0.0005):
                process.terminate()

    thread = threading.Thread(target=stop_again)
    thread.start()
    try:
        assert process.wait() == 0
    finally:
        ended.set()
        thread.join()


def test_a_child_that_is_no_worker_may_end(tmp_path: Path) -> None:
    # The program that starts a container leaves such children behind when it becomes the service
    # by `exec`.
    script, noted = tmp_path / "start", tmp_path / "pid"
    before = f"true &\nsleep 600 &\necho $! > {noted}"
    script.write_text(f'#!/bin/sh\n{before}\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)

    with ServiceProcess(tmp_path, workers=2, python=str(script)) as process:
        os.kill(int(noted.read_text()), signal.SIGKILL)
        assert wait_until(lambda: len(process.workers) == 2)
        assert process.request("GET", "/health/ready").status == 200
        process.terminate()

        assert process.wait() == 0


def test_a_worker_that_cannot_use_the_store_says_why(tmp_path: Path) -> None:
    url = "mongodb://127.0.0.1:9/absent?serverSelectionTimeoutMS=500"
    settings = {"storage": {"url": url, "deadline_seconds": 1}}
    process = ServiceProcess(tmp_path, workers=2, settings=settings)

    with pytest.raises(RuntimeError, match="fhirpub: no server that could be written to"):
        process.start()
