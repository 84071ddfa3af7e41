"""Spans of OpenTelemetry, sent to a collector by OTLP over HTTP.

A thread of the SDK sends them. Its queue is bounded: what it has no room for is dropped, so that
a collector that is away costs no request anything. What the settings leave open, the variables
``OTEL_*`` decide, which the SDK reads itself.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from random import Random

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
)

from fhirpub import __version__
from fhirpub.runtime.tracing.context import TraceContext
from fhirpub.runtime.tracing.spans import Attributes, Kind, Span, Tracer

_KINDS = {
    "server": SpanKind.SERVER,
    "producer": SpanKind.PRODUCER,
    "client": SpanKind.CLIENT,
}
_CLOSE_SECONDS = 5.0
_EXPORT_SECONDS = 5.0
_PATH = "/v1/traces"


class OtelSpan(Span):
    """A span of the SDK."""

    __slots__ = ("_here", "_span", "_tracer", "context")

    def __init__(self, span: trace.Span, tracer: trace.Tracer) -> None:
        self._span = span
        self._tracer = tracer
        self._here = trace.set_span_in_context(span)
        own = span.get_span_context()
        self.context = TraceContext(
            trace.format_trace_id(own.trace_id),
            trace.format_span_id(own.span_id),
            is_sampled=True,
        )

    def step(self, name: str) -> AbstractContextManager[object]:
        """Return what times a step of the work as a span below this one.

        It records no exception: the text of one may hold the data that it failed on.
        """
        return _Step(self._tracer.start_span(name, context=self._here))

    def end(self, attributes: Attributes, *, failed: bool = False) -> None:
        """End it, with what is known by then."""
        self._span.set_attributes(attributes)
        if failed:
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class _Step(AbstractContextManager[None]):
    """A step that is under way. What it calls needs no current span of the SDK's."""

    __slots__ = ("_span",)

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def __exit__(self, *_exception: object) -> None:
        self._span.end()


class OtelTracer(Tracer):
    """Begins spans of the SDK. Make it in the process that uses it: it starts a thread."""

    def __init__(self, *, endpoint: str, sample_ratio: float) -> None:
        """Send to the collector at a URL; without one, to where the variables say."""
        self._sample_ratio = sample_ratio
        self._random = Random()  # noqa: S311 - chooses traces, keeps no secret
        self._provider = TracerProvider(
            sampler=ALWAYS_ON, resource=_resource(), shutdown_on_exit=False
        )
        url = endpoint.rstrip("/") + _PATH if endpoint else None
        exporter = OTLPSpanExporter(endpoint=url, timeout=_EXPORT_SECONDS)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("fhirpub", __version__)

    def start(self, name: str, kind: Kind, parent: TraceContext | None) -> Span | None:
        """Begin a span; without a parent it begins a trace. None for a trace that is not sent.

        The decision is made here: spans of the SDK that are not sent cost half of the others.
        """
        is_sent = (
            self._random.random() < self._sample_ratio if parent is None else parent.is_sampled
        )
        if not is_sent:
            return None
        context = trace.set_span_in_context(_span_of(parent))
        return OtelSpan(
            self._tracer.start_span(name, context=context, kind=_KINDS[kind]), self._tracer
        )

    async def close(self) -> None:
        """Send what waits, within a few seconds."""
        loop = asyncio.get_running_loop()
        ending = loop.run_in_executor(None, self._provider.shutdown)
        await asyncio.wait([ending], timeout=_CLOSE_SECONDS)


def _span_of(parent: TraceContext | None) -> trace.Span:
    """Return the span of another process."""
    if parent is None:
        return trace.INVALID_SPAN
    flags = TraceFlags(TraceFlags.SAMPLED)
    return NonRecordingSpan(
        SpanContext(
            int(parent.trace_id, 16), int(parent.span_id, 16), is_remote=True, trace_flags=flags
        )
    )


def _resource() -> Resource:
    """Return what describes this process; its name may come from OTEL_SERVICE_NAME."""
    found = Resource.create({SERVICE_VERSION: __version__})
    if str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        found = found.merge(Resource({SERVICE_NAME: "fhirpub"}))
    return found
