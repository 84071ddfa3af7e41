"""Steps of a request are timed if it is traced, and cost nothing if not."""

from __future__ import annotations

from fhirpub.runtime.tracing.spans import current_span, step
from tests.unit.runtime.tracing.traces import SteppedSpan


def test_without_a_span_a_step_is_nothing() -> None:
    assert current_span.get() is None
    with step("read") as found:
        assert found is None


def test_a_step_belongs_to_the_span_of_the_request() -> None:
    span = SteppedSpan()
    token = current_span.set(span)
    try:
        with step("read"):
            pass
    finally:
        current_span.reset(token)

    assert span.steps == ["read"]
