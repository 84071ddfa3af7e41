"""The spans of a request or an event, as the rest of the service sees them.

Only `otel.py` imports OpenTelemetry, and only a process that traces imports `otel.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Literal

from fhirpub.runtime.tracing.context import TraceContext

Kind = Literal["server", "producer", "client"]
Attributes = Mapping[str, str | int | float]


class Span(ABC):
    """A piece of work in a trace that is sent to a collector; it ends once."""

    context: TraceContext
    """The span as what follows from it names it."""

    @abstractmethod
    def step(self, name: str) -> AbstractContextManager[object]:
        """Return what times a step of the work as a span below this one."""

    @abstractmethod
    def end(self, attributes: Attributes, *, failed: bool = False) -> None:
        """End it, with what is known by then."""


class Tracer(ABC):
    """Begins spans of traces that are sent to a collector."""

    @abstractmethod
    def start(self, name: str, kind: Kind, parent: TraceContext | None) -> Span | None:
        """Begin a span; without a parent it begins a trace. None for a trace that is not sent."""

    @abstractmethod
    async def close(self) -> None:
        """Send what waits, within a few seconds."""


current_span: ContextVar[Span | None] = ContextVar("current_span", default=None)
"""The span of the request that a task works for."""


_NOTHING = nullcontext()


def step(name: str) -> AbstractContextManager[object]:
    """Return what times a step of the current request; nothing, if it is not traced."""
    span = current_span.get()
    return _NOTHING if span is None else span.step(name)
