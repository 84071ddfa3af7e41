"""Steps of a request are timed if it is traced, and cost nothing if not."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from fhirpub.runtime.tracing.spans import Span, current_span, step


class Noted(Span):
    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, name: str) -> AbstractContextManager[object]:
        self.steps.append(name)
        return nullcontext()

    def end(self, attributes: Any, *, failed: bool = False) -> None:
        raise NotImplementedError


def test_without_a_span_a_step_is_nothing() -> None:
    assert current_span.get() is None
    with step("read") as found:
        assert found is None


def test_a_step_belongs_to_the_span_of_the_request() -> None:
    span = Noted()
    token = current_span.set(span)
    try:
        with step("read"):
            pass
    finally:
        current_span.reset(token)

    assert span.steps == ["read"]
