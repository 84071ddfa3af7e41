"""Webhooks end to end: a registered report leads to a webhook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.settings import Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import register_body
from tests.waiting import wait_until

ENDPOINTS = "/webhooks/v1/endpoints"
SETTINGS = WebhooksConfig(
    allow_networks=["127.0.0.1/32"], timeout_seconds=30.0, retry_seconds=[0.2, 0.2, 60.0]
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that sends to receivers on this machine."""
    with RunningService(
        tmp_path_factory.mktemp("at-work"), config=Config(webhooks=SETTINGS)
    ) as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A client that wants events."""
    with Receiver() as running:
        yield running


@pytest.fixture
def added(lab: Integrator, receiver: Receiver) -> dict[str, Any]:
    """An endpoint that was just added."""
    body: dict[str, Any] = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json
    return body


@pytest.fixture
def active(lab: Integrator, added: dict[str, Any], receiver: Receiver) -> dict[str, Any]:
    """A verified endpoint."""
    receiver.answer(Reply(status=200, echo=True))
    assert act(lab, added, "verify").json["state"] == "active"
    receiver.received.clear()
    receiver.answer(Reply())
    return added


def act(lab: Integrator, endpoint: dict[str, Any], verb: str, body: Any = None) -> Any:
    return lab.request("POST", f"{ENDPOINTS}/{endpoint['id']}/{verb}", body)


def states(lab: Integrator, endpoint: dict[str, Any]) -> list[str]:
    log = lab.get(f"{ENDPOINTS}/{endpoint['id']}/deliveries").json["deliveries"]
    return [item["status"] for item in log]


def test_a_report_is_delivered_and_the_log_says_so(
    lab: Integrator, active: dict[str, Any], receiver: Receiver
) -> None:
    registered = lab.register(register_body("R-1"))

    (received,) = receiver.wait(1)
    assert wait_until(lambda: states(lab, active) == ["delivered"])
    (logged,) = lab.get(f"{ENDPOINTS}/{active['id']}/deliveries").json["deliveries"]
    assert received.json["data"]["self"] == registered.headers["location"]
    assert logged["event_id"] == received.headers["webhook-id"]
    assert logged["attempts"][0]["status"] == 204


def test_what_comes_before_the_verification_is_held_until_then(
    lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    lab.register(register_body("R-1"))
    assert wait_until(lambda: states(lab, added) == ["held"])
    assert not receiver.received

    receiver.answer(Reply(status=200, echo=True))
    act(lab, added, "verify")

    assert receiver.wait(2)[1].json["event_type"] == "diagnostic_report.created"


def test_a_pause_holds_and_loses_nothing(
    lab: Integrator, active: dict[str, Any], receiver: Receiver
) -> None:
    act(lab, active, "pause")
    assert wait_until(lambda: lab.get(f"{ENDPOINTS}/{active['id']}").json["state"] == "paused")
    lab.register(register_body("R-1"))
    assert wait_until(lambda: states(lab, active) == ["held"])

    act(lab, active, "enable")

    assert receiver.wait(1)[0].json["sequence"] == 1


def test_an_endpoint_that_is_gone_is_disabled_until_it_takes_a_test(
    lab: Integrator, active: dict[str, Any], receiver: Receiver
) -> None:
    receiver.answer(Reply(status=410))
    lab.register(register_body("R-1"))
    place = f"{ENDPOINTS}/{active['id']}"
    assert wait_until(lambda: lab.get(place).json["state"] == "disabled")
    assert act(lab, active, "enable").status == 422

    receiver.answer(Reply())
    enabled = act(lab, active, "enable").json

    assert enabled["state"] == "active"
    assert wait_until(lambda: states(lab, active) == ["delivered"])


def test_what_is_replayed_is_the_same_to_the_byte(
    lab: Integrator, active: dict[str, Any], receiver: Receiver
) -> None:
    lab.register(register_body("R-1"))
    assert wait_until(lambda: states(lab, active) == ["delivered"])

    assert act(lab, active, "replay", {"from_seq": 1}).json["reopened"] == 1

    first, again = receiver.wait(2)
    names = ("webhook-id", "x-webhook-sequence", "x-webhook-attempt")
    assert again.body == first.body
    assert [again.headers[name] for name in names] == [first.headers[name] for name in names]


def test_a_removed_endpoint_is_sent_nothing(
    lab: Integrator, active: dict[str, Any], receiver: Receiver
) -> None:
    other = lab.request("POST", ENDPOINTS, {"url": f"{receiver.url}/other"}).json
    lab.request("DELETE", f"{ENDPOINTS}/{active['id']}")
    receiver.answer(Reply(status=200, echo=True))
    act(lab, other, "verify")

    lab.register(register_body("R-1"))

    receiver.wait(2)
    assert wait_until(lambda: states(lab, other) == ["delivered"])
    assert {received.path for received in receiver.received} == {"/webhook/other"}


def test_no_secret_comes_into_the_log(receiver: Receiver, tmp_path: Path) -> None:
    settings: dict[str, dict[str, Any]] = {
        "logs": {"level": "debug", "format": "json"},
        "webhooks": {"allow_networks": ["127.0.0.1/32"]},
    }
    receiver.answer(Reply(status=200, echo=True), Reply(status=500))
    with ServiceProcess(tmp_path, settings=settings) as process:
        lab = process.integrator()
        made = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json
        act(lab, made, "verify")
        rotated = act(lab, made, "secret:rotate").json
        token = act(lab, made, "token:rotate").json["bearer_token"]
        lab.request("POST", ENDPOINTS, {"url": receiver.url, "bearer_token": "se cret"})
        lab.register(register_body("R-1"))
        receiver.wait(2)
        process.terminate()
        process.wait()
        key = (tmp_path / "fhirpub.webhook-keys").read_text().strip()
        text = process.errors.read_text(encoding="utf-8")

    assert made["id"] in text
    assert f"{tmp_path}/fhirpub.webhook-keys" in text
    secrets = [made["signing_secret"], made["bearer_token"], rotated["signing_secret"], token]
    assert not [item for item in (*secrets, key, receiver.url, "se cret") if item in text]
