"""Batches within bounds: quotas, entries, bytes and time."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from fhirpub.config.batch import BatchConfig
from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.settings import Config
from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.clock import HandClock
from fhirpub.testing.service import RunningService
from tests.batches import (
    BASE,
    TYPE,
    UNKNOWN,
    bundle,
    count,
    entry,
    id_of,
    problems,
    registering,
    send,
    statuses,
)
from tests.bodies import document
from tests.waiting import wait_until

Serve = Callable[..., RunningService]
MIDNIGHT = 1_795_000_000_000 // 86_400_000 * 86_400_000


@pytest.fixture
def serve(tmp_path: Path, store_url: Callable[[str], str]) -> Iterator[Serve]:
    """Return a function that starts a service with some settings."""
    url = store_url(f"batch_{uuid4().hex}") or f"sqlite:///{tmp_path}/fhirpub.db"
    with ExitStack() as running:

        def start(**groups: Any) -> RunningService:
            service = RunningService(
                tmp_path, config=Config(**groups), clock=HandClock(MIDNIGHT), store_url=url
            )
            return running.enter_context(service)

        yield start


def test_each_entry_counts_as_a_request_of_the_minute(serve: Serve) -> None:
    service = serve(quotas=QuotasConfig(client_requests_per_minute=5))
    lab, stranger = service.integrator(), service.integrator("Other")
    reads = [entry("GET", f"{TYPE}/{UNKNOWN}")] * 6

    answers = send(lab, *reads)

    assert sorted(statuses(answers)) == [404, 404, 404, 404, 429, 429]
    refused = next(one for one in answers if problems(one) == ["quota-used-up"])
    assert "try again in 60 s" in refused["response"]["outcome"]["issue"][0]["diagnostics"]
    assert lab.request("POST", BASE, bundle(*reads)).status == 429
    assert statuses(send(stranger, *reads[:3])) == [404] * 3


def test_a_batch_is_one_request_at_a_time(serve: Serve) -> None:
    lab = serve(quotas=QuotasConfig(client_requests_at_a_time=1)).integrator()

    for _ in range(2):
        assert statuses(send(lab, *[entry("GET", f"{TYPE}/{UNKNOWN}")] * 20)) == [404] * 20


def test_the_registrations_of_a_day_are_exact_and_repetitions_are_answered(serve: Serve) -> None:
    lab = serve(quotas=QuotasConfig(tenant_registrations_per_day=3)).integrator()
    entries = [registering(f"R-{place}") for place in range(8)]

    first = send(lab, *entries)
    again = send(lab, *entries)

    assert sorted(statuses(first)) == [201] * 3 + [429] * 5
    assert statuses(again) == statuses(first)
    assert count(lab, [f"R-{place}" for place in range(8)]) == 3


def test_the_bytes_of_a_batch_count_once(serve: Serve) -> None:
    body = dumps(bundle(registering("R-1"), registering("R-2")))
    lab = serve(quotas=QuotasConfig(client_bytes_per_day=len(body) + 10)).integrator()

    first, second = lab.request("POST", BASE, body), lab.request("POST", BASE, body)

    assert first.status == 200
    assert statuses(first.json["entry"]) == [201, 201]
    assert second.status == 429


def test_the_stored_bytes_of_a_tenant_limit_entries(serve: Serve) -> None:
    lab = serve(quotas=QuotasConfig(tenant_stored_bytes=30_000)).integrator()

    answers = send(lab, *[registering(f"R-{place}") for place in range(20)])

    assert {201, 403} == {*statuses(answers)}
    assert {"storage-quota-used-up"} == {
        code for one in answers if "outcome" in one["response"] for code in problems(one)
    }


def test_the_number_of_entries_is_a_setting(serve: Serve) -> None:
    lab = serve(batch=BatchConfig(entries=2)).integrator()

    assert statuses(send(lab, registering("R-1"), registering("R-2"))) == [201, 201]
    answer = lab.request("POST", BASE, bundle(*map(registering, "abc")))

    assert (answer.status, answer.problems) == (413, ["entries-too-many"])
    assert count(lab, ["a", "b", "c"]) == 0


def test_what_does_not_fit_into_the_response_is_refused_or_left_out(serve: Serve) -> None:
    lab = serve(batch=BatchConfig(answer_bytes=20_000)).integrator()
    data = bytes(range(256)) * 200
    (large,) = send(lab, registering("R-1", presentedForm=[document(data)]))
    path = f"{TYPE}/{id_of(large)}"

    read, registered, unknown = send(
        lab,
        entry("GET", path),
        registering("R-2"),
        entry("GET", f"{TYPE}/{UNKNOWN}"),
    )

    assert statuses([read, registered, unknown]) == [413, 201, 404]
    assert problems(read) == ["batch-answer-too-large"]
    many = send(lab, *[registering(f"S-{place}") for place in range(30)])
    assert statuses(many) == [201] * 30
    assert all(one["response"]["etag"] == 'W/"1"' for one in many)
    assert 0 < sum("resource" in one for one in many) < 30


def test_what_has_not_begun_in_time_is_not_processed(serve: Serve) -> None:
    lab = serve(batch=BatchConfig(seconds=0)).integrator()

    answers = send(lab, registering("R-1"), registering("R-2"))

    assert statuses(answers) == [503, 503]
    assert problems(answers[0]) == ["batch-timeout"]
    assert count(lab, ["R-1", "R-2"]) == 0


def test_an_entry_counts_in_the_metrics_like_a_request(service: RunningService) -> None:
    lab = service.integrator()

    async def text() -> str:
        return service.services.metrics.text("")[0].decode()

    send(lab, registering("R-1"))

    shown = service.call(text())
    assert 'method="POST",route="/fhir/r4",status="200"' in shown
    assert f'method="POST",route="{BASE}/{TYPE}/$register",status="201"' in shown


def test_nothing_is_left_of_a_batch_whose_client_has_disconnected(
    service: RunningService,
) -> None:
    lab = service.integrator()
    body = dumps(bundle(*[registering(f"R-{place}") for place in range(400)]))
    head = (
        f"POST {BASE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {lab.token}\r\n"
        f"Content-Type: application/fhir+json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(head.encode() + body)

    assert wait_until(lambda: not service.services.in_flight, 60)
    answers = send(lab, *[registering(f"R-{place}") for place in range(400)])

    assert statuses(answers) == [201] * 400
    new = [one for one in answers if "outcome" not in one["response"]]
    assert len(new) > 100, "the disconnect was not noticed"
    assert lab.get(f"{BASE}/{TYPE}?_summary=count").json["total"] == 400
