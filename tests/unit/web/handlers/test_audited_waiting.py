"""Responses that wait for their records, and what becomes of them if these are not kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from fhirpub.config.audit import AuditConfig
from fhirpub.config.settings import AuthConfig, Config
from fhirpub.errors import NotPermitted, StoreUnavailable
from fhirpub.fhir.strict_json import dumps
from fhirpub.storage.store import Store
from fhirpub.testing.service import Integrator, RunningService
from tests import raw
from tests.audit_trail import records_of_tenant
from tests.bodies import register_body
from tests.faults.broken_stores import StoreWrapper, opening
from tests.log_lines import caught_lines
from tests.unit.web.handlers.asking import REPORTS, asked, running


class KeepsSome(StoreWrapper):
    """A store that keeps no audit records while it is full."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.is_full = False

    async def add_audit_records(self, records: Mapping[str, bytes]) -> None:
        if records and self.is_full:
            raise StoreUnavailable("full")
        await self.inner.add_audit_records(records)


@pytest.fixture(scope="module")
def careful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose responses wait for their records, and in which scopes count."""
    config = Config(audit=AuditConfig(reads="before_answer"), auth=AuthConfig(enforce_scopes=True))
    folder = tmp_path_factory.mktemp("waiting")
    with RunningService(folder, config=config, open_store=opening(KeepsSome)) as service:
        yield service


@pytest.fixture
def records_store(careful: RunningService) -> Iterator[KeepsSome]:
    """The store of that service, which has room when the test begins and ends."""
    store = careful.services.store
    assert isinstance(store, KeepsSome)
    yield store
    store.is_full = False


@pytest.fixture
def waiting(careful: RunningService) -> Integrator:
    """A client of a new tenant of that service."""
    return careful.integrator(scopes=("system/*.cruds", "webhooks.read", "webhooks.write"))


def test_a_read_that_waits_for_its_record_is_recorded_once(waiting: Integrator) -> None:
    assert waiting.get(REPORTS).status == 200

    assert [record["status"] for record in records_of_tenant(waiting)] == [200]


def test_a_read_that_cannot_be_recorded_is_not_answered(
    waiting: Integrator, records_store: KeepsSome
) -> None:
    records_store.is_full = True

    answer = waiting.get(REPORTS)

    assert (answer.status, answer.problems) == (503, ["store-unavailable"])


def test_a_change_that_cannot_be_announced_does_not_happen(
    waiting: Integrator, records_store: KeepsSome
) -> None:
    records_store.is_full = True
    path, kind = "/webhooks/v1/endpoints", {"Content-Type": "application/json"}

    refused = waiting.request("POST", path, {"url": "pull:a"}, kind)
    records_store.is_full = False

    assert refused.status == 503
    assert waiting.get(path).json == {"endpoints": []}


def test_what_a_change_holds_is_held_until_it_is_made(lab: Integrator) -> None:
    steps: list[str] = []

    @contextmanager
    def admit() -> Iterator[None]:
        steps.append("admitted")
        yield
        steps.append("released")

    async def change(_endpoint_id: str) -> None:
        await asyncio.sleep(0)
        steps.append("changed")

    async def made() -> None:
        async with asked(lab, "POST", "/webhooks/v1/endpoints/x/verify") as one:
            handler: Any = one.handler
            handler.admit, handler.post = admit, change
            await handler.dispatch()

    running(lab).call(made())
    assert steps == ["admitted", "changed", "released"]


def test_a_large_answer_waits_for_its_record_too(
    waiting: Integrator, records_store: KeepsSome
) -> None:
    location = waiting.register(register_body(uuid4().hex, conclusion="x " * 70_000)).headers[
        "location"
    ]
    records_store.is_full = True

    assert waiting.get(location).status == 503


def test_a_refusal_that_waits_for_its_record_is_final(careful: RunningService) -> None:
    owner = careful.integrator(scopes=("system/*.cruds",))
    reader = careful.another_client(owner.tenant, scopes=("system/*.rs",))
    reader.get(REPORTS)  # so that the token is known
    body = dumps(register_body(uuid4().hex))
    token, size = f"Authorization: Bearer {reader.token}", f"Content-Length: {len(body)}"
    lines = (token, "Content-Type: application/fhir+json", "Expect: 100-continue", size)

    talk = raw.request(careful, f"POST {REPORTS}/$register", *lines, body=body)

    assert (talk.statuses, talk.closed) == ([403], True)
    assert "entry" not in reader.get(REPORTS).json


def test_a_body_that_is_refused_amid_it_leaves_one_line_once_it_is_recorded(
    waiting: Integrator,
) -> None:
    waiting.get(REPORTS)
    token = f"Authorization: Bearer {waiting.token}"
    lines = ("Content-Type: application/fhir+json", "Content-Length: 999999999")
    with caught_lines() as caught:
        talk = raw.request(
            waiting.service, f"POST {REPORTS}/$register", token, "X-Request-Id: large", *lines
        )
        line = caught.of("large")

    assert talk.statuses == [413]
    assert (line["event"], line["status"]) == ("refused", 413)
    assert records_of_tenant(waiting)[-1]["status"] == 413


def test_a_read_is_not_answered_if_too_many_records_wait(lab: Integrator) -> None:
    async def ask() -> int:
        async with asked(lab, "GET", REPORTS) as one:
            audit = one.handler.services.audit
            assert audit is not None

            def refuse(*_arguments: Any) -> None:
                raise StoreUnavailable("too many")

            before, audit.note = audit.note, refuse  # type: ignore[method-assign,assignment]
            try:
                one.handler.run()
                await one.exchange.wait_ended()
            finally:
                audit.note = before  # type: ignore[method-assign]
            return one.exchange.status

    assert running(lab).call(ask()) == 503


def test_a_refusal_of_another_kind_is_not_counted_as_one_without_a_token(lab: Integrator) -> None:
    counted: list[Any] = []

    async def refused() -> int:
        async with asked(lab, "GET", REPORTS) as one:
            audit = one.handler.services.audit
            assert audit is not None
            del one.handler.caller
            before = audit.count_refusal
            audit.count_refusal = lambda *what, **_more: counted.append(what)  # type: ignore[method-assign]
            try:
                one.handler.fail(NotPermitted())
            finally:
                audit.count_refusal = before  # type: ignore[method-assign]
            return one.exchange.status

    assert running(lab).call(refused()) == 403
    assert counted == []


def test_a_record_has_the_address_that_a_trusted_proxy_names(lab: Integrator) -> None:
    async def shared() -> bytes:
        services = running(lab).services
        server = replace(services.config.server, trusted_proxies=["127.0.0.1"])
        services = replace(services, config=replace(services.config, server=server))
        given = {"X-Forwarded-For": "198.51.100.7"}
        async with asked(lab, "GET", REPORTS, given, services=services) as one:
            return one.handler._shared(200)

    assert b'"address":"198.51.100.7"' in running(lab).call(shared())
