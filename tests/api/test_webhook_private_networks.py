"""What a tenant can learn of the operator's network through its webhook endpoints."""

from __future__ import annotations

import dataclasses
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.settings import Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Answer, Integrator, RunningService

ENDPOINTS = "/webhooks/v1/endpoints"
TIMEOUT_SECONDS = 1.0
REFUSED = "names an address, a port or a scheme to which nothing is sent"
FAILING: dict[str, Reply] = {
    "no-challenge": Reply(status=200, body=b"hello"),
    "not-found": Reply(status=404),
    "moved": Reply(status=301, headers={"Location": "https://example.org/"}),
    "failing": Reply(status=500, echo=True),
    "reset": Reply(misbehaviour="reset"),
    "no-http": Reply(misbehaviour="no-http"),
    "silent": Reply(misbehaviour="silent"),
}
VARYING = ("event_id", "event_type", "note")


@pytest.fixture(scope="module")
def receivers() -> Iterator[dict[str, Receiver]]:
    """A receiver for each way to fail, and two that work."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(Receiver()) for name in (*FAILING, "good", "of-no-entry")}


@pytest.fixture(scope="module")
def closed() -> Iterator[int]:
    """A port that refuses connections: bound, and not listened to."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


class Restarting(ExitStack):
    """A service on one store that is started again with other entries; a context manager."""

    def __init__(self, folder: Path, store_url: str) -> None:
        super().__init__()
        self._folder = folder
        self._store_url = store_url
        self._keys = folder / "keys"
        self._keys.write_text("A" * 43 + "=\n")

    def start(self, *entries: str) -> RunningService:
        self.close()
        webhooks = WebhooksConfig(
            allow_networks=[*entries],
            dispatch_in_server=False,
            timeout_seconds=TIMEOUT_SECONDS,
            connect_seconds=TIMEOUT_SECONDS,
            keys_file=str(self._keys),
        )
        config = Config(webhooks=webhooks)
        return self.enter_context(
            RunningService(self._folder, config=config, store_url=self._store_url)
        )


@dataclasses.dataclass(frozen=True)
class Two:
    """The service with two tenants; the network is open to the lab's receivers only."""

    service: RunningService
    lab: Integrator
    clinic: Integrator


@pytest.fixture(scope="module")
def two(
    store_url: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
    receivers: dict[str, Receiver],
    closed: int,
) -> Iterator[Two]:
    ports = [receiver.port for name, receiver in receivers.items() if name != "of-no-entry"]
    words = " ".join(f"port={port}" for port in (*ports, closed))
    with Restarting(tmp_path_factory.mktemp("private"), store_url("private")) as running:
        before = running.start()
        lab, clinic = before.integrator("Lab").tenant, before.integrator("Clinic").tenant
        service = running.start(f"127.0.0.1 {words} tenant={lab.id}")
        yield Two(service, service.another_client(lab), service.another_client(clinic))


@pytest.fixture
def good(receivers: dict[str, Receiver]) -> Receiver:
    """The good receiver, which repeats every challenge."""
    good = receivers["good"]
    good.received.clear()
    good.answer(Reply(status=200, echo=True))
    return good


def url_of(port: int) -> str:
    return f"http://127.0.0.1:{port}/webhook"


def add(tenant: Integrator, url: str) -> dict[str, Any]:
    answer = tenant.request("POST", ENDPOINTS, {"url": url})
    assert answer.status == 201
    body: dict[str, Any] = answer.json
    return body


def act(tenant: Integrator, endpoint: dict[str, Any], verb: str) -> Answer:
    return tenant.request("POST", f"{ENDPOINTS}/{endpoint['id']}/{verb}")


def answered(tenant: Integrator, endpoint: dict[str, Any], verb: str) -> Any:
    """Return the first trial that a busy machine has answered in time."""
    trials = (act(tenant, endpoint, verb).json for _ in range(20))
    return next(trial for trial in trials if trial["reason"] != "E_PRIVATE_NETWORK")


def test_an_entry_for_one_tenant_is_closed_to_the_other(two: Two, good: Receiver) -> None:
    of_lab = two.lab.request("POST", ENDPOINTS, {"url": good.url})
    of_clinic = two.clinic.request("POST", ENDPOINTS, {"url": good.url})

    assert of_lab.status == 201
    assert (of_clinic.status, of_clinic.issues[0]["diagnostics"]) == (400, REFUSED)
    assert of_clinic.issue_expressions == {"url"}


def test_a_port_of_no_entry_is_refused_as_one_of_another_tenant_is(
    two: Two, receivers: dict[str, Receiver], closed: int
) -> None:
    ports = {receivers["of-no-entry"].port, 9, 22, 443}
    of_lab = [two.lab.request("POST", ENDPOINTS, {"url": url_of(port)}) for port in ports]
    ports |= {receivers["good"].port, closed}
    of_clinic = [two.clinic.request("POST", ENDPOINTS, {"url": url_of(port)}) for port in ports]

    assert {answer.issues[0]["diagnostics"] for answer in of_lab + of_clinic} == {REFUSED}
    assert not receivers["of-no-entry"].received


def test_an_endpoint_cannot_be_moved_to_a_port_of_no_entry(
    two: Two, good: Receiver, receivers: dict[str, Receiver]
) -> None:
    endpoint = add(two.lab, good.url)
    path, url = f"{ENDPOINTS}/{endpoint['id']}", receivers["of-no-entry"].url

    assert two.lab.patch(path, {"url": url}).status == 400


