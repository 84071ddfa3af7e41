"""A service is built of the parts that its settings ask for."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.app import compute, services
from fhirpub.app.context import ignore_new_events
from fhirpub.app.services import (
    _compute_processes,
    _create_audit,
    _sending,
    _sends,
    _start_tokens,
    create_sender,
)
from fhirpub.config.settings import Config
from fhirpub.runtime.metrics import Metrics
from fhirpub.testing.clock import HandClock
from fhirpub.testing.service import RunningService
from fhirpub.webhooks.dispatch.thread import WorkerThread


def configured(group: str, **changes: Any) -> Config:
    config = Config()
    return replace(config, **{group: replace(getattr(config, group), **changes)})


@pytest.mark.parametrize(
    ("enabled", "in_server", "expected"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_a_process_that_serves_sends_if_both_settings_say_so(
    *, enabled: bool, in_server: bool, expected: bool
) -> None:
    config = configured("webhooks", enabled=enabled, dispatch_in_server=in_server)

    assert _sends(config) is expected


def test_where_another_process_sends_nothing_is_opened_for_it() -> None:
    config = configured("webhooks", dispatch_in_server=False)
    never: Any = pytest.fail

    assert _sending(config, never, never, never, never) is None


def test_webhooks_are_sent_in_a_thread_if_the_engine_can_be_used_there() -> None:
    store: Any = SimpleNamespace(for_other_loop=object)
    never: Any = pytest.fail

    assert isinstance(_sending(Config(), store, never, never, never), WorkerThread)


def test_webhooks_are_sent_on_the_loop_of_the_service_otherwise() -> None:
    made: list[Any] = []
    store: Any = SimpleNamespace(for_other_loop=lambda: None)
    sender: Any = object()

    def create(given: Any, *, sender: Any) -> Any:
        made.append((given, sender))
        return "worker"

    never: Any = pytest.fail
    worker: object = _sending(Config(), store, sender, never, create)
    assert worker == "worker"
    assert made == [(store, sender)]


class Own:
    """A store for the thread that notes when it is used."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    async def start(self) -> None:
        self._notes.append("start")

    async def stop(self) -> None:
        self._notes.append("stop")


async def test_the_store_of_the_thread_is_stopped_also_if_nothing_can_be_sent() -> None:
    notes: list[str] = []
    store: Any = SimpleNamespace(for_other_loop=lambda: Own(notes))

    def fail() -> Any:
        raise ValueError("no sink")

    thread: Any = _sending(Config(), store, None, fail, pytest.fail)  # type: ignore[arg-type]

    with pytest.raises(ValueError, match="no sink"):
        async with thread._create():
            pass
    assert notes == ["start", "stop"]


async def test_tokens_are_read_before_they_are_asked_for_and_end_with_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes: list[str] = []

    class Tokens:
        def __init__(self, **given: Any) -> None:
            notes.append(given["issuer"])

        async def start(self) -> None:
            notes.append("started")

        async def stop(self) -> None:
            notes.append("stopped")

    monkeypatch.setattr(services, "Tokens", Tokens)
    config, sender = Config(), create_sender(Config(), Metrics(serves=False, sends=True), int)
    async with AsyncExitStack() as stack:
        await _start_tokens(config, SimpleNamespace(), sender, HandClock(), stack)  # type: ignore[arg-type]
        assert notes == [config.issuer, "started"]

    assert notes[2:] == ["stopped"]


def test_without_an_audit_trail_none_is_made() -> None:
    never: Any = None

    assert _create_audit(configured("audit", enabled=False), never, never, HandClock()) is None


async def test_without_compute_processes_there_is_no_pool() -> None:
    async with AsyncExitStack() as stack:
        assert _compute_processes(configured("limits", compute_processes=0), stack) is None


async def test_a_pool_is_closed_with_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[Any] = []

    class Pool:
        def __init__(self, module: str, config: Config, *, max_processes: int) -> None:
            notes.append((module, config, max_processes))

        async def close(self) -> None:
            notes.append("closed")

    monkeypatch.setattr(services, "ProcessPool", Pool)
    config = configured("limits", compute_processes=3)
    async with AsyncExitStack() as stack:
        assert isinstance(_compute_processes(config, stack), Pool)
        assert notes == [(compute.MODULE, config, 3)]

    assert notes[1:] == ["closed"]


async def test_a_sender_counts_the_addresses_that_it_may_not_reach() -> None:
    metrics = Metrics(serves=False, sends=True)
    sender: Any = create_sender(Config(), metrics, HandClock())

    sender._blocked()

    found = {one.name: one.value for metric in metrics.collect() for one in metric.samples}
    assert [value for name, value in found.items() if "blocked" in name and "total" in name] == [1]


def test_what_a_service_is_built_of_follows_from_its_settings(service: RunningService) -> None:
    built, limits = service.services, service.config.limits
    memory: list[Any] = [built.request_memory, built.response_memory, built.batch_memory]

    assert [one._max for one in memory] == [
        limits.large_bodies_bytes,
        limits.large_answers_bytes,
        8 * service.config.batch.answer_bytes,
    ]
    assert {one._patience for one in memory} == {limits.body_seconds}
    assert [one._largest for one in memory] == [limits.request_bytes, 0, 0]


def test_interactions_reach_the_store_and_wake_what_sends(service: RunningService) -> None:
    built = service.services

    assert built.context.resources is built.store
    assert built.sending is not None
    assert built.context.added == built.sending.ring
    assert built.context.added is not ignore_new_events


def test_a_service_with_an_audit_trail_declares_its_searches(service: RunningService) -> None:
    assert service.services.audit is not None
    assert b'"AuditEvent"' in service.services.statement[1]


def test_the_openapi_document_is_made_once_all_is_built(service: RunningService) -> None:
    etag, document = service.services.openapi

    assert etag
    assert b"/oauth/token" in document


def test_requests_under_way_are_counted_when_the_metrics_are_read(
    service: RunningService,
) -> None:
    built = service.services

    def under_way() -> float:
        samples = [one for metric in built.metrics.collect() for one in metric.samples]
        (found,) = [one.value for one in samples if one.name == "fhirpub_requests_under_way"]
        return found

    before = under_way()
    built.in_flight.add("a request")
    try:
        assert under_way() == before + 1
    finally:
        built.in_flight.discard("a request")


def test_counts_of_quotas_are_exchanged_of_the_quotas_that_requests_are_counted_by(
    service: RunningService,
) -> None:
    exchange: Any = service.services.quota_exchange

    assert exchange._quotas is service.services.quotas


def test_delays_of_the_loop_are_shown_when_the_metrics_are_read(service: RunningService) -> None:
    built = service.services
    lag: Any = built.loop_lag
    before = [*lag._delays]
    lag._delays.clear()
    lag._delays.extend(float(seconds) for seconds in range(1_000, 1_200))

    try:
        samples = [one for metric in built.metrics.collect() for one in metric.samples]
    finally:
        lag._delays.clear()
        lag._delays.extend(before)

    found = {one.name: one.value for one in samples}
    assert found["fhirpub_loop_lag_max_seconds"] == 1_199
    assert 1_195 <= found["fhirpub_loop_lag_p99_seconds"] < 1_199
