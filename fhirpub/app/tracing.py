"""Traces, if they are configured: the tracer of a process, and the steps in its store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fhirpub.config.monitoring import TracingConfig
from fhirpub.errors import ConfigurationError
from fhirpub.runtime.tracing.spans import Tracer, current_span, step
from fhirpub.storage.store import Store

_STEPS = {
    "add": "commit",
    "latest": "read",
    "latest_public": "read",
    "version": "read",
    "history": "read",
    "search": "read",
    "blobs": "read",
}
"""The methods of a store that are steps of a request, and what they are called.

Many requests share one commit. Each has a span of its own from when it hands its version in until
that is durable: this is how long it waits, and needs no link to the others.
"""


@asynccontextmanager
async def open_tracer(config: TracingConfig, store: Store) -> AsyncGenerator[Tracer | None, None]:
    """Open the tracer of this process; None if it does not trace. Raises ConfigurationError.

    Calls of the store are then steps of the requests that make them.
    """
    if not config.enabled:
        yield None
        return
    tracer = _create_tracer(config)
    _trace_store(store)
    try:
        yield tracer
    finally:
        await tracer.close()


def _create_tracer(config: TracingConfig) -> Tracer:
    try:
        from fhirpub.runtime.tracing.otel import OtelTracer  # noqa: PLC0415 - only if configured
    except ImportError:
        raise ConfigurationError(
            "[tracing] enabled: OpenTelemetry is not installed: pip install 'fhirpub[otel]'"
        ) from None
    return OtelTracer(endpoint=config.endpoint, sample_ratio=config.sample_ratio)


def _trace_store(store: Store) -> None:
    for method, name in _STEPS.items():
        setattr(store, method, _as_step(name, getattr(store, method)))


def _as_step(name: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def timed(*given: Any, **named: Any) -> Any:
        with step(name):
            return await call(*given, **named)

    def call_or_time(*given: Any, **named: Any) -> Awaitable[Any]:
        return call(*given, **named) if current_span.get() is None else timed(*given, **named)

    return call_or_time