def test_before_the_challenge_every_failure_looks_the_same(
    two: Two, receivers: dict[str, Receiver], closed: int
) -> None:
    for name, reply in FAILING.items():
        receivers[name].answer(reply)
    urls = [*(receivers[name].url for name in FAILING), url_of(closed)]
    endpoints = [add(two.lab, url) for url in urls]

    def tried(trial: tuple[dict[str, Any], str]) -> tuple[dict[str, Any], float]:
        begun = time.monotonic()
        answer = act(two.lab, *trial)
        assert answer.status == 200
        seconds = time.monotonic() - begun
        return {key: answer.json[key] for key in answer.json if key not in VARYING}, seconds

    trials = [(endpoint, verb) for endpoint in endpoints for verb in ("verify", "test")]
    with ThreadPoolExecutor(4) as threads:
        shown, seconds = zip(*threads.map(tried, trials), strict=True)

    assert len(shown) == 16
    assert all(refusal == shown[0] for refusal in shown)
    assert shown[0] == {
        "passed": False,
        "state": "unverified",
        "status": None,
        "reason": "E_PRIVATE_NETWORK",
        "why": "it failed in a network of the operator, whose log has the cause",
        "milliseconds": round(TIMEOUT_SECONDS * 1000),
    }
    assert min(seconds) >= TIMEOUT_SECONDS


def test_a_test_before_the_challenge_is_the_challenge(two: Two, good: Receiver) -> None:
    good.answer(Reply(status=200))
    endpoint = add(two.lab, good.url)

    failed = act(two.lab, endpoint, "test").json
    good.answer(Reply(status=200, echo=True))
    passed = answered(two.lab, endpoint, "test")
    tested = answered(two.lab, endpoint, "test")

    kinds = ["endpoint.verification", "endpoint.verification", "endpoint.test"]
    sent = [received.json["event_type"] for received in good.received]
    assert [kind for kind, _repeated in groupby(sent)] == kinds[1:]
    assert [delivery["event_type"] for delivery in (failed, passed, tested)] == kinds
    assert [delivery["state"] for delivery in (failed, passed, tested)] == [
        *("unverified", "active", "active")
    ]
    assert passed["note"].endswith("the challenge was sent instead of a test event")
    assert (failed["note"], tested["note"]) == (passed["note"], "")
    assert (passed["passed"], passed["status"], passed["reason"]) == (True, 200, "")


def test_after_the_challenge_answers_are_shown_and_failures_are_not(
    two: Two, good: Receiver
) -> None:
    endpoint = add(two.lab, good.url)
    assert answered(two.lab, endpoint, "verify")["note"] == ""

    shown = []
    for reply in (Reply(status=404), Reply(misbehaviour="reset"), Reply(misbehaviour="no-http")):
        good.answer(reply)
        if reply.misbehaviour:
            trial = act(two.lab, endpoint, "test").json
        else:
            trial = answered(two.lab, endpoint, "test")
        shown.append((trial["status"], trial["reason"], trial["milliseconds"] >= 1000))

    assert shown == [(404, "", False), *[(None, "E_PRIVATE_NETWORK", True)] * 2]


def test_at_another_address_the_challenge_has_to_be_passed_again(two: Two, good: Receiver) -> None:
    endpoint = add(two.lab, good.url)
    answered(two.lab, endpoint, "verify")
    two.lab.patch(f"{ENDPOINTS}/{endpoint['id']}", {"url": f"{good.url}/2"})
    good.answer(Reply(status=404))

    trial = act(two.lab, endpoint, "test").json

    assert (trial["event_type"], trial["status"]) == ("endpoint.verification", None)


def test_the_answers_to_an_endpoint_of_the_operator_are_shown_at_once(
    two: Two, good: Receiver
) -> None:
    adding = two.service.services.endpoints.add(two.lab.tenant.id, {"url": good.url}, trusted=True)
    endpoint = {"id": two.service.call(adding).endpoint.id}
    good.answer(Reply(status=404))

    trial = act(two.lab, endpoint, "test").json

    assert (trial["event_type"], trial["status"]) == ("endpoint.test", 404)
    assert good.received[0].json["event_type"] == "endpoint.test"


def test_a_disabled_endpoint_that_fails_to_take_a_test_says_nothing_of_the_network(
    two: Two, good: Receiver
) -> None:
    endpoint = add(two.lab, good.url)
    act(two.lab, endpoint, "verify")
    store = two.service.services.store
    stored = two.service.call(store.endpoint(two.lab.tenant.id, endpoint["id"]))
    assert stored is not None
    gone = dataclasses.replace(stored, state="disabled", why="gone", revision=stored.revision + 1)
    assert two.service.call(store.put_endpoint(two.lab.tenant.id, gone))
    good.answer(Reply(misbehaviour="reset"))

    refused = act(two.lab, endpoint, "enable")

    assert refused.status == 422
    assert "(E_PRIVATE_NETWORK): it stays disabled" in refused.issues[0]["diagnostics"]


def test_no_challenge_is_sent_where_an_entry_no_longer_permits_it(
    store_url: Callable[[str], str], tmp_path: Path, good: Receiver
) -> None:
    with Restarting(tmp_path, store_url("moved")) as running:
        before = running.start("127.0.0.1")
        lab = before.integrator("Lab")
        endpoint = add(lab, good.url)
        clinic = before.integrator("Clinic")

        service = running.start(f"127.0.0.1 port={good.port} tenant={clinic.tenant.id}")
        lab, clinic = map(service.another_client, (lab.tenant, clinic.tenant))
        blocked = act(lab, endpoint, "verify").json
        passed = act(clinic, add(clinic, good.url), "verify").json

    assert (blocked["passed"], blocked["reason"]) == (False, "E_BLOCKED_ADDRESS")
    assert (passed["passed"], len(good.received)) == (True, 1)
