"""Large bodies take turns; small ones never wait for them."""

from __future__ import annotations

import asyncio
import gzip
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from fhirpub.config.settings import Config, LimitsConfig
from fhirpub.fhir.strict_json import dumps
from fhirpub.storage.contract import Client
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.handlers.body import BodyHandler
from tests import raw
from tests.bodies import document, register_body
from tests.waiting import wait_until

START = "POST /fhir/r4/DiagnosticReport/$register"
JSON = "Content-Type: application/fhir+json"
T = TypeVar("T")
ROOM = 200_000


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    limits = LimitsConfig(large_bodies_bytes=ROOM)
    folder = tmp_path_factory.mktemp("room")
    with RunningService(folder, config=replace(Config(), limits=limits)) as running:
        yield running


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Integrator]:
    """A client of a service where a body waits for room for a moment, and arrives when it may."""
    limits = LimitsConfig(large_bodies_bytes=ROOM, body_seconds=0.5)
    folder = tmp_path_factory.mktemp("impatient")
    with RunningService(folder, config=replace(Config(), limits=limits)) as running:
        running.services.body_timeout._seconds = 600.0
        yield running.integrator()


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def body_of(value: str, size: int = 100_000) -> bytes:
    return dumps(register_body(value, presentedForm=[document(os.urandom(size))]))


def token(lab: Integrator) -> str:
    return f"Authorization: Bearer {lab.token}"


def began(lab: Integrator, body: bytes) -> socket.socket:
    """Send a request without the last byte of its body, and wait until it is being read."""
    assert isinstance(lab.service, RunningService)
    in_flight = lab.service.services.in_flight
    others = in_flight.copy()
    connection = socket.create_connection(("127.0.0.1", lab.service.port), timeout=20)
    lines = [f"{START} HTTP/1.1", "Host: x", token(lab), JSON, f"Content-Length: {len(body)}"]
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + body[:-1])
    assert wait_until(lambda: bool(in_flight - others))
    time.sleep(0.3)
    return connection


def behind_a_slow_body(lab: Integrator, send: Callable[[], T]) -> T:
    """Return the result of a request for which a slow body leaves no room."""
    with closing(began(lab, body_of("slow"))):
        return send()


def test_a_body_that_is_refused_before_its_end_keeps_no_room(tmp_path: Path) -> None:
    config = replace(Config(), limits=LimitsConfig(request_bytes=150_000))
    with RunningService(tmp_path, config=config) as service:
        lab, room = service.integrator(), service.services.request_memory
        lines = [f"{START} HTTP/1.1", "Host: x", token(lab), JSON, "Transfer-Encoding: chunked"]
        head = "\r\n".join([*lines, "", ""]).encode()
        with closing(socket.create_connection(("127.0.0.1", service.port))) as connection:
            connection.sendall(head + b"1fbd0\r\n" + bytes(130_000))
            assert wait_until(lambda: bool(room._held))

            connection.sendall(b"\r\n1fbd0\r\n" + bytes(130_000))

            assert wait_until(lambda: not room._held)


def is_waiting(answer: Future[Answer]) -> bool:
    time.sleep(0.3)
    return not answer.done()


def test_a_large_body_waits_until_the_one_before_is_answered(
    lab: Integrator, threads: ThreadPoolExecutor
) -> None:
    first = body_of("turn-1")
    with closing(began(lab, first)) as sending:
        second = threads.submit(lab.register, body_of("turn-2"))
        waited = is_waiting(second)
        sending.sendall(first[-1:])

        assert second.result().status == 201
    assert waited


def test_a_gzip_body_waits_for_room_for_its_decoded_bytes(
    lab: Integrator, threads: ThreadPoolExecutor
) -> None:
    body = dumps(register_body("zip", presentedForm=[document(b"%PDF-" + bytes(150_000))]))
    coded = gzip.compress(body)
    assert len(coded) < 20_000
    with closing(began(lab, body_of("large-0"))):
        second = threads.submit(
            lab.request, "POST", START.split()[1], coded, {"Content-Encoding": "gzip"}
        )
        waited = is_waiting(second)

    assert second.result().status == 201
    assert waited


def test_nothing_more_is_decoded_for_a_client_that_disconnected(lab: Integrator) -> None:
    assert isinstance(lab.service, RunningService)
    in_flight = lab.service.services.in_flight
    coded = gzip.compress(bytes(8_000_000))
    lines = [f"{START} HTTP/1.1", "Host: x", token(lab), JSON, "Content-Encoding: gzip"]
    head = "\r\n".join([*lines, f"Content-Length: {len(coded)}", "", ""]).encode()
    with closing(began(lab, body_of("large-3"))):
        others = in_flight.copy()
        with socket.create_connection(("127.0.0.1", lab.service.port)) as connection:
            connection.sendall(head + coded)
            assert wait_until(lambda: bool(in_flight - others))
            (handler,) = in_flight - others
            assert isinstance(handler, BodyHandler)
            assert wait_until(lambda: handler._received > 0)
            time.sleep(0.3)
        assert wait_until(lambda: handler not in in_flight)

    assert 0 < handler._received < 1_000_000


