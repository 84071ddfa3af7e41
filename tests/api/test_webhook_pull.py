"""Endpoints that a client reads, and calls that wait for the next event."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.settings import Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.runtime.clock import DAY_MS, now_ms
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.webhooks.management.arrivals import MAX_WAITS_OF_CLIENT
from fhirpub.webhooks.management.pull_endpoints import remove_unread
from tests.bodies import register_body
from tests.waiting import wait_until

ENDPOINTS = "/webhooks/v1/endpoints"


@pytest.fixture(scope="module")
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service that sends to receivers on this machine."""
    settings, url = WebhooksConfig(allow_networks=["127.0.0.1/32"], timeout_seconds=5.0), ""
    if request.config.getoption("--store") == "mongodb":
        url = request.getfixturevalue("replica_set").url("pull")
        keys = tmp_path_factory.mktemp("keys") / "keys"
        keys.write_text("A" * 43 + "=\n")
        settings = dataclasses.replace(settings, keys_file=str(keys))
    folder = tmp_path_factory.mktemp("pull")
    with RunningService(folder, config=Config(webhooks=settings), store_url=url) as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def added(lab: Integrator, **fields: Any) -> dict[str, Any]:
    answer = lab.request("POST", ENDPOINTS, {"url": "pull:laptop", **fields})
    assert answer.status == 201
    endpoint: dict[str, Any] = answer.json
    return endpoint


def events(lab: Integrator, endpoint: dict[str, Any], query: str = "") -> Answer:
    return lab.get(f"{ENDPOINTS}/{endpoint['id']}/events{query}")


def sequences(answer: Answer) -> list[int]:
    assert answer.status == 200
    return [event["sequence"] for event in answer.json["events"]]


def test_an_endpoint_that_is_read_needs_no_challenge_and_stays_paused(lab: Integrator) -> None:
    assert added(lab)["state"] == "paused"


def test_its_events_are_there_to_be_read_in_order(lab: Integrator) -> None:
    endpoint = added(lab)
    for number in range(3):
        lab.register(register_body(f"R-{number}"))

    read: list[Any] = []
    while len(read) < 3:
        read += events(lab, endpoint, f"?after_seq={len(read)}&wait=20").json["events"]

    assert [event["sequence"] for event in read] == [1, 2, 3]
    assert {event["status"] for event in read} == {"held"}
    assert [event["body"]["data"]["identifier"]["value"] for event in read] == [
        "R-0",
        "R-1",
        "R-2",
    ]


def test_only_events_of_its_types_are_collected(lab: Integrator) -> None:
    endpoint = added(lab, event_types=["diagnostic_report.updated"])
    path = lab.register(register_body("R-1")).headers["location"].partition("/_history")[0]
    lab.patch(path, {"resourceType": "DiagnosticReport", "status": "amended"})

    found = events(lab, endpoint, "?wait=20").json["events"]

    assert [event["event_type"] for event in found] == ["diagnostic_report.updated"]


def test_a_call_waits_until_an_event_is_committed(lab: Integrator) -> None:
    endpoint = added(lab)
    timer = threading.Timer(0.5, lab.register, [register_body("R-1")])
    begun = time.monotonic()
    timer.start()

    assert sequences(events(lab, endpoint, "?after_seq=0&wait=20")) == [1]

    assert 0.4 < time.monotonic() - begun < 20
    timer.join()


def test_a_call_that_waits_in_vain_ends_in_time(lab: Integrator) -> None:
    endpoint = added(lab)
    begun = time.monotonic()

    assert sequences(events(lab, endpoint, "?wait=1")) == []

    assert 1 <= time.monotonic() - begun < 25


