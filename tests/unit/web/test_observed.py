"""What the line of a request names of a refusal, and what never stands in it."""

from __future__ import annotations

from contextvars import copy_context
from dataclasses import replace
from types import SimpleNamespace
from typing import cast
from uuid import uuid4

import pytest
from tornado.httputil import HTTPHeaders, RequestStartLine

from fhirpub.config.settings import Config
from fhirpub.errors import (
    Issue,
    NotPermitted,
    StorageQuotaExceeded,
    StoreUnavailable,
    TokenRefused,
)
from fhirpub.problems import ContentProblem
from fhirpub.runtime import logging
from fhirpub.runtime.tracing.spans import current_span
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.error_mapping import AddressNotPermitted
from fhirpub.web.message.request import Request
from fhirpub.web.observed import ObservedRequest, _named, _why, our_name
from fhirpub.web.services import Services
from tests.log_lines import caught_lines
from tests.metrics import Moves
from tests.unit.runtime.tracing.traces import PARENT, TRACE, Traces
from tests.unit.web.handlers.asking import Asked, on_request, running

ID = "00000000-0000-4000-8000-000000000000"
REPORTS = "/fhir/r4/DiagnosticReport"
ADDRESS = "192.0.2.1"


@pytest.mark.parametrize("name", [ID, f"ep_{ID}", ID.replace("-", "")])
def test_an_id_of_our_form_is_named(name: str) -> None:
    assert our_name("Patient", name) == f"Patient/{name}"


@pytest.mark.parametrize("name", ["", "Lovelace", ID.upper().replace("0", "A"), ID + "0", ID[1:]])
def test_what_may_be_data_of_a_patient_is_not_named(name: str) -> None:
    assert our_name("Patient", name) == ""


def an_error(place: str = "", details: ContentProblem = ContentProblem.VALUE_INVALID) -> Issue:
    return Issue.error(details, "is wrong", place)


def test_each_code_and_each_place_is_named_once_in_order() -> None:
    issues = [
        an_error("Patient.name[0].family"),
        an_error("a", ContentProblem.BASE64_INVALID),
        an_error("a"),
    ]

    assert _named(issues) == {
        "codes": ["value-invalid", "base64-invalid"],
        "places": ["Patient.name[0].family", "a"],
    }


@pytest.mark.parametrize("place", ["", "a b", "a[x]", "a..b", "1a", "a.", "a[1][2]", "a\n"])
def test_what_is_no_path_is_not_named(place: str) -> None:
    assert "places" not in _named([an_error(place)])


def test_ten_places_are_named_and_no_more() -> None:
    facts = _named([an_error(f"a[{number}]") for number in range(11)])

    assert facts["places"] == [f"a[{number}]" for number in range(10)]


def test_warnings_are_not_named() -> None:
    assert _named([Issue.warning(ContentProblem.VALUE_INVALID, "is unusual", "a")]) == {}


def test_an_unavailable_store_is_the_reason() -> None:
    assert _why(StoreUnavailable("it is away"), ADDRESS) == {"reason": "it is away"}


def test_an_address_outside_of_the_networks_is_named() -> None:
    assert _why(AddressNotPermitted("c", "203.0.113.9"), ADDRESS) == {
        "reason": "address not permitted: c",
        "address": "203.0.113.9",
    }


def test_a_refusal_that_is_expected_needs_no_reason() -> None:
    assert _why(NotPermitted(), ADDRESS) == {}


def test_of_a_fault_the_place_is_named_and_not_the_text() -> None:
    with pytest.raises(ValueError, match="Lovelace") as raised:
        int("Lovelace")
    found = _why(raised.value, ADDRESS)

    assert "test_observed" in str(found["place"])
    assert "Lovelace" not in str(found)


# Whole lines.


def test_the_line_of_a_read_names_the_resource_and_its_caller(lab: Integrator) -> None:
    with caught_lines() as caught:
        lab.get(f"{REPORTS}/{ID}", X_Request_Id="seen")
        line = caught.of("seen")

    assert (line["event"], line["level"], line["status"]) == ("refused", "info", 404)
    assert (line["tenant"], line["client"]) == (lab.tenant.id, lab.client_id)
    assert (line["method"], line["resource"]) == ("GET", f"DiagnosticReport/{ID}")
    assert line["route"] == f"{REPORTS}/{{}}"


