"""The memory that the largest requests take, measured from outside the process."""

from __future__ import annotations

import hashlib
import itertools
import os
import socket
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Answer, Integrator
from tests import raw
from tests.bodies import document, register_body
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
_MAX_ABOVE_IDLE = 200 * MIB
_MAX_ABOVE_IDLE_CONCURRENT = 320 * MIB
_READERS = 30
_numbers = itertools.count()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path) as running:
        yield running


@pytest.fixture
def lab(process: ServiceProcess) -> Integrator:
    """A client that has registered a small report, to warm up the service."""
    client = process.integrator()
    assert client.register(register_body("small")).status == 201
    return client


def register_32_mib(lab: Integrator) -> Answer:
    """Register six documents that nearly reach the size limit of a request."""
    documents = [document(b"%PDF-" + os.urandom(4_190_000)) for _ in range(6)]
    body = dumps(register_body(f"large-{next(_numbers)}", presentedForm=documents))
    assert 31.9 * MIB < len(body) <= 32 * MIB
    return lab.register(body)


def register_at_once(lab: Integrator, count: int, framing: str) -> list[int]:
    """Register reports with a document of 5 MB each at the same time; return the statuses."""
    documents = [document(b"%PDF-" + os.urandom(5_000_000)) for _ in range(4)]
    values = [f"at-once-{next(_numbers)}" for _ in range(count)]
    bodies = [
        dumps(register_body(value, presentedForm=[documents[number % 4]]))
        for number, value in enumerate(values)
    ]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda body: status_of(lab, body, framing), bodies))


def status_of(lab: Integrator, body: bytes, framing: str) -> int:
    """Register a body in one piece or in chunks; return the status."""
    if framing == "length":
        return lab.register(body).status
    lines = (
        f"Authorization: Bearer {lab.token}",
        "Content-Type: application/fhir+json",
        "Transfer-Encoding: chunked",
    )
    start = "POST /fhir/r4/DiagnosticReport/$register"
    return raw.request(lab.service, start, *lines, body=raw.chunked(body)).status


