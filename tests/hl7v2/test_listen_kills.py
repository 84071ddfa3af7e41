"""Listener and service are killed while messages arrive: what was acknowledged is there, once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Self

import hl7
import pytest
from hl7.client import MLLPClient

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator
from tests.hl7v2.messages import message, obr, obx, pid
from tests.hl7v2.test_listen import Process
from tests.ports import free_port
from tests.rounds import ONLY_FULL
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

_SENDERS = 4
_IS_LONG = variable("FHIRPUB_TEST_FULL") == "1"
_OF_EACH = 250 if _IS_LONG else 40
_KILLS = 10 if _IS_LONG else 3
_CUT_EVERY = 7


@pytest.fixture(params=["sqlite", pytest.param("mongodb", marks=ONLY_FULL)])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServiceProcess]:
    settings = {}
    if request.param == "mongodb":
        settings = {"storage": {"url": request.getfixturevalue("replica_set").url("kills")}}
    with ServiceProcess(tmp_path, settings=settings) as process:
        yield process


class Sender:
    """An interface engine: it repeats a message until it is acknowledged by AA."""

    def __init__(self, port: int, name: int) -> None:
        self.acknowledged: list[str] = []
        self._port = port
        self._name = name
        self._attempts = count(1)

    def run(self) -> None:
        for number in range(_OF_EACH):
            value = f"K{self._name}-{number}"
            states = ("P", "F") if number % 3 == 0 else ("F",)
            for state in states:
                result = obx({5: f"{number}.{self._name}", 11: state})
                self._send(message(pid(), obr({3: f"{value}^LIS", 25: state}), result))
            self.acknowledged.append(value)

    def _send(self, raw: bytes) -> None:
        while not self._is_accepted(raw):
            threading.Event().wait(0.05)

    def _is_accepted(self, raw: bytes) -> bool:
        with suppress(OSError, IndexError, UnicodeDecodeError, hl7.ParseException):
            if next(self._attempts) % _CUT_EVERY == 0:
                self._send_half(raw)
                return False
            with MLLPClient("127.0.0.1", self._port) as client:
                client.socket.settimeout(20)
                answer = hl7.parse(client.send_message(raw)[1:-2].decode())
            return str(answer["MSA.F1"]) == "AA"
        return False

    def _send_half(self, raw: bytes) -> None:
        """Cut a connection in the middle of a message, or before its acknowledgement."""
        whole = b"\x0b" + raw + b"\x1c\r"
        with socket.create_connection(("127.0.0.1", self._port), timeout=20) as connection:
            connection.sendall(whole if self._name % 2 else whole[: len(whole) // 2])


class Killed:
    """A listener that always starts again on its port."""

    def __init__(self, lab: Integrator, folder: Path) -> None:
        self.port = free_port()
        self._lab, self._folder = lab, folder
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.kill()

    def start(self) -> None:
        self._running = Process(self._lab, self._folder, "--port", str(self.port))

    def kill(self) -> None:
        self._running.process.kill()
        self._running.process.communicate()


# A connection that is refused leaves the socket of MLLPClient to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_acknowledged_messages_are_there_once(service: ServiceProcess, tmp_path: Path) -> None:
    lab = service.integrator()

    def has_sent(share: int) -> bool:
        acknowledged = sum(len(sender.acknowledged) for sender in senders)
        return acknowledged >= share * _SENDERS * _OF_EACH // (_KILLS + 2)

    with Killed(lab, tmp_path) as listener, ThreadPoolExecutor(_SENDERS) as threads:
        senders = [Sender(listener.port, name) for name in range(_SENDERS)]
        running = [threads.submit(sender.run) for sender in senders]
        for number in range(1, _KILLS + 1):
            assert wait_until(partial(has_sent, number), seconds=120)
            killed = listener if number % 2 else service
            killed.kill()
            killed.start()
        for each in running:
            each.result(timeout=120)

    everything, final = _SENDERS * _OF_EACH, "&status=final"
    assert total(lab, "DiagnosticReport", final) == everything
    assert total(lab, "DiagnosticReport", "") == everything
    assert total(lab, "Observation", final) == everything
    assert total(lab, "Observation", "") == everything


def total(lab: Integrator, type_name: str, more: str) -> int:
    query = f"/fhir/r4/{type_name}?_count=1&_total=accurate{more}"
    return int(lab.get(query).json["total"])
