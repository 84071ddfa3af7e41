"""What each process of a service is given, and what keeps one from being started."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.app import processes
from fhirpub.app.processes import _worker_config, dispatch, serve
from fhirpub.config.monitoring import MetricsConfig
from fhirpub.config.settings import Config, ServerConfig
from fhirpub.errors import ConfigurationError


@pytest.mark.parametrize(
    ("port", "number", "expected"), [(9_000, 0, 9_000), (9_000, 3, 9_003), (0, 0, 0), (0, 3, 0)]
)
def test_each_worker_serves_its_metrics_on_a_port_of_its_own(
    port: int, number: int, expected: int
) -> None:
    config = replace(Config(), metrics=MetricsConfig(port=port))

    worker = _worker_config(config, number)

    assert worker.metrics.port == expected
    assert replace(worker, metrics=config.metrics) == config


def test_nothing_is_dispatched_if_webhooks_are_not_to_be_sent() -> None:
    config = Config()
    config = replace(config, webhooks=replace(config.webhooks, enabled=False))

    with pytest.raises(ConfigurationError, match=r"^\[webhooks\] enabled: must be true"):
        dispatch(config, announce=pytest.fail)


def test_ports_that_contradict_each_other_are_refused_before_anything_listens() -> None:
    config = Config(
        server=ServerConfig(host="127.0.0.1", port=9_001, workers=2),
        metrics=MetricsConfig(host="127.0.0.1", port=9_000),
    )

    with pytest.raises(ConfigurationError, match=r"\[metrics\] port: must differ from that of"):
        serve(config, announce=pytest.fail)


def started(monkeypatch: pytest.MonkeyPatch, config: Config) -> tuple[Any, list[Any], int]:
    """Return what would be supervised of several workers, what is announced, and the status."""
    announced: list[str] = []
    found: list[Any] = []

    def supervise(count: int, work: Any, *, announce: Any) -> int:
        found.append((count, work, announce))
        announce()
        return 7

    monkeypatch.setattr(processes, "supervise", supervise)
    status = serve(config, announce=announced.append)
    return found[0], announced, status


def two_workers(port: int = 0) -> Config:
    return Config(server=ServerConfig(host="127.0.0.1", port=port, workers=2))


def test_several_workers_are_supervised_on_the_port_that_was_reserved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (count, _work, _announce), announced, status = started(monkeypatch, two_workers())

    assert (count, status) == (2, 7)
    assert announced[0].startswith("http://127.0.0.1:")
    assert not announced[0].endswith(":0")


def test_schemas_are_made_once_before_any_worker_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []

    def supervise(*_given: Any, **_named: Any) -> int:
        order.append("workers")
        return 0

    monkeypatch.setattr(processes, "own_schemas", lambda: order.append("schemas"))
    monkeypatch.setattr(processes, "supervise", supervise)

    assert serve(two_workers(), announce=pytest.fail) == 0

    assert order == ["schemas", "workers"]


def test_a_worker_that_replaces_another_makes_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[Any] = []
    monkeypatch.setattr(processes, "run_until_stopped", run.append)
    before: list[Any] = []

    def supervise(_count: int, work: Any, *, announce: Any) -> int:
        work(0, before.append)
        announce()
        work(1, before.append)
        return 0

    monkeypatch.setattr(processes, "supervise", supervise)
    serve(two_workers(), announce=before.append)

    creates = [one.keywords["open_store"].keywords["create"] for one in run]
    assert creates == [True, False]
    assert {one.keywords["shares_port"] for one in run} == {True}


def test_a_single_worker_is_not_supervised(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[Any] = []
    monkeypatch.setattr(processes, "run_until_stopped", run.append)
    monkeypatch.setattr(processes, "supervise", pytest.fail)
    config = Config(server=ServerConfig(host="127.0.0.1", port=0))

    assert serve(config, announce=pytest.fail) == 0
    assert [one.args for one in run] == [(config, pytest.fail)]
    assert run[0].keywords == {}