def test_small_bodies_never_wait(lab: Integrator, threads: ThreadPoolExecutor) -> None:
    with closing(began(lab, body_of("large-1"))):
        second = threads.submit(lab.register, body_of("large-2"))
        waited = is_waiting(second)

        statuses = [lab.register(register_body(f"small-{number}")).status for number in range(5)]
        small = raw.request(
            lab.service,
            START,
            token(lab),
            JSON,
            "Transfer-Encoding: chunked",
            body=raw.chunked(dumps(register_body("small and in chunks"))),
        )
        waits = not second.done()

    assert waited
    assert [*statuses, small.status] == [201] * 6
    assert waits


def test_announced_bytes_that_do_not_come_keep_no_other_tenant_out(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        attacker, other = service.integrator(), service.integrator()
        with ExitStack() as stack:
            for _ in range(8):
                connection = socket.create_connection(("127.0.0.1", service.port), timeout=20)
                stack.enter_context(closing(connection))
                lines = [f"{START} HTTP/1.1", "Host: x", token(attacker), JSON]
                lines += ["Content-Length: 33554432", "", "{"]
                connection.sendall("\r\n".join(lines).encode())
            assert wait_until(lambda: len(service.services.in_flight) == 8)

            begun = time.monotonic()
            answer = other.register(body_of("beside announcements", 1_000_000))

        assert answer.status == 201
        assert time.monotonic() - begun < 25  # and not the thirty seconds of a slow body


def test_a_disconnect_with_half_a_body_frees_its_room(
    lab: Integrator, threads: ThreadPoolExecutor
) -> None:
    with closing(began(lab, body_of("gone"))):
        second = threads.submit(lab.register, body_of("stays"))
        waited = is_waiting(second)

    assert second.result().status == 201
    assert waited


def test_a_disconnect_while_waiting_is_no_longer_in_flight(
    service: RunningService, lab: Integrator
) -> None:
    in_flight = service.services.in_flight
    with closing(began(lab, body_of("has room"))):
        others = in_flight.copy()
        with closing(began(lab, body_of("waits and hangs up"))):
            (handler,) = in_flight - others

        assert wait_until(lambda: handler not in in_flight)


def test_a_client_that_waits_too_long_gets_a_503_and_may_try_again(
    impatient: Integrator,
) -> None:
    late = body_of("late")
    answer = behind_a_slow_body(impatient, lambda: impatient.register(late))

    assert answer.status == 503
    assert int(answer.headers["retry-after"]) > 0
    assert answer.issues[0]["code"] == "transient"
    # The service notices a little later that the slow body has gone.
    assert wait_until(lambda: impatient.register(late).status == 201)


def test_a_client_that_expects_a_100_gets_the_503_instead(impatient: Integrator) -> None:
    lines = (token(impatient), JSON, "Expect: 100-continue", "Content-Length: 150000")

    exchange = behind_a_slow_body(impatient, lambda: raw.request(impatient.service, START, *lines))

    assert exchange.statuses == [503]


def test_a_body_in_chunks_waits_once_it_is_large(
    lab: Integrator, threads: ThreadPoolExecutor
) -> None:
    first = body_of("chunks-1")
    with closing(began(lab, first)) as sending:
        lines = (token(lab), JSON, "Transfer-Encoding: chunked")
        chunks = list(raw.chunked(body_of("chunks-2")))
        second = threads.submit(
            lambda: raw.request(lab.service, START, *lines, body=chunks).answer
        )
        waited = is_waiting(second)
        sending.sendall(first[-1:])

        assert second.result().status == 201
    assert waited


def test_a_body_in_chunks_that_waits_too_long_gets_the_503(impatient: Integrator) -> None:
    lines = (token(impatient), JSON, "Transfer-Encoding: chunked")
    chunks = raw.chunked(body_of("late-2"))

    exchange = behind_a_slow_body(
        impatient, lambda: raw.request(impatient.service, START, *lines, body=chunks)
    )

    assert exchange.statuses == [503]


def test_all_room_is_given_back(lab: Integrator, threads: ThreadPoolExecutor) -> None:
    refused = [b"{}" + b" " * 150_000, b" " * 40_000_000]

    for body in refused * 3:
        assert lab.register(body).status in (400, 413)
    answers = [threads.submit(lab.register, body_of(f"back-{number}")) for number in range(8)]

    assert [answer.result().status for answer in answers] == [201] * 8


def test_a_request_refused_during_the_token_lookup_takes_no_room(
    tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = LimitsConfig(large_bodies_bytes=ROOM)
    with RunningService(tmp_path, config=replace(Config(), limits=limits)) as service:
        store, known = service.services.store, service.integrator()
        look_up, answered = store.client, threading.Event()

        async def slow(client_id: str) -> Client | None:
            while not answered.is_set():
                await asyncio.sleep(0.01)
            return await look_up(client_id)

        late = service.another_client(known.tenant)  # its token is not cached yet
        monkeypatch.setattr(store, "client", slow)
        monkeypatch.setattr(service.services.body_timeout, "_seconds", 0.3)
        with closing(began(late, body_of("late"))) as connection:
            assert connection.recv(12) == b"HTTP/1.1 408"
            answered.set()
            time.sleep(0.3)
        monkeypatch.undo()

        assert threads.submit(known.register, body_of("next")).result(25).status == 201