def test_a_call_without_the_parameter_does_not_wait(
    service: RunningService, lab: Integrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, waits = added(lab), list[float]()

    async def wait(*_arguments: object, seconds: float, **_options: object) -> None:
        waits.append(seconds)

    monkeypatch.setattr(service.services.arrivals, "wait", wait)

    assert sequences(events(lab, endpoint)) == []
    assert sequences(events(lab, endpoint, "?wait=20")) == []
    assert waits == [20]


@pytest.mark.parametrize("wait", ["31", "-1", "a", "1.5"])
def test_how_long_to_wait_is_bounded(wait: str, lab: Integrator) -> None:
    refused = events(lab, added(lab), f"?wait={wait}&since=now")

    assert (refused.status, refused.issue_expressions) == (400, {"wait", "since"})


def test_events_since_a_time_leave_earlier_ones_out(
    lab: Integrator, service: RunningService
) -> None:
    endpoint = added(lab)
    lab.register(register_body("R-1"))
    assert sequences(events(lab, endpoint, "?wait=20")) == [1]

    assert sequences(events(lab, endpoint, "?since=2099-01-01T00:00:00Z")) == []
    assert sequences(events(lab, endpoint, "?since=2020-01-01T00:00:00Z")) == [1]


def test_another_tenant_can_neither_read_nor_wait(
    service: RunningService, lab: Integrator
) -> None:
    endpoint = added(lab)

    assert events(service.integrator(), endpoint, "?wait=20").status == 404


def test_events_of_another_tenant_do_not_come(service: RunningService, lab: Integrator) -> None:
    endpoint, stranger = added(lab), service.integrator()
    theirs = added(stranger)
    stranger.register(register_body("R-1"))

    assert sequences(events(stranger, theirs, "?wait=20")) == [1]
    assert sequences(events(lab, endpoint, "?wait=1")) == []


def test_more_calls_of_a_client_than_may_wait_are_told_to_come_later(
    service: RunningService, lab: Integrator
) -> None:
    endpoint, waits = added(lab), service.services.arrivals._waits
    with ThreadPoolExecutor(MAX_WAITS_OF_CLIENT) as pool:
        calls = [
            pool.submit(events, lab, endpoint, "?wait=30") for _ in range(MAX_WAITS_OF_CLIENT)
        ]
        assert wait_until(lambda: len(waits) == MAX_WAITS_OF_CLIENT)
        refused = events(lab, endpoint, "?wait=30")
        lab.register(register_body("R-1"))
        answers = [call.result() for call in calls]

    assert [answer.status for answer in answers] == [200] * MAX_WAITS_OF_CLIENT
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")


@pytest.mark.parametrize("act", ["verify", "test", "enable", "pause", "replay"])
def test_what_would_send_is_refused(act: str, lab: Integrator) -> None:
    endpoint = added(lab)
    body = {"from_seq": 1} if act == "replay" else None

    refused = lab.request("POST", f"{ENDPOINTS}/{endpoint['id']}/{act}", body)

    assert refused.status == 422
    assert "is read by its client" in refused.issues[0]["diagnostics"]


def test_its_url_cannot_become_one_that_is_sent_to(lab: Integrator, receiver: Receiver) -> None:
    endpoint = added(lab)

    refused = lab.patch(f"{ENDPOINTS}/{endpoint['id']}", {"url": receiver.url})

    assert (refused.status, refused.issue_expressions) == (400, {"url"})


def test_an_operator_who_enables_it_leaves_it_paused(
    service: RunningService, lab: Integrator
) -> None:
    endpoint, endpoints = added(lab), service.services.endpoints
    service.call(endpoints.disable(lab.tenant.id, endpoint["id"]))

    enabled = service.call(endpoints.enable(lab.tenant.id, endpoint["id"], operator=True))

    assert (enabled.state, enabled.why) == ("paused", "")


def test_a_name_that_no_url_may_have_is_refused(lab: Integrator) -> None:
    refused = lab.request("POST", ENDPOINTS, {"url": "pull:My laptop"})

    assert (refused.status, refused.issue_expressions) == (400, {"url"})


def test_a_call_that_reads_it_keeps_it(tmp_path: Path) -> None:
    late = [0]
    with RunningService(tmp_path, clock=lambda: now_ms() + late[0]) as service:
        lab, store = service.integrator(), service.services.store
        endpoint = added(lab)
        late[0] = 31 * DAY_MS
        lab.log_in()
        events(lab, endpoint)

        assert service.call(remove_unread(store, before=now_ms() + DAY_MS)) == 0


def test_a_stopping_service_answers_waiting_calls_at_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with RunningService(tmp_path_factory.mktemp("stopping")) as service:
            lab = service.integrator()
            endpoint = added(lab)
            waiting = pool.submit(events, lab, endpoint, "?wait=30")
            assert wait_until(lambda: len(service.services.arrivals._waits) == 1)
            begun = time.monotonic()

        assert sequences(waiting.result()) == []
        assert time.monotonic() - begun < 25


# Samples


@pytest.fixture
def active(lab: Integrator, receiver: Receiver) -> str:
    """An endpoint that has passed its challenge."""
    endpoint: str = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json["id"]
    receiver.answer(Reply(status=200, echo=True))
    assert lab.request("POST", f"{ENDPOINTS}/{endpoint}/verify").json["passed"]
    return endpoint


def test_a_test_can_send_a_sample_of_an_event(
    lab: Integrator, active: str, receiver: Receiver
) -> None:
    fields = {"event_type": "diagnostic_report.updated"}

    trial = lab.request("POST", f"{ENDPOINTS}/{active}/test", fields).json

    sent = receiver.received[-1]
    assert (trial["passed"], trial["event_type"]) == (True, "diagnostic_report.updated")
    assert sent.headers["x-webhook-event"] == "diagnostic_report.updated"
    assert sent.headers["x-webhook-sequence"] == "0"
    assert sent.json["data"]["previous_status"]


def test_a_test_without_a_body_sends_a_test_event(
    lab: Integrator, active: str, receiver: Receiver
) -> None:
    assert lab.request("POST", f"{ENDPOINTS}/{active}/test").json["event_type"] == "endpoint.test"


def test_a_sample_before_the_challenge_is_the_challenge(
    lab: Integrator, receiver: Receiver
) -> None:
    endpoint = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json["id"]
    fields = {"event_type": "diagnostic_report.updated"}

    trial = lab.request("POST", f"{ENDPOINTS}/{endpoint}/test", fields).json

    assert trial["event_type"] == "endpoint.verification"
    assert receiver.received[-1].json["event_type"] == "endpoint.verification"


@pytest.mark.parametrize(
    ("fields", "place", "advice"),
    [
        (
            {"event_type": "diagnostic_report.update"},
            "event_type",
            "did you mean diagnostic_report.updated?",
        ),
        ({"event_type": "endpoint.verification"}, "event_type", "by a verification alone"),
        ({"event_type": 1}, "event_type", "must be a string"),
        ({"event": "diagnostic_report.updated"}, "event", "known are event_type"),
    ],
)
def test_a_sample_of_nothing_known_is_refused(
    fields: dict[str, Any], place: str, advice: str, lab: Integrator, active: str
) -> None:
    refused = lab.request("POST", f"{ENDPOINTS}/{active}/test", fields)

    assert (refused.status, refused.issue_expressions) == (400, {place})
    assert advice in refused.issues[0]["diagnostics"]
