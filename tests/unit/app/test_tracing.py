"""The steps of a request in its store are timed if the request is traced."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.app import tracing
from fhirpub.app.tracing import open_tracer
from fhirpub.config.monitoring import TracingConfig
from fhirpub.errors import ConfigurationError
from fhirpub.runtime.tracing.spans import Tracer, current_span
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import LAB, a_version
from tests.unit.runtime.tracing.traces import SteppedSpan


class Noted(Tracer):
    """A tracer that knows whether it is closed."""

    closed = False

    def start(self, name: str, kind: Any, parent: Any) -> None:
        """Begin no span."""

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> Noted:
    made = Noted()
    monkeypatch.setattr(tracing, "_create_tracer", lambda _config: made)
    return made


@pytest.fixture
def span() -> Iterator[SteppedSpan]:
    made = SteppedSpan()
    token = current_span.set(made)
    yield made
    current_span.reset(token)


async def test_without_tracing_the_store_is_left_as_it_is(store: SqliteStore) -> None:
    async with open_tracer(TracingConfig(), store) as tracer:
        assert tracer is None
        assert "add" not in vars(store)


async def test_reads_and_commits_are_steps_of_the_request(
    store: SqliteStore, tracer: Noted, span: SteppedSpan
) -> None:
    version = a_version()
    async with open_tracer(TracingConfig(enabled=True), store) as opened:
        assert opened is tracer
        await store.add(LAB, version)
        assert await store.latest(LAB, version.id) == version
        assert await store.version(LAB, version.id, 1) == version
        assert await store.latest(LAB, "none") is None
        await store.tenants()

    assert span.steps == ["commit", "read", "read", "read"]
    assert span.running == 0


@pytest.mark.usefixtures("tracer")
async def test_what_belongs_to_no_request_is_no_step(store: SqliteStore) -> None:
    version = a_version()
    async with open_tracer(TracingConfig(enabled=True), store):
        await store.add(LAB, version)

        assert await store.latest(LAB, version.id) == version


async def test_a_step_ends_when_its_call_does(span: SteppedSpan) -> None:
    async def fail(word: str, *, more: int) -> None:
        assert (word, more, span.running) == ("x", 5, 1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await tracing._as_step("read", fail)("x", more=5)

    assert (span.steps, span.running) == (["read"], 0)


async def test_a_tracer_is_closed_also_when_the_process_fails(
    store: SqliteStore, tracer: Noted
) -> None:
    async def use() -> None:
        async with open_tracer(TracingConfig(enabled=True), store):
            assert not tracer.closed
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await use()

    assert tracer.closed


async def test_what_is_not_installed_is_named(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fhirpub.runtime.tracing.otel", None)

    with pytest.raises(ConfigurationError, match=r"pip install 'fhirpub\[otel\]'"):
        async with open_tracer(TracingConfig(enabled=True), store):
            pass


def test_spans_are_sent_to_the_collector_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(OtelTracer=lambda **given: given)
    monkeypatch.setitem(sys.modules, "fhirpub.runtime.tracing.otel", module)
    config = TracingConfig(enabled=True, endpoint="http://c:4318", sample_ratio=0.5)

    made: object = tracing._create_tracer(config)

    assert made == {"endpoint": "http://c:4318", "sample_ratio": 0.5}
