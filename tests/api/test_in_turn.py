"""Large responses take turns, as updates of large resources do; small ones never wait."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.settings import Config, LimitsConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests import raw
from tests.bodies import register_body
from tests.waiting import wait_until

BASE = "/fhir/r4/DiagnosticReport"
ENDPOINTS = "/webhooks/v1/endpoints"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    limits = LimitsConfig(large_answers_bytes=200_000)
    folder = tmp_path_factory.mktemp("turns")
    webhooks = WebhooksConfig(allow_networks=["127.0.0.1/32"])
    config = replace(Config(), limits=limits, webhooks=webhooks)
    with RunningService(folder, config=config) as running:
        yield running


@pytest.fixture(scope="module")
def lab(service: RunningService) -> Integrator:
    return service.integrator()


@pytest.fixture(scope="module")
def small(lab: Integrator) -> str:
    return _registered(lab, "small")


@pytest.fixture(scope="module")
def large(lab: Integrator) -> str:
    return _registered(lab, "large", conclusionCode=[{"text": "x" * 1_000_000}] * 8)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def _registered(lab: Integrator, value: str, **changes: Any) -> str:
    answer = lab.register(register_body(value, **changes))
    path = answer.headers["location"].removeprefix(lab.service.base_url)
    return path.partition("/_history")[0]


def taking_nothing(lab: Integrator, path: str) -> socket.socket:
    """Send a GET request without reading the response."""
    wire = raw.asking(lab, path)
    assert wire.recv(12) == b"HTTP/1.1 200"
    return wire


def is_waiting(answer: Future[Answer]) -> bool:
    time.sleep(0.3)
    return not answer.done()


ASKED: dict[str, Callable[[Integrator, str], Answer]] = {
    "read": lambda lab, path: lab.get(path),
    "part of it": lambda lab, path: lab.get(f"{path}?_elements=status"),
    "vread": lambda lab, path: lab.get(f"{path}/_history/1"),
    "search": lambda lab, path: lab.get(f"{BASE}?_id={path.rpartition('/')[2]}"),
    "history": lambda lab, path: lab.get(f"{path}/_history"),
    "history of a type": lambda lab, _path: lab.get(f"{BASE}/_history"),
    "update": lambda lab, path: lab.patch(
        path, {"resourceType": "DiagnosticReport", "status": "amended"}
    ),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_what_is_large_waits_until_the_answer_before_has_left(
    lab: Integrator, large: str, threads: ThreadPoolExecutor, ask: Callable[..., Answer]
) -> None:
    with closing(taking_nothing(lab, large)):
        asked = threads.submit(ask, lab, large)
        waited = is_waiting(asked)

    assert asked.result().status in (200, 204)
    assert waited


@pytest.fixture
def events(service: RunningService) -> Iterator[tuple[Integrator, str]]:
    """A client with an unverified endpoint, and the path of its 100 kB of events."""
    client = service.integrator()
    endpoint = client.request("POST", ENDPOINTS, {"url": "http://127.0.0.1:1/"}).json
    path = f"{ENDPOINTS}/{endpoint['id']}/events?limit=50"
    for number in range(50):
        _registered(client, f"{number:02}{'x' * 1_990}")
    assert wait_until(lambda: len(client.get(path).json["events"]) == 50)
    yield client, path
    assert client.request("DELETE", f"{ENDPOINTS}/{endpoint['id']}").status == 204


def test_a_page_of_events_waits_too(
    events: tuple[Integrator, str], threads: ThreadPoolExecutor
) -> None:
    client, path = events
    large = _registered(client, "large", conclusionCode=[{"text": "x" * 1_000_000}] * 8)
    with closing(taking_nothing(client, large)):
        asked = threads.submit(client.get, path)
        waited = is_waiting(asked)

    assert asked.result().status == 200
    assert waited


def test_what_is_small_does_not_wait(lab: Integrator, small: str, large: str) -> None:
    with closing(taking_nothing(lab, large)):
        begun = time.monotonic()
        assert lab.get(small).status == 200
        assert time.monotonic() - begun < 20  # and not the thirty seconds of the large one


def disconnect_while_waiting(lab: Integrator, path: str) -> None:
    """Request a response that has no memory yet three times, and disconnect each time."""
    for _ in range(3):
        with raw.asking(lab, path):
            time.sleep(0.2)


def test_a_client_that_disconnects_while_waiting_is_not_waited_for(
    lab: Integrator, large: str
) -> None:
    with closing(taking_nothing(lab, large)):
        disconnect_while_waiting(lab, large)

    assert lab.get(large).status == 200


def test_a_client_that_disconnects_while_waiting_is_no_longer_in_flight(
    service: RunningService, lab: Integrator, large: str
) -> None:
    with closing(taking_nothing(lab, large)):
        disconnect_while_waiting(lab, large)
        # Noticed about once a second; the limit is below `body_seconds`, which ends the other.
        assert wait_until(lambda: len(service.services.in_flight) == 1, seconds=20)


def test_a_client_that_disconnects_while_waiting_is_no_fault(tmp_path: Path) -> None:
    settings = {"limits": {"large_answers_bytes": 200_000}}
    with ServiceProcess(tmp_path, settings=settings) as process:
        lab = process.integrator()
        path = _registered(lab, "large", conclusionCode=[{"text": "x" * 1_000_000}] * 8)
        with closing(taking_nothing(lab, path)):
            disconnect_while_waiting(lab, path)
            time.sleep(1.2)

    assert "[error" not in process.errors.read_text()


def test_a_client_that_reads_nothing_does_not_keep_others_waiting_for_ever(tmp_path: Path) -> None:
    limits = LimitsConfig(large_answers_bytes=200_000, body_seconds=0.5)
    with RunningService(tmp_path, config=replace(Config(), limits=limits)) as service:
        service.services.body_timeout._seconds = 600.0
        lab = service.integrator()
        path = _registered(lab, "large", conclusionCode=[{"text": "x" * 1_000_000}] * 8)

        def is_read() -> bool:
            with suppress(OSError, http.client.HTTPException):  # a slow machine is cut off, too
                return lab.get(path).status == 200
            return False

        with closing(taking_nothing(lab, path)):
            assert wait_until(is_read)


def test_a_tenant_that_takes_nothing_keeps_no_other_waiting(tmp_path: Path) -> None:
    limits = LimitsConfig(large_answers_bytes=40_000_000)
    with RunningService(tmp_path, config=replace(Config(), limits=limits)) as service:
        labs = [service.integrator(), service.integrator("Another")]
        paths = [
            _registered(lab, "large", conclusionCode=[{"text": "x" * 1_000_000}] * 8)
            for lab in labs
        ]
        with ExitStack() as slow:
            for _ in range(5):
                slow.enter_context(closing(raw.asking(labs[0], paths[0])))
            time.sleep(0.5)
            begun = time.monotonic()
            assert labs[1].get(paths[1]).status == 200
            assert time.monotonic() - begun < 20