def memory_of(process: ServiceProcess, name: str) -> int:
    """Return a figure of the process's status in bytes."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        key, _, text = line.partition(":")
        if key == name:
            return int(text.removesuffix("kB")) * 1024
    raise LookupError(name)


def test_requests_of_32_mib_take_less_than_200_mib(
    process: ServiceProcess, lab: Integrator
) -> None:
    idle = memory_of(process, "VmRSS")

    answers = [register_32_mib(lab) for _ in range(4)]

    used = memory_of(process, "VmHWM") - idle
    assert [answer.status for answer in answers] == [201] * 4
    assert used < _MAX_ABOVE_IDLE, f"{used / MIB:.0f} MiB"


def test_a_request_that_is_too_large_is_not_kept(process: ServiceProcess, lab: Integrator) -> None:
    idle = memory_of(process, "VmRSS")

    answer = lab.register(b" " * (100 * MIB))

    assert answer.status == 413
    assert memory_of(process, "VmHWM") - idle < 64 * MIB


def gigabyte_of_zeros() -> bytes:
    """Return the beginning of a gzip stream that decodes to so much; its end is never reached."""
    packing = zlib.compressobj(9, wbits=31)
    # After a full flush no piece refers to those before it, so that one may follow itself.
    first, again = (packing.compress(bytes(MIB)) + packing.flush(zlib.Z_FULL_FLUSH) for _ in "ab")
    return first + 1023 * again


def test_a_small_body_that_decodes_to_a_gigabyte_is_not_decoded(
    process: ServiceProcess, lab: Integrator
) -> None:
    bomb = gigabyte_of_zeros()
    idle = memory_of(process, "VmRSS")

    path = "/fhir/r4/DiagnosticReport/$register"
    answer = lab.request("POST", path, bomb, {"Content-Encoding": "gzip"})

    assert answer.status == 413
    assert memory_of(process, "VmHWM") - idle < 64 * MIB


def test_reading_it_back_takes_less_than_200_mib(process: ServiceProcess, lab: Integrator) -> None:
    location = register_32_mib(lab).headers["location"]
    idle = memory_of(process, "VmRSS")

    answer = lab.get(location)

    assert (answer.status, len(answer.body) > 31 * MIB) == (200, True)
    assert memory_of(process, "VmHWM") - idle < _MAX_ABOVE_IDLE


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_many_large_requests_at_once_take_no_more_than_their_room(
    process: ServiceProcess, lab: Integrator, framing: str
) -> None:
    idle = memory_of(process, "VmRSS")

    statuses = register_at_once(lab, 32, framing)

    used = memory_of(process, "VmHWM") - idle
    assert statuses == [201] * 32
    assert used < _MAX_ABOVE_IDLE_CONCURRENT, f"{used / MIB:.0f} MiB"


@pytest.mark.parametrize("accept", ["*/*", "application/fhir+xml"])
def test_documents_that_are_read_slowly_are_not_held(
    process: ServiceProcess, lab: Integrator, accept: str
) -> None:
    data = b"%PDF-" + os.urandom(5_000_000)
    lab.register(register_body("slow", presentedForm=[document(data)]))
    path = f"/fhir/r4/Binary/{hashlib.sha256(data).hexdigest()}"
    assert lab.get(path, accept=accept).status == 200
    idle = memory_of(process, "VmRSS")

    with ExitStack() as readers:
        for _ in range(_READERS):
            wire = readers.enter_context(raw.asking(lab, path, f"Accept: {accept}"))
            assert wire.recv(65_536).startswith(b"HTTP/1.1 200")
        time.sleep(0.5)
        used = memory_of(process, "VmRSS") - idle

    assert used < _READERS * 3 * MIB, f"{used / MIB:.0f} MiB"


def test_large_resources_that_are_read_slowly_take_no_more_than_their_room(
    process: ServiceProcess, lab: Integrator
) -> None:
    body = register_body("slow", conclusionCode=[{"text": "x" * 1_000_000}] * 8)
    path = lab.register(body).headers["location"].removeprefix(process.base_url)
    assert lab.get(path).status == 200
    idle = memory_of(process, "VmRSS")

    with ExitStack() as readers:
        for _ in range(_READERS):
            readers.enter_context(raw.asking(lab, path))
        time.sleep(2)
        used = memory_of(process, "VmHWM") - idle

    assert used < _MAX_ABOVE_IDLE_CONCURRENT, f"{used / MIB:.0f} MiB"


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[ServiceProcess]:
    settings = {"limits": {"body_seconds": 0.5}}
    with ServiceProcess(tmp_path, settings=settings) as running:
        yield running


def client_in_time(process: ServiceProcess) -> Integrator:
    """Return a client; a busy machine may be too slow for it to log in."""
    for _ in range(20):
        with suppress(RuntimeError, OSError):
            return process.integrator()
    raise AssertionError("it never was in time")


def register_in_time(lab: Integrator, body: bytes) -> str:
    """Register a body, again if it was not there in time; return the path."""
    answers = []

    def is_registered() -> bool:
        with suppress(OSError):
            answers.append(lab.register(body))
            return answers[-1].status in (200, 201)
        return False

    assert wait_until(is_registered)
    return answers[-1].headers["location"].removeprefix(lab.service.base_url)


def is_connected(process: ServiceProcess, wire: socket.socket) -> bool:
    """Return whether the service has not closed its end.

    Linux leaves lines of its list out while other connections come and go: it is read again.
    """
    return any(is_listed(process, wire) for _ in range(3))


def is_listed(process: ServiceProcess, wire: socket.socket) -> bool:
    """Return whether Linux lists the service's end of a connection as established."""
    ends = [f"{port:04X}" for port in (process.port, wire.getsockname()[1])]
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    states = [
        state
        for _, *addresses, state in (line.split()[:4] for line in lines)
        if [address.rpartition(":")[2] for address in addresses] == ends
    ]
    return states == ["01"]


def stalled(process: ServiceProcess) -> int:
    """Request 5 MB and read nothing for a while; return the number of bytes received."""
    lab = client_in_time(process)
    large = document(b"%PDF-" + os.urandom(5_000_000))
    path = register_in_time(lab, dumps(register_body("stalled", presentedForm=[large])))
    with raw.asking(lab, path) as wire:
        assert wait_until(lambda: not is_connected(process, wire), 30)
        return sum(iter(lambda: len(wire.recv(65_536)), 0))


def test_a_client_that_reads_nothing_of_a_large_answer_is_disconnected(
    impatient: ServiceProcess,
) -> None:
    assert 0 < stalled(impatient) < 5_000_000


def test_a_large_answer_that_is_never_read_is_no_fault(impatient: ServiceProcess) -> None:
    stalled(impatient)

    assert "[error" not in impatient.errors.read_text()