def test_the_line_of_a_read_does_not_name_what_is_no_id(lab: Integrator) -> None:
    with caught_lines() as caught:
        lab.get(f"{REPORTS}/Lovelace", X_Request_Id="seen-too")
        line = caught.of("seen-too")

    assert "Lovelace" not in str(line)


@pytest.mark.parametrize("asked", ["a" * 65, "a b", "a/b", ""])
def test_a_request_id_that_is_none_is_replaced(service: RunningService, asked: str) -> None:
    answer = service.request("GET", "/health/live", headers={"X-Request-Id": asked})

    assert answer.headers["x-request-id"] != asked


@pytest.mark.parametrize("asked", ["a" * 64, "A-1._z"])
def test_the_request_id_of_the_client_stays(service: RunningService, asked: str) -> None:
    answer = service.request("GET", "/health/live", headers={"X-Request-Id": asked})

    assert answer.headers["x-request-id"] == asked


def test_a_refused_token_request_names_its_error_its_reason_and_the_address() -> None:
    assert _why(TokenRefused("invalid_client", "the client is unknown"), ADDRESS) == {
        "codes": ["invalid_client"],
        "reason": "the client is unknown",
        "address": ADDRESS,
    }


def test_a_quota_that_is_used_up_is_the_reason() -> None:
    problem = StorageQuotaExceeded("tenant_bytes")

    assert _why(problem, ADDRESS) == {"reason": "quota used up: tenant_bytes"}


def test_a_store_that_is_away_and_a_quota_are_counted(lab: Integrator) -> None:
    moves = Moves(running(lab))

    async def use(one: Asked) -> None:
        one.handler.note_problem(StoreUnavailable("away"))
        one.handler.note_problem(StorageQuotaExceeded("tenant_bytes"))
        one.handler.note_problem(NotPermitted())

    on_request(lab, use)

    assert moves.by("store_unavailable_total") == 1
    assert moves.by("quota_refusals_total", quota="tenant_bytes") == 1


@pytest.mark.parametrize(("problem", "level"), [(RuntimeError(), "error"), (None, "info")])
def test_an_answer_that_did_not_leave_is_a_cut_and_an_error_if_there_was_a_problem(
    lab: Integrator, problem: Exception | None, level: str
) -> None:
    async def use(one: Asked) -> None:
        if problem is not None:
            one.handler.note_problem(problem)
        one.handler.note_end()

    with caught_lines() as caught:
        name = uuid4().hex
        on_request(lab, use, headers={"X-Request-Id": name})
        line = caught.of(name)

    assert (line["event"], line["level"]) == ("cut off", level)
    assert "status" not in line


@pytest.mark.parametrize(
    ("problem", "status", "level"),
    [(StoreUnavailable("away"), 503, "warning"), (RuntimeError(), 500, "error")],
    ids=["away", "fault"],
)
def test_a_fault_is_an_error_and_what_passes_a_warning(
    lab: Integrator, problem: Exception, status: int, level: str
) -> None:
    async def use(one: Asked) -> None:
        one.handler.fail(problem)
        await one.exchange.wait_ended()

    with caught_lines() as caught:
        name = uuid4().hex
        on_request(lab, use, headers={"X-Request-Id": name})
        line = caught.of(name)

    assert (line["event"], line["status"], line["level"]) == ("refused", status, level)
    assert line["milliseconds"] >= 0


@pytest.mark.parametrize(
    ("problem", "status", "is_written"),
    [(RuntimeError("a fault"), 200, True), (None, 200, False), (NotPermitted(), 403, True)],
    ids=["fault", "answered", "refused"],
)
def test_without_lines_of_requests_what_went_wrong_has_one(
    lab: Integrator, problem: Exception | None, status: int, *, is_written: bool
) -> None:
    async def use(one: Asked) -> None:
        config = one.handler.services.config
        config = replace(config, logs=replace(config.logs, requests=False))
        one.handler.services = replace(one.handler.services, config=config)
        one.handler.status, one.handler._is_sent = status, status >= 400
        if problem is not None:
            one.handler.note_problem(problem)
        one.handler.note_end()

    with caught_lines() as caught:
        name = uuid4().hex
        on_request(lab, use, headers={"X-Request-Id": name})

    assert (name in caught.stream.getvalue()) is is_written


