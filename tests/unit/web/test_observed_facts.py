"""Facts of a line that are not those of the path, and what is no trace."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any
from uuid import uuid4

import pytest

from fhirpub.errors import NotAuthenticated, SecretsUnavailable
from fhirpub.problems import RequestProblem
from fhirpub.runtime.tracing.spans import current_span
from fhirpub.testing.samples import a_version
from fhirpub.testing.service import Integrator
from fhirpub.web.observed import _why
from tests.log_lines import caught_lines
from tests.unit.runtime.tracing.traces import PARENT, Traces
from tests.unit.web.handlers.asking import REPORTS, Asked, on_request
from tests.unit.web.test_observed import ID, observed

TOKEN_EXPIRED = RequestProblem.TOKEN_EXPIRED


@pytest.mark.parametrize("size", [0, 7, 200_000])
def test_a_line_has_the_bytes_of_the_body(lab: Integrator, size: int) -> None:
    async def use(one: Asked) -> None:
        one.handler.finish(b"x" * size)
        await one.exchange.wait_ended()

    with caught_lines() as caught:
        name = uuid4().hex
        on_request(lab, use, headers={"X-Request-Id": name})
        line = caught.of(name)

    assert (line["bytes"], line["status"]) == (size, 200)


def test_the_resource_of_the_response_comes_before_that_of_the_path(lab: Integrator) -> None:
    version = a_version()

    async def use(one: Asked) -> None:
        one.handler.note_resource(version)
        one.handler.note_end()

    with caught_lines() as caught:
        name = uuid4().hex
        on_request(lab, use, path=f"{REPORTS}/{ID}", headers={"X-Request-Id": name})
        line = caught.of(name)

    assert line["resource"] == f"{version.type}/{version.id}" != f"DiagnosticReport/{ID}"


@pytest.mark.parametrize(
    "headers",
    [
        [("Traceparent", PARENT), ("Traceparent", PARENT)],
        [("Traceparent", PARENT), ("Traceparent", "")],
        [("Traceparent", "none")],
        [("Traceparent", "")],
    ],
)
def test_what_is_no_single_trace_is_none(headers: Any) -> None:
    assert observed(None, *headers).trace is None


def test_the_time_of_a_request_is_in_milliseconds(lab: Integrator) -> None:
    async def use(one: Asked) -> None:
        one.request._began -= 5
        one.handler.note_end()

    with caught_lines() as caught:
        name = uuid4().hex
        on_request(lab, use, headers={"X-Request-Id": name})
        line = caught.of(name)

    assert 5_000 <= line["milliseconds"] < 1_000_000


def test_the_steps_of_an_entry_are_its_own_and_not_those_of_its_batch() -> None:
    made = observed(Traces(), ("Traceparent", PARENT))
    batch = observed(Traces(), ("Traceparent", PARENT))

    def enter() -> object:
        for one in (batch, made):
            one.begin_span()
            one.enter_span()
        return current_span.get()

    assert copy_context().run(enter) is made.span


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (SecretsUnavailable("no key"), "no key"),
        (NotAuthenticated("an old token", "said", TOKEN_EXPIRED, token_sent=True), "an old token"),
    ],
)
def test_what_only_the_operator_may_know_is_the_reason(problem: Exception, reason: str) -> None:
    assert _why(problem, "192.0.2.1") == {"reason": reason}
