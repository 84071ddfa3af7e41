"""Large responses are serialized in a thread, so that the event loop stays responsive."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing

import orjson
import pytest

from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import document, register_body

pytestmark = pytest.mark.slow

BASE = "/fhir/r4/DiagnosticReport"
_TRIES = 20
_MAX_SHARE = 0.4
_MAX_PAUSE_SECONDS = 0.02


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with RunningService(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def lab(service: RunningService) -> Integrator:
    """A client with fifty reports of 100 kB each, and one of 32 MiB with its documents."""
    client = service.integrator()
    notes = [{"url": "https://lab.example/note", "valueString": "x" * 200} for _ in range(400)]
    for number in range(50):
        assert client.register(register_body(f"R{number}", extension=notes)).status == 201
    return client


@pytest.fixture(scope="module")
def largest(lab: Integrator) -> str:
    documents = [document(b"%PDF-" + os.urandom(4_190_000)) for _ in range(6)]
    answer = lab.register(register_body("largest", presentedForm=documents))
    return answer.headers["location"].removeprefix(lab.service.base_url)


async def longest_pause(until: asyncio.Event) -> float:
    """Return the longest time in seconds in which the event loop did not run this task."""
    clock, longest = asyncio.get_running_loop().time, 0.0
    last = clock()
    while not until.is_set():
        await asyncio.sleep(0.0005)
        now = clock()
        last, longest = now, max(longest, now - last)
    return longest


def holds_the_loop(service: RunningService, lab: Integrator, path: str) -> bool:
    """Return whether a request held the loop in one piece, for long and for much of its time."""

    async def watch() -> tuple[float, float]:
        ended = asyncio.Event()
        watching = asyncio.create_task(longest_pause(ended))
        await asyncio.sleep(0.02)
        seconds = await asyncio.to_thread(read, service, lab, path)
        ended.set()
        return await watching, seconds

    for _ in range(_TRIES):  # on a busy machine the loop waits for a processor as well
        pause, seconds = service.call(watch())
        if pause < _MAX_PAUSE_SECONDS or pause / seconds < _MAX_SHARE:
            return False
    return True


def read(service: RunningService, lab: Integrator, path: str) -> float:
    """Return the duration of a GET until the last byte of the response."""
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {lab.token}\r\n"
    buffer = bytearray(1024 * 1024)
    with closing(socket.create_connection(("127.0.0.1", service.port), timeout=20)) as connection:
        begun = time.monotonic()
        connection.sendall(head.encode() + b"Connection: close\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"
        while connection.recv_into(buffer):
            pass
        return time.monotonic() - begun


@pytest.mark.parametrize("query", ["", "?_pretty=true"])
def test_a_large_report_does_not_hold_the_loop(
    service: RunningService, lab: Integrator, largest: str, query: str
) -> None:
    assert not holds_the_loop(service, lab, f"{largest}{query}")


def test_a_page_of_large_resources_does_not_hold_the_loop(
    service: RunningService, lab: Integrator
) -> None:
    assert not holds_the_loop(service, lab, f"{BASE}?_count=50")


def test_a_large_report_is_written_for_people_as_a_small_one_is(
    lab: Integrator, largest: str
) -> None:
    plain = lab.get(largest).body

    pretty = lab.get(f"{largest}?_pretty=true").body

    assert pretty == orjson.dumps(orjson.loads(plain), option=orjson.OPT_INDENT_2)
