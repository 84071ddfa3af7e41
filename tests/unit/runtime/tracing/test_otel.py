"""Which spans are sent, under which names, and what each has."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode, TraceFlags

from fhirpub import __version__
from fhirpub.runtime.tracing import otel
from fhirpub.runtime.tracing.context import TraceContext
from fhirpub.runtime.tracing.otel import OtelTracer, _Exporter
from fhirpub.runtime.tracing.spans import Span

PARENT = TraceContext("a" * 32, "b" * 16, is_sampled=True)


class Collector(SpanExporter):
    """Keeps what is exported."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []
        self.is_shut = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.is_shut = True


class Traced:
    """A tracer whose spans are exported at once."""

    def __init__(self, ratio: float) -> None:
        self.collector = Collector()
        self.tracer = OtelTracer(endpoint="http://127.0.0.1:9/", sample_ratio=ratio)
        self.tracer.processor.shutdown()  # type: ignore[no-untyped-call]
        processor: Any = SimpleSpanProcessor(_Exporter(self.collector))
        self.tracer.processor = processor

    def start(self, parent: TraceContext | None = None, kind: Any = "server") -> Span:
        span = self.tracer.start("GET", kind, parent)
        assert span is not None
        return span


@pytest.fixture
async def traced(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Traced]:
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)
    made = Traced(1.0)
    yield made
    await made.tracer.close()


async def test_a_span_without_a_parent_begins_a_trace(traced: Traced) -> None:
    span = traced.start()
    span.end({})

    (sent,) = traced.collector.spans
    assert sent.parent is None
    assert sent.context is not None
    assert f"{sent.context.trace_id:032x}" == span.context.trace_id
    assert f"{sent.context.span_id:016x}" == span.context.span_id
    assert span.context.is_sampled
    assert sent.context.trace_flags == TraceFlags.SAMPLED


async def test_a_span_goes_on_with_the_trace_of_its_parent(traced: Traced) -> None:
    span = traced.start(PARENT)
    span.end({})

    (sent,) = traced.collector.spans
    assert span.context.trace_id == PARENT.trace_id
    assert span.context.span_id != PARENT.span_id
    assert sent.parent is not None
    assert (f"{sent.parent.span_id:016x}", sent.parent.is_remote) == (PARENT.span_id, True)


async def test_a_trace_that_is_not_sampled_is_not_sent(traced: Traced) -> None:
    parent = TraceContext("a" * 32, "b" * 16, is_sampled=False)

    assert traced.tracer.start("GET", "server", parent) is None


async def test_with_a_ratio_of_zero_only_the_traces_of_others_are_sent() -> None:
    traced = Traced(0.0)

    assert traced.tracer.start("GET", "server", None) is None
    assert traced.tracer.start("GET", "server", PARENT) is not None


@pytest.mark.parametrize(("ratio", "is_sent"), [(0.0, False), (0.25, False), (0.26, True)])
async def test_a_trace_is_sent_below_its_share(ratio: float, *, is_sent: bool) -> None:
    made = Traced(ratio)
    drawn = Random()
    drawn.random = lambda: ratio if ratio < 0.26 else 0.25  # type: ignore[method-assign]
    made.tracer._random = drawn

    assert (made.tracer.start("GET", "server", None) is not None) is is_sent
    await made.tracer.close()


async def test_a_part_of_the_traces_is_sent_by_the_ratio() -> None:
    tracer = Traced(0.3).tracer
    tracer._random.seed(7)

    begun = [tracer.start("GET", "server", None) for _ in range(1_000)]

    assert 250 < sum(span is not None for span in begun) < 350


async def test_ids_of_spans_have_the_lengths_that_headers_need(traced: Traced) -> None:
    traced.tracer._random.seed(7)

    contexts = [traced.start().context for _ in range(100)]

    assert {len(one.trace_id) for one in contexts} == {32}
    assert {len(one.span_id) for one in contexts} == {16}
    assert len({one.trace_id for one in contexts}) == 100
    assert len({one.span_id for one in contexts}) == 100