def test_lines_of_refusals_are_sampled_by_their_reasons(
    lab: Integrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[str] = []

    async def use(one: Asked) -> None:
        del one.handler.caller  # lines with a client are not sampled
        one.handler.fail(StoreUnavailable("a reason"))
        await one.exchange.wait_ended()

    def admits(_level: str, _event: str, kind: str) -> bool:
        kinds.append(kind)
        return True

    with caught_lines():
        lines = logging.request_lines()
        assert lines is not None
        monkeypatch.setattr(lines, "_admits", admits)
        on_request(lab, use)

    assert kinds == ["a reason"]


def test_the_line_of_an_endpoint_names_it_by_its_kind(lab: Integrator) -> None:
    with caught_lines() as caught:
        name = uuid4().hex
        lab.get(f"/webhooks/v1/endpoints/{ID}", X_Request_Id=name)
        line = caught.of(name)

    assert line["resource"] == f"Endpoint/{ID}"


def test_the_steps_of_a_request_are_those_of_its_span() -> None:
    made = observed(Traces(), ("Traceparent", PARENT))

    def enter() -> object:
        made.begin_span()
        made.enter_span()
        return current_span.get()

    assert copy_context().run(enter) is made.span  # later tests have no span


# Traces.


def observed(tracer: Traces | None, *headers: tuple[str, str]) -> ObservedRequest:
    given = HTTPHeaders()
    for name, value in headers:
        given.add(name, value)
    line = RequestStartLine("GET", "/health/live", "HTTP/1.1")
    connection = SimpleNamespace(context=SimpleNamespace(remote_ip=ADDRESS))
    services = SimpleNamespace(tracer=tracer, config=Config(), request_ids=iter(["r-1"]))
    return ObservedRequest(Request(line, given, connection), cast("Services", services))


@pytest.mark.parametrize(("status", "failed"), [(200, False), (404, False), (500, True)])
def test_the_span_of_a_request_ends_once_with_what_is_known(status: int, *, failed: bool) -> None:
    tracer = Traces()
    made = observed(tracer, ("Traceparent", PARENT))
    made.begin_span()
    made.status, made._length = status, 7

    made.note_end()
    made.note_end()

    (span,) = tracer.spans
    assert (span.name, span.kind) == (f"GET {made.route}", "server")
    assert span.parent is not None
    assert span.parent.header == PARENT
    known = {
        "http.request.method": "GET",
        "http.route": made.route,
        "fhirpub.request_id": "r-1",
        "http.response.status_code": status,
    }
    assert span.ends == [(known, failed)]


def test_a_request_that_was_cut_off_has_no_status_in_its_span() -> None:
    tracer = Traces()
    made = observed(tracer)
    made.begin_span()

    made.note_end()

    ((attributes, _failed),) = tracer.spans[0].ends
    assert "http.response.status_code" not in attributes


def test_the_trace_of_a_request_is_that_of_its_span() -> None:
    made = observed(Traces(), ("Traceparent", PARENT))
    made.begin_span()

    assert made.span is not None
    assert made.trace == made.span.context
    assert made.sampled_trace_id == TRACE


@pytest.mark.parametrize(
    "tracer", [None, Traces(is_sent=False)], ids=["no tracer", "a trace that is not sent"]
)
def test_without_a_span_the_trace_is_that_of_the_client(tracer: Traces | None) -> None:
    made = observed(tracer, ("Traceparent", PARENT))
    made.begin_span()

    assert made.trace is not None
    assert (made.trace.header, made.sampled_trace_id) == (PARENT, "")


def test_without_a_span_and_a_header_there_is_no_trace() -> None:
    assert observed(None).trace is None
