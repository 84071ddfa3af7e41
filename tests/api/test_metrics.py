"""Each metric changes when it should, and no metric reveals personal data."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from fhirpub.config.settings import Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.runtime.metrics import Metrics
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Integrator, RunningService
from tests import raw
from tests.bodies import register_body
from tests.gate import gate
from tests.metrics import Moves, shown, text_of
from tests.waiting import wait_until

BASE = "/fhir/r4/DiagnosticReport"
ENDPOINTS = "/webhooks/v1/endpoints"
UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"
SETTINGS = WebhooksConfig(
    allow_networks=["127.0.0.1/32"],
    timeout_seconds=5.0,
    retry_seconds=[0.05],
    breaker_failures=4,
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that sends to receivers on this machine."""
    folder, config = tmp_path_factory.mktemp("metrics"), Config(webhooks=SETTINGS)
    with RunningService(folder, config=config) as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A client that wants events."""
    with Receiver() as running:
        yield running


@pytest.fixture
def endpoint(lab: Integrator, receiver: Receiver) -> dict[str, Any]:
    """The client's active endpoint."""
    receiver.answer(Reply(status=200, echo=True))
    added: dict[str, Any] = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json
    lab.request("POST", f"{ENDPOINTS}/{added['id']}/verify")
    receiver.answer(Reply())
    return added


@pytest.fixture
def moves(service: RunningService, lab: Integrator) -> Moves:
    """The growth of samples since the start of the test."""
    return Moves(service)


# Requests.


@pytest.mark.parametrize(
    ("start", "method", "route", "status"),
    [
        (f"GET {BASE}/{UNKNOWN_ID}", "GET", f"{BASE}/{{}}", "401"),
        (f"POST {BASE}/%24register", "POST", f"{BASE}/$register", "401"),
        ("HEAD /health/live", "HEAD", "/health/live", "200"),
        ("OPTIONS /metadata", "OPTIONS", "/metadata", "204"),
        ("BREW /metadata", "other", "/metadata", "405"),
        ("SIP /coffee", "other", "none", "404"),
        ("GET /nowhere", "GET", "none", "404"),
        ("GET /health/live?x=[", "GET", "/health/live", "200"),
    ],
)
def test_an_answer_counts_under_its_row_of_the_table_of_urls(
    service: RunningService, moves: Moves, start: str, method: str, route: str, status: str
) -> None:
    raw.request(service, start)

    assert moves.by("requests_total", method=method, route=route, status=status) == 1
    assert moves.by("request_seconds_count", method=method, route=route) == 1


def test_a_request_that_breaks_http_counts_too(service: RunningService, moves: Moves) -> None:
    raw.request(service, "GET /health/live", "Content-Length: 1", "Content-Length: 2")

    assert moves.by("requests_total", method="GET", route="none", status="400") == 1


def test_unknown_methods_and_paths_make_no_new_series(
    service: RunningService,
) -> None:
    raw.request(service, "SIP /coffee")
    before = text_of(service).count("\nfhirpub_requests_total")

    for number in range(5):
        raw.request(service, f"BREW{number} /pot/{number}")

    assert text_of(service).count("\nfhirpub_requests_total") == before
    assert len(service.services.metrics._answers) == before


def test_a_request_is_in_flight_until_it_is_answered(service: RunningService) -> None:
    before = shown(service, "requests_under_way")
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(b"POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n")
        assert wait_until(lambda: shown(service, "requests_under_way") == before + 1)

    assert wait_until(lambda: shown(service, "requests_under_way") == before)


def test_a_registration_is_created_once_and_then_repeated(lab: Integrator, moves: Moves) -> None:
    for _ in range(3):
        lab.register(register_body("R-1"))

    by = {"type": "DiagnosticReport"}
    assert moves.by("registrations_total", outcome="created", **by) == 1
    assert moves.by("registrations_total", outcome="repeated", **by) == 2


