"""Quotas over HTTP: each limits its tenant or client, and no other one."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from prometheus_client import parser

from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.settings import Config
from fhirpub.errors import StoreUnavailable
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.storage.contract import Blob, Version
from fhirpub.storage.quota_contract import QuotaOverride
from fhirpub.testing.clock import HandClock
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.admission.quota_usage import Usage
from tests import raw
from tests.bodies import document, register_body
from tests.faults.broken_stores import StoreWrapper, opening
from tests.waiting import wait_until

BASE = "/fhir/r4/DiagnosticReport"
UNKNOWN = f"{BASE}/00000000-0000-4000-8000-000000000000"
DAY_START = 1_795_000_000_000 // 86_400_000 * 86_400_000
FIELDS = {"ratelimit", "ratelimit-policy"}

Serve = Callable[..., RunningService]


@pytest.fixture
def clock() -> HandClock:
    """A clock that stands 20 seconds after a midnight."""
    return HandClock(DAY_START + 20_000)


@pytest.fixture
def serve(tmp_path: Path, clock: HandClock, store_url: Callable[[str], str]) -> Iterator[Serve]:
    """Return a function that starts a service with quotas; all share one store."""
    url = store_url(f"quotas_{uuid4().hex}") or f"sqlite:///{tmp_path}/fhirpub.db"
    with ExitStack() as running:

        def start(**quotas: int) -> RunningService:
            config = Config(quotas=QuotasConfig(**quotas))
            service = RunningService(tmp_path, config=config, clock=clock, store_url=url)
            return running.enter_context(service)

        yield start


class FailsOnce(StoreWrapper):
    """A store in which the first version cannot be added."""

    has_failed = False

    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        if not self.has_failed:
            self.has_failed = True
            raise StoreUnavailable("away")
        return await self.inner.add(tenant, version, blobs)


def test_a_registration_that_the_store_refused_is_not_counted(tmp_path: Path) -> None:
    config = Config(quotas=QuotasConfig(tenant_registrations_per_day=1))
    opened = opening(FailsOnce)
    with RunningService(tmp_path, config=config, open_store=opened) as service:
        lab = service.integrator()

        answers = [lab.register(register_body("Q-1")).status for _ in range(2)]

    assert answers == [503, 201]


def statuses(lab: Integrator, count: int) -> list[int]:
    return [lab.get(UNKNOWN).status for _ in range(count)]


def use(service: RunningService, owner: str) -> Usage:
    """Return what a service knows of the use of a tenant or a client."""
    usages = service.services.quotas._usages
    return next(usage for (_kind, name), usage in usages.items() if name == owner)


def at(lab: Integrator, other: RunningService) -> Integrator:
    """Return the same client as it calls another service."""
    return Integrator(other, lab.tenant, lab.client_id, lab.client_secret, lab.token)


def check_refused(answer: Answer, quota: str, *, seconds: int) -> None:
    (issue,) = answer.issues
    assert answer.status == 429
    assert (issue["severity"], issue["code"]) == ("error", "throttled")
    assert issue["diagnostics"] == f"the quota {quota} is used up, try again in {seconds} s"
    assert answer.headers["retry-after"] == str(seconds)
    assert answer.headers["cache-control"] == "no-store"


def refusals(service: RunningService) -> dict[str, float]:
    async def text() -> bytes:
        return service.services.metrics.text("")[0]

    return {
        sample.labels["quota"]: sample.value
        for family in parser.text_string_to_metric_families(service.call(text()).decode())
        for sample in family.samples
        if sample.name == "fhirpub_quota_refusals_total"
    }


def test_a_client_is_limited_and_the_others_are_not(serve: Serve, clock: HandClock) -> None:
    service = serve(client_requests_per_minute=3)
    lab, stranger = service.integrator(), service.integrator("Other")
    colleague = service.another_client(lab.tenant)

    assert statuses(lab, 5) == [404, 404, 404, 429, 429]
    check_refused(lab.get(UNKNOWN), "client_requests_per_minute", seconds=40)
    assert statuses(colleague, 4) == [404, 404, 404, 429]
    assert statuses(stranger, 4) == [404, 404, 404, 429]
    assert refusals(service) == {"client_requests_per_minute": 5}

    clock.forward(seconds=40)
    assert statuses(lab, 4) == [404, 404, 404, 429]


def test_the_clients_of_a_tenant_share_its_limit(serve: Serve) -> None:
    service = serve(tenant_requests_per_minute=5)
    lab, stranger = service.integrator(), service.integrator("Other")
    colleague = service.another_client(lab.tenant)

    assert statuses(lab, 3) == [404] * 3
    assert statuses(colleague, 3) == [404, 404, 429]
    check_refused(lab.get(UNKNOWN), "tenant_requests_per_minute", seconds=40)
    assert statuses(stranger, 5) == [404] * 5


def test_an_override_limits_one_tenant_only(serve: Serve) -> None:
    service = serve()
    lab, stranger = service.integrator(), service.integrator("Other")
    override = QuotaOverride(lab.tenant.id, "tenant_requests_per_minute", 2)

    service.call(service.services.store.put_quota_overrides([override]))

    assert wait_until(lambda: lab.get(UNKNOWN).status == 429, 30)
    answer = stranger.get(UNKNOWN)
    assert answer.status == 404
    assert not FIELDS & {*answer.headers}


def test_every_response_states_what_is_left_of_the_minute(serve: Serve, clock: HandClock) -> None:
    service = serve(client_requests_per_minute=6, tenant_requests_per_minute=9)
    lab = service.integrator()
    created = lab.register(register_body("A"))
    path = created.headers["location"].partition("/_history")[0]
    update = {"resourceType": "DiagnosticReport", "status": "amended"}
    answers = [
        created,
        lab.patch(path, update),
        lab.get(path),
        lab.get(path, If_None_Match='W/"2"'),
        lab.register(b"no json"),
        lab.request("HEAD", path),
        lab.get(path),
    ]

    assert [answer.status for answer in answers] == [201, 204, 200, 304, 400, 200, 429]
    policy = '"client_requests_per_minute";q=6;w=60, "tenant_requests_per_minute";q=9;w=60'
    assert {answer.headers["ratelimit-policy"] for answer in answers} == {policy}
    rest = [re.findall(r";r=([0-9]+);t=40\b", answer.headers["ratelimit"]) for answer in answers]
    assert rest == [[str(max(0, 5 - n)), str(8 - min(n, 5))] for n in range(7)]

    clock.forward(seconds=15)
    assert lab.get(path).headers["ratelimit"].count(";t=25") == 2


def test_without_a_limit_per_minute_no_response_states_one(serve: Serve) -> None:
    service = serve(client_bytes_per_day=10**9, tenant_requests_at_a_time=50)

    assert not FIELDS & {*service.integrator().get(UNKNOWN).headers}


def test_what_needs_no_token_and_the_metadata_are_not_counted(serve: Serve) -> None:
    service = serve(client_requests_per_minute=2, tenant_bytes_per_day=10)
    lab = service.integrator()
    paths = ["/health/live", "/health/ready", "/.well-known/jwks.json", "/openapi.json"]

    for _ in range(4):
        lab.log_in()
        assert [lab.get(path).status for path in (*paths, "/fhir/r4/metadata")] == [200] * 5

    assert statuses(lab, 3) == [404, 404, 429]


def begun(lab: Integrator, body: bytes) -> socket.socket:
    """Return a connection on which a registration has begun."""
    lines = [
        f"POST {BASE}/$register HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {lab.token}",
        "Content-Type: application/fhir+json",
        f"Content-Length: {len(body)}",
    ]
    connection = socket.create_connection(("127.0.0.1", lab.service.port), timeout=20)
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + body[:10])
    return connection


def test_requests_in_progress_are_limited_until_they_end(serve: Serve) -> None:
    service = serve(client_requests_at_a_time=2)
    lab = service.integrator()
    body = dumps(register_body("slow"))

    with closing(begun(lab, body)) as one, closing(begun(lab, body)) as two:
        # A request of ours that is counted before them would have one of them refused.
        assert wait_until(lambda: len(service.services.in_flight) == 2)
        check_refused(lab.get(UNKNOWN), "client_requests_at_a_time", seconds=1)
        assert service.another_client(lab.tenant).get(UNKNOWN).status == 404
        one.sendall(body[10:])
        assert b" 201 " in one.recv(1000)
        assert wait_until(lambda: lab.get(UNKNOWN).status == 404)
        two.close()

    assert wait_until(lambda: {*statuses(lab, 3)} == {404})
    with closing(begun(lab, body)):
        assert wait_until(lambda: len(service.services.in_flight) == 1)
        assert lab.get(UNKNOWN).status == 404


def test_a_body_beyond_the_bytes_of_a_day_is_refused(serve: Serve, clock: HandClock) -> None:
    body = dumps(register_body("A", presentedForm=[document(b"%PDF-" + b"x" * 3000)]))
    service = serve(tenant_bytes_per_day=2 * len(body) + 10)
    lab, stranger = service.integrator(), service.integrator("Other")
    colleague = service.another_client(lab.tenant)

    assert [lab.register(body).status, colleague.register(body).status] == [201, 201]
    check_refused(lab.register(body), "tenant_bytes_per_day", seconds=86_380)
    assert lab.get(UNKNOWN).status == 404
    assert lab.register(b"{}").status == 400
    assert stranger.register(body).status == 201

    clock.forward(seconds=86_380)
    lab.log_in()
    assert lab.register(body).status == 201


def test_a_chunked_body_is_refused_when_its_bytes_are_too_many(serve: Serve) -> None:
    body = dumps(register_body("A", presentedForm=[document(b"%PDF-" + b"x" * 200_000)]))
    service = serve(client_bytes_per_day=150_000)
    lab = service.integrator()
    lines = (
        f"Authorization: Bearer {lab.token}",
        "Content-Type: application/fhir+json",
        "Transfer-Encoding: chunked",
    )

    refused = raw.request(service, f"POST {BASE}/$register", *lines, body=raw.chunked(body))

    check_refused(refused.answer, "client_bytes_per_day", seconds=86_380)
    again = raw.request(service, f"POST {BASE}/$register", *lines, body=raw.chunked(b"{}"))
    assert again.answer.status == 429
    assert lab.get(BASE).json["total"] == 0


def test_only_what_is_created_counts_as_a_registration(serve: Serve, clock: HandClock) -> None:
    service = serve(tenant_registrations_per_day=2)
    lab, stranger = service.integrator(), service.integrator("Other")
    first = lab.register(register_body("A"))
    assert lab.register(b"{}").status == 400
    assert [lab.register(register_body("A")).body for _ in range(3)] == [first.body] * 3
    trial = lab.request("POST", f"{BASE}/$validate", register_body("T"))
    assert trial.status == 200
    assert service.another_client(lab.tenant).register(register_body("B")).status == 201

    check_refused(lab.register(register_body("C")), "tenant_registrations_per_day", seconds=86_380)

    assert lab.register(register_body("A")).body == first.body
    assert lab.get(BASE).json["total"] == 2
    path = first.headers["location"].partition("/_history")[0]
    update = {"resourceType": "DiagnosticReport", "status": "amended"}
    assert lab.patch(path, update).status == 204
    assert stranger.register(register_body("C")).status == 201
    assert refusals(service) == {"tenant_registrations_per_day": 1}
    clock.forward(seconds=86_380)
    lab.log_in()
    assert lab.register(register_body("C")).status == 201


def check_full(answer: Answer) -> None:
    (issue,) = answer.issues
    assert answer.status == 403
    assert issue["code"] == "business-rule"
    assert issue["diagnostics"].startswith("the quota tenant_stored_bytes is used up")
    assert not {"retry-after", "www-authenticate"} & {*answer.headers}


def test_a_tenant_stores_no_more_than_its_quota(serve: Serve) -> None:
    body = register_body("A", presentedForm=[document(b"%PDF-" + b"x" * 70_000)])
    service = serve(tenant_stored_bytes=85_000)
    lab, stranger = service.integrator(), service.integrator("Other")
    first = lab.register(body)
    path = first.headers["location"].partition("/_history")[0]
    large = register_body("B", presentedForm=[document(b"%PDF-" + b"y" * 70_000)])

    check_full(lab.register(large))
    check_full(service.another_client(lab.tenant).register(large))

    assert lab.register(body).body == first.body
    assert lab.get(path).status == 200
    assert stranger.register(large).status == 201
    update = {"resourceType": "DiagnosticReport", "status": "amended"}
    # Bytes that were being stored while the store was asked count twice until it is asked again.
    assert wait_until(lambda: lab.patch(path, update).status == 204)
    assert [lab.patch(path, update).status for _ in range(20)][-1] == 403
    check_full(lab.patch(path, update))
    assert refusals(service)["tenant_stored_bytes"] >= 4


def test_a_large_document_that_is_stored_already_takes_no_more(serve: Serve) -> None:
    attached = [document(b"%PDF-" + b"x" * 70_000)]
    service = serve(tenant_stored_bytes=200_000)
    lab = service.integrator()

    def is_registered(name: str) -> bool:
        return lab.register(register_body(name, presentedForm=attached)).status == 201

    # What a service knows only from the store may be late by two seconds.
    assert all(wait_until(lambda n=n: is_registered(f"R-{n}")) for n in range(5))  # type: ignore[misc]


def test_a_small_document_counts_with_each_version_that_holds_it(serve: Serve) -> None:
    body = register_body("A", presentedForm=[document(b"%PDF-" + b"x" * 30_000)])
    service = serve(tenant_stored_bytes=70_000)
    lab = service.integrator()
    path = lab.register(body).headers["location"].partition("/_history")[0]
    update = {"resourceType": "DiagnosticReport", "status": "amended"}

    assert wait_until(lambda: lab.patch(path, update).status == 204)  # counted once
    check_full(lab.patch(path, update))


def test_services_on_one_store_share_what_a_client_may_send(serve: Serve) -> None:
    one, two = (serve(client_requests_per_minute=20) for _ in range(2))
    lab = one.integrator()
    there = at(lab, two)
    there.log_in()

    assert statuses(lab, 15) == [404] * 15
    assert statuses(there, 1) == [404]
    assert wait_until(lambda: use(two, lab.client_id).requests.others == 15)

    assert statuses(there, 6) == [404] * 4 + [429] * 2
    assert wait_until(lambda: use(one, lab.client_id).requests.others == 5)
    assert statuses(lab, 1) == [429]


def test_services_on_one_store_share_the_registrations_of_a_day(serve: Serve) -> None:
    one, two = (serve(tenant_registrations_per_day=4) for _ in range(2))
    lab = one.integrator()
    there = at(lab, two)
    there.log_in()
    assert [lab.register(register_body(f"A-{n}")).status for n in range(3)] == [201] * 3
    there.get(UNKNOWN)
    assert wait_until(lambda: use(two, lab.tenant.id).registrations.others == 3)

    assert [there.register(register_body(f"B-{n}")).status for n in range(3)] == [201, 429, 429]


def test_a_service_that_starts_knows_what_was_used_today(serve: Serve) -> None:
    one = serve(client_bytes_per_day=4_000)
    lab = one.integrator()
    lab.request("POST", f"{BASE}/$validate", b"x" * 3_900)
    assert wait_until(lambda: use(one, lab.client_id).bytes.sent == 3_900)

    two = serve(client_bytes_per_day=4_000)
    there = at(lab, two)
    there.log_in()
    there.get(UNKNOWN)

    assert wait_until(lambda: there.request("POST", f"{BASE}/$validate", b"x" * 101).status == 429)


def test_a_refusal_names_no_figure_of_others(serve: Serve) -> None:
    service = serve(tenant_requests_per_minute=7)
    lab, stranger = service.integrator(), service.integrator("Other")
    statuses(stranger, 7)
    statuses(lab, 7)

    told: Any = loads(lab.get(UNKNOWN).body)

    text = dumps(told).decode()
    assert stranger.tenant.id not in text
    assert lab.tenant.id not in text
    assert re.findall(r"[0-9]+", told["issue"][0]["diagnostics"]) == ["40"]
