"""Spans of OpenTelemetry, sent to a collector by OTLP over HTTP.

A thread of the SDK sends them. Its queue is bounded: what it has no room for is dropped, so that
a collector that is away costs no request anything. What the settings leave open, the variables
``OTEL_*`` decide, which the SDK reads itself.

A request only notes when its spans begin and end. They become spans of the SDK in the thread that
sends them, hundreds at a time: made one by one amid other work, each takes four times as long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from random import Random
from typing import cast

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from fhirpub import __version__
from fhirpub.runtime.tracing.context import TraceContext
from fhirpub.runtime.tracing.spans import Attributes, Kind, Span, Tracer

_KINDS = {
    "server": SpanKind.SERVER,
    "producer": SpanKind.PRODUCER,
    "client": SpanKind.CLIENT,
    "step": SpanKind.INTERNAL,
}
_CLOSE_SECONDS = 5.0
_EXPORT_SECONDS = 5.0
_PATH = "/v1/traces"
_FLAGS = TraceFlags(TraceFlags.SAMPLED)
_SAMPLED = SpanContext(1, 1, is_remote=False, trace_flags=_FLAGS)
_SCOPE = InstrumentationScope("fhirpub", __version__)


class _Noted(AbstractContextManager[None]):
    """What is noted of a span until it is sent; also the step that it is."""

    __slots__ = (
        "attributes",
        "begun",
        "ended",
        "failed",
        "kind",
        "name",
        "own",
        "parent",
        "tracer",
    )

    context = _SAMPLED
    """What the SDK's processor asks for: whether it is to be sent."""

    def __init__(
        self, tracer: OtelTracer, name: str, kind: str, own: TraceContext, parent: str
    ) -> None:
        self.tracer = tracer
        self.name = name
        self.kind = kind
        self.own = own
        self.parent = parent
        self.attributes: Attributes = {}
        self.failed = False
        self.begun = time.time_ns()
        self.ended = 0

    def end(self) -> None:
        self.ended = time.time_ns()
        self.tracer.processor.on_end(cast("ReadableSpan", self))

    def __exit__(self, *_exception: object) -> None:
        self.end()


class OtelSpan(Span):
    """A span that will be sent."""

    __slots__ = ("_noted", "_tracer", "context")

    def __init__(self, noted: _Noted, tracer: OtelTracer) -> None:
        self._noted = noted
        self._tracer = tracer
        self.context = noted.own

    def step(self, name: str) -> AbstractContextManager[object]:
        """Return what times a step of the work as a span below this one.

        It notes no exception: the text of one may hold the data that it failed on.
        """
        own = self._tracer.context_in(self.context.trace_id)
        return _Noted(self._tracer, name, "step", own, self.context.span_id)

    def end(self, attributes: Attributes, *, failed: bool = False) -> None:
        """End it, with what is known by then."""
        self._noted.attributes, self._noted.failed = attributes, failed
        self._noted.end()


class OtelTracer(Tracer):
    """Begins spans. Make it in the process that uses it: it starts a thread."""

    def __init__(self, *, endpoint: str, sample_ratio: float) -> None:
        """Send to the collector at a URL; without one, as the variables have it."""
        self._sample_ratio = sample_ratio
        self._random = Random()  # noqa: S311 - names and chooses traces, keeps no secret
        url = endpoint.rstrip("/") + _PATH if endpoint else None
        exporter = OTLPSpanExporter(endpoint=url, timeout=_EXPORT_SECONDS)
        self.processor = BatchSpanProcessor(_Exporter(exporter))

    def start(self, name: str, kind: Kind, parent: TraceContext | None) -> Span | None:
        """Begin a span; without a parent it begins a trace. None for a trace that is not sent."""
        if parent is None:
            if self._random.random() >= self._sample_ratio:
                return None
            own, above = self.context_in(f"{self._random.getrandbits(128) or 1:032x}"), ""
        elif not parent.is_sampled:
            return None
        else:
            own, above = self.context_in(parent.trace_id), parent.span_id
        return OtelSpan(_Noted(self, name, kind, own, above), self)

    def context_in(self, trace_id: str) -> TraceContext:
        """Return the context of a new span of a trace."""
        return TraceContext(trace_id, f"{self._random.getrandbits(64) or 1:016x}", is_sampled=True)

    async def close(self) -> None:
        """Send what waits, within a few seconds."""
        loop = asyncio.get_running_loop()
        ending = loop.run_in_executor(None, self.processor.shutdown)
        await asyncio.wait([ending], timeout=_CLOSE_SECONDS)


class _Exporter(SpanExporter):
    """Makes spans of the SDK of what was noted, and hands them to another exporter."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._resource = _resource()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        noted = cast("Sequence[_Noted]", spans)
        return self._inner.export([self._span_of(each) for each in noted])

    def shutdown(self) -> None:
        self._inner.shutdown()

    def _span_of(self, noted: _Noted) -> ReadableSpan:
        trace_id, is_step = int(noted.own.trace_id, 16), noted.kind == "step"
        own = SpanContext(
            trace_id, int(noted.own.span_id, 16), is_remote=False, trace_flags=_FLAGS
        )
        parent = None
        if noted.parent:
            above = int(noted.parent, 16)
            parent = SpanContext(trace_id, above, is_remote=not is_step, trace_flags=_FLAGS)
        return ReadableSpan(
            name=noted.name,
            context=own,
            parent=parent,
            resource=self._resource,
            attributes=noted.attributes,
            kind=_KINDS[noted.kind],
            status=Status(StatusCode.ERROR if noted.failed else StatusCode.UNSET),
            start_time=noted.begun,
            end_time=noted.ended,
            instrumentation_scope=_SCOPE,
        )


def _resource() -> Resource:
    """Return what describes this process; its name may come from OTEL_SERVICE_NAME."""
    found = Resource.create({SERVICE_VERSION: __version__})
    if str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        found = found.merge(Resource({SERVICE_NAME: "fhirpub"}))
    return found
