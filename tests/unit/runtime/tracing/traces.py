"""Spans that are kept in place of being sent, and the tracer that begins them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from fhirpub.runtime.tracing.context import TraceContext
from fhirpub.runtime.tracing.spans import Kind, Span, Tracer

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


class KeptSpan(Span):
    """A span with its parent, and with what it ended with each time."""

    def __init__(self, name: str, kind: Kind, parent: TraceContext | None, number: int) -> None:
        self.name, self.kind, self.parent = name, kind, parent
        trace = parent.trace_id if parent is not None else TRACE[::-1]
        self.context = TraceContext(trace, f"{number:016x}", is_sampled=True)
        self.ends: list[tuple[dict[str, str | int | float], bool]] = []

    def step(self, name: str) -> AbstractContextManager[object]:
        return nullcontext()

    def end(self, attributes: Mapping[str, str | int | float], *, failed: bool = False) -> None:
        self.ends.append((dict(attributes), failed))


class SteppedSpan(Span):
    """A span that notes its steps, and how many are running; it is not to be ended."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.running = 0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.steps.append(name)
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1

    def end(self, attributes: Mapping[str, str | int | float], *, failed: bool = False) -> None:
        raise NotImplementedError


class Traces(Tracer):
    """Keeps its spans; ``is_sent`` is whether traces are sent at all."""

    def __init__(self, *, is_sent: bool = True) -> None:
        self.spans: list[KeptSpan] = []
        self._is_sent = is_sent

    def start(self, name: str, kind: Kind, parent: TraceContext | None) -> Span | None:
        if not self._is_sent:
            return None
        self.spans.append(KeptSpan(name, kind, parent, len(self.spans) + 1))
        return self.spans[-1]

    async def close(self) -> None:
        """Nothing waits."""
