"""The span of an attempt, in the trace of its request."""

from __future__ import annotations

import pytest

from fhirpub.testing.samples import LAB
from fhirpub.webhooks.policy.outcome import Outcome
from tests.unit.runtime.tracing.traces import TRACE, Traces
from tests.unit.webhooks.dispatch.attempting import ACCEPTED, FAILED, Desk


@pytest.mark.parametrize(("outcome", "status"), [(ACCEPTED, 204), (FAILED, 503)])
async def test_an_attempt_is_a_span_that_the_receiver_can_follow(
    desk: Desk, outcome: Outcome, status: int
) -> None:
    desk.tracer = Traces()

    found = await desk.deliver(outcome)

    (span,), (message,) = desk.tracer.spans, desk.receiver.sent
    ((attributes, failed),) = span.ends
    assert (span.name, span.kind, failed) == ("deliver", "client", status != 204)
    assert message.traceparent == span.context.header
    assert (attributes["http.response.status_code"], found.attempts[0].status) == (status, status)
    assert attributes["fhirpub.tenant"] == LAB
    assert attributes["fhirpub.outcome"] == outcome.word
    assert attributes["fhirpub.endpoint"] == desk.endpoint.id
    assert attributes["fhirpub.event_id"] == found.event_id
    assert (attributes["fhirpub.event_type"], attributes["fhirpub.attempt"]) == (
        found.event_type,
        1,
    )


async def test_an_attempt_of_a_trace_that_is_not_sent_is_made_all_the_same(desk: Desk) -> None:
    desk.tracer = Traces(is_sent=False)
    trace = f"00-{TRACE}-00f067aa0ba902b7-00"
    await desk.add(
        body=b'{"timestamp":"2023-11-14T22:13:20Z","traceparent":"%b"}' % trace.encode()
    )

    assert (await desk.deliver(ACCEPTED)).state == "delivered"
    assert desk.receiver.sent[0].traceparent == trace


async def test_the_span_of_an_attempt_with_a_fault_has_failed(desk: Desk) -> None:
    desk.tracer = Traces()

    await desk.deliver(RuntimeError())

    (span,) = desk.tracer.spans
    ((attributes, failed),) = span.ends
    assert (attributes["fhirpub.outcome"], failed) == ("E_INTERNAL", True)