def test_a_store_that_cannot_answer_is_counted(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        service.call(service.services.store.stop())
        service.request("GET", "/health/ready")

        assert shown(service, "store_unavailable_total") == 1


# Webhooks.


def test_a_delivery_counts_with_its_attempts_and_its_time(
    lab: Integrator, endpoint: dict[str, Any], receiver: Receiver, moves: Moves
) -> None:
    receiver.answer(Reply(status=500), Reply(status=200))

    lab.register(register_body("R-1"))

    delivered = {"outcome": "delivered", "reason": "2xx"}
    assert wait_until(lambda: moves.by("webhook_deliveries_total", **delivered) == 1)
    assert moves.by("webhook_attempts_total", outcome="5xx") == 1
    assert moves.by("webhook_attempts_total", outcome="2xx") == 1
    assert moves.by("webhook_attempt_seconds_count") == 2
    assert moves.by("webhook_delivery_seconds_count") == 1
    assert 0.05 < moves.by("webhook_delivery_seconds_sum") < 45


def test_a_replay_counts_but_not_in_the_time_a_delivery_takes(
    lab: Integrator, endpoint: dict[str, Any], moves: Moves
) -> None:
    delivered = {"outcome": "delivered", "reason": "2xx"}
    lab.register(register_body("R-1"))
    assert wait_until(lambda: moves.by("webhook_deliveries_total", **delivered) == 1)

    lab.request("POST", f"{ENDPOINTS}/{endpoint['id']}/replay", {"from_seq": 1})

    assert wait_until(lambda: moves.by("webhook_deliveries_total", **delivered) == 2)
    assert moves.by("webhook_replays_total") == 1
    assert moves.by("webhook_delivery_seconds_count") == 1


def test_what_is_given_up_counts_by_its_last_failure_and_opens_a_breaker(
    service: RunningService,
    lab: Integrator,
    endpoint: dict[str, Any],
    receiver: Receiver,
    moves: Moves,
) -> None:
    receiver.answer(Reply(status=500), Reply(misbehaviour="closed"))

    lab.register(register_body("R-1"))
    lab.register(register_body("R-2"))

    dead = {"outcome": "dead", "reason": "E_RESET"}
    assert wait_until(lambda: moves.by("webhook_breakers", state="open") == 1)
    assert wait_until(lambda: moves.by("webhook_deliveries_total", **dead) == 2)
    assert moves.by("webhook_attempts_total", outcome="E_RESET") == 3
    lab.request("DELETE", f"{ENDPOINTS}/{endpoint['id']}")
    assert wait_until(lambda: moves.by("webhook_breakers", state="open") == 0)


def test_the_queue_depth_is_shown_with_the_age_of_the_oldest(
    service: RunningService, lab: Integrator
) -> None:
    with gate() as receiver:
        receiver.may_answer.set()
        added = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json
        lab.request("POST", f"{ENDPOINTS}/{added['id']}/verify")
        receiver.may_answer.clear()

        lab.register(register_body("R-1"))

        assert wait_until(lambda: len(receiver.received) > 1)
        assert shown(service, "webhook_queue_depth") == 1
        assert wait_until(lambda: shown(service, "webhook_oldest_pending_seconds") > 0.1)
    assert wait_until(lambda: shown(service, "webhook_queue_depth") == 0)
    assert shown(service, "webhook_oldest_pending_seconds") == 0


def test_an_endpoint_that_is_disabled_counts(
    lab: Integrator, endpoint: dict[str, Any], receiver: Receiver, moves: Moves
) -> None:
    receiver.answer(Reply(status=410))

    lab.register(register_body("R-1"))

    assert wait_until(lambda: moves.by("webhook_endpoints_disabled_total") == 1)
    assert moves.by("webhook_attempts_total", outcome="4xx") == 1


def test_an_address_to_which_nothing_may_be_sent_counts(
    service: RunningService, lab: Integrator, endpoint: dict[str, Any], moves: Moves
) -> None:
    store = service.services.store
    stored = service.call(store.endpoint(lab.tenant.id, endpoint["id"]))
    assert stored is not None
    inside = replace(stored, url="https://10.0.0.1/", revision=stored.revision + 1)

    assert service.call(store.put_endpoint(lab.tenant.id, inside))
    lab.request("POST", f"{ENDPOINTS}/{endpoint['id']}/test")

    assert moves.by("webhook_blocked_addresses_total") == 1


def test_the_only_process_leads_the_relay(service: RunningService) -> None:
    assert wait_until(lambda: shown(service, "webhook_relay_leading") == 1)
    assert wait_until(lambda: shown(service, "webhook_relay_lag_seconds") == 0)


# Contents of the page.


def test_both_formats_can_be_read_and_say_the_same(service: RunningService) -> None:
    service.request("GET", "/health/live")

    plain = parser.text_string_to_metric_families(text_of(service))
    newer = openmetrics_parser.text_string_to_metric_families(  # type: ignore[no-untyped-call]
        text_of(service, "application/openmetrics-text;version=1.0.0")
    )

    names = {sample.name for family in plain for sample in family.samples}
    assert {sample.name for family in newer for sample in family.samples} == names
    assert {"fhirpub_info", "process_open_fds", "python_info"} < names
    assert "fhirpub_requests_created" not in names


def test_a_process_shows_what_it_does_and_nothing_else() -> None:
    def groups(**does: bool) -> set[str]:
        shown = {metric.name for metric in Metrics(**does).collect()}
        of_senders = {name for name in shown if name.startswith("fhirpub_webhook_attempt")}
        return (of_senders and {"webhooks"}) | (shown & {"fhirpub_requests"})

    assert groups(serves=True, sends=False) == {"fhirpub_requests"}
    assert groups(serves=False, sends=True) == {"webhooks"}


def test_nothing_of_a_tenant_a_client_or_a_receiver_is_shown(
    service: RunningService, lab: Integrator, endpoint: dict[str, Any], receiver: Receiver
) -> None:
    canary = "Kanarienvogel"
    bad = Reply(status=599, headers={"X-Reason": canary}, body=canary.encode())
    receiver.answer(bad, bad, Reply())
    lab.register(register_body(canary))
    lab.get(f"{BASE}/{canary}?{canary}={canary}")
    lab.request("POST", ENDPOINTS, {"url": f"https://{canary}.invalid/"})
    raw.request(service, f"{canary} /{canary}")
    receiver.wait(3)

    text = text_of(service, "application/openmetrics-text")
    for item in (
        *(canary, lab.tenant.id, lab.client_id, lab.client_secret, lab.token),
        *(endpoint["id"], endpoint["signing_secret"], receiver.url),
    ):
        assert item
        assert item.casefold() not in text.casefold()