async def test_no_id_of_a_span_is_zero(traced: Traced) -> None:
    class Zero(Random):
        def getrandbits(self, _bits: int, /) -> int:
            return 0

    traced.tracer._random = Zero()

    context = traced.start().context

    assert (context.trace_id, context.span_id) == ("1".zfill(32), "1".zfill(16))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("server", SpanKind.SERVER),
        ("producer", SpanKind.PRODUCER),
        ("client", SpanKind.CLIENT),
    ],
)
async def test_a_span_has_its_name_and_its_kind(
    traced: Traced, kind: str, expected: SpanKind
) -> None:
    traced.start(kind=kind).end({})

    (sent,) = traced.collector.spans
    assert (sent.name, sent.kind) == ("GET", expected)


@pytest.mark.parametrize(
    ("failed", "status"), [(True, StatusCode.ERROR), (False, StatusCode.UNSET)]
)
async def test_a_span_has_what_is_known_at_its_end(
    traced: Traced, status: StatusCode, *, failed: bool
) -> None:
    traced.start().end({"http.status": 500}, failed=failed)

    (sent,) = traced.collector.spans
    assert dict(sent.attributes or {}) == {"http.status": 500}
    assert sent.status.status_code is status
    assert sent.start_time is not None
    assert sent.end_time is not None
    assert 0 < sent.start_time <= sent.end_time


async def test_a_step_is_a_span_below_the_request(traced: Traced) -> None:
    span = traced.start(PARENT)
    with span.step("read"):
        pass

    (sent,) = traced.collector.spans
    assert (sent.name, sent.kind) == ("read", SpanKind.INTERNAL)
    assert sent.parent is not None
    assert (f"{sent.parent.span_id:016x}", sent.parent.is_remote) == (
        span.context.span_id,
        False,
    )
    assert sent.parent.trace_id == int(PARENT.trace_id, 16)


async def test_a_step_that_fails_ends_and_notes_no_exception(traced: Traced) -> None:
    with pytest.raises(ValueError, match="secret"), traced.start().step("read"):
        raise ValueError("secret")

    (sent,) = traced.collector.spans
    assert not sent.events
    assert sent.status.description is None
    assert "secret" not in sent.to_json()


async def test_spans_name_the_service_and_its_release(traced: Traced) -> None:
    traced.start().end({})

    (sent,) = traced.collector.spans
    assert sent.resource.attributes[SERVICE_NAME] == "fhirpub"
    assert sent.resource.attributes[SERVICE_VERSION] == __version__
    assert sent.instrumentation_scope is not None
    assert (sent.instrumentation_scope.name, sent.instrumentation_scope.version) == (
        "fhirpub",
        __version__,
    )


def test_the_name_of_the_service_may_come_from_a_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "fhirpub-lab")

    assert _Exporter(Collector())._resource.attributes[SERVICE_NAME] == "fhirpub-lab"


@pytest.mark.parametrize(
    "endpoint", ["http://collector.example:4318", "http://collector.example:4318/"]
)
async def test_the_collector_has_the_path_of_traces(endpoint: str) -> None:
    tracer = OtelTracer(endpoint=endpoint, sample_ratio=0.0)
    exporter: Any = tracer.processor._batch_processor._exporter

    assert exporter._inner._endpoint == "http://collector.example:4318/v1/traces"
    await tracer.close()


async def test_what_is_closed_has_shut_its_exporter() -> None:
    traced = Traced(1.0)

    await asyncio.wait_for(traced.tracer.close(), 30)

    assert traced.collector.is_shut


async def test_a_collector_that_is_away_keeps_no_process(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel, "_CLOSE_SECONDS", 0.001)
    returns = threading.Event()
    processor, away = traced.tracer.processor, SimpleNamespace(shutdown=returns.wait)
    traced.tracer.processor = away  # type: ignore[assignment]
    try:
        await asyncio.wait_for(traced.tracer.close(), 30)  # although the collector is still away
    finally:
        returns.set()
        traced.tracer.processor = processor
