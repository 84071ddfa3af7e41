"""Responses after which no other registration of a load can succeed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from tornado.httpclient import HTTPResponse

from fhirpub.cli.publish.bulk.sender import NoneAccepted, Patience, SingleCalls, _refuse_useless
from fhirpub.cli.publish.retries import Answered
from fhirpub.fhir.strict_json import dumps
from tests import canned
from tests.canned import BASE

OUTCOME = {"resourceType": "OperationOutcome", "issue": [{"diagnostics": "why"}]}
AT = {"Location": f"{BASE}/fhir/r4/DiagnosticReport/7/_history/1"}


def response(status: int, body: Any = None, **headers: str) -> HTTPResponse:
    raw = b"" if body is None else dumps(body)
    return canned.response(status, raw, reason="Reason", **headers)


def refusal(status: int, body: Any = None, **headers: str) -> str:
    """Return why no other is accepted; empty if others may be."""
    try:
        _refuse_useless(response(status, body, **headers), BASE)
    except NoneAccepted as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("status", [400, 404, 405, 409, 410, 413, 422, 500, 503])
def test_a_refusal_of_one_report_is_none_of_the_others(status: int) -> None:
    assert refusal(status, OUTCOME) == ""


def test_what_was_created_is_accepted() -> None:
    assert refusal(201, {}, **AT) == ""


@pytest.mark.parametrize(
    ("status", "headers"),
    [(200, {}), (200, AT), (201, {}), (201, {"Location": f"{BASE}/x"}), (302, {}), (399, {})],
)
def test_success_without_a_version_is_of_another_service(
    status: int, headers: dict[str, str]
) -> None:
    message = f"{BASE} is not a service of this kind: {status} Reason. Is --url right?"

    assert refusal(status, OUTCOME, **headers) == message


@pytest.mark.parametrize("status", [404, 405])
@pytest.mark.parametrize("body", [None, {}, [], {"resourceType": "Patient"}])
def test_what_is_not_served_without_an_outcome_is_another_service(status: int, body: Any) -> None:
    assert "is not a service of this kind" in refusal(status, body)


@pytest.mark.parametrize("status", [400, 409, 500])
def test_other_refusals_need_no_outcome(status: int) -> None:
    assert refusal(status) == ""


def test_a_token_that_is_not_accepted_ends_the_load() -> None:
    assert refusal(401, OUTCOME) == (
        "the service does not accept the token that it issued (401 Reason). Is --audience right?"
    )


def test_a_client_that_is_refused_ends_the_load_with_the_reason() -> None:
    assert refusal(403, OUTCOME) == "the service refuses this client (403 Reason): why"


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"issue": []},
        {"issue": {"0": 1}},
        {"issue": ["x"]},
        {"issue": [{}]},
        {"issue": [{"diagnostics": ""}]},
        {"issue": [{"diagnostics": 7}]},
    ],
)
def test_a_reason_that_is_missing_is_left_out(body: Any) -> None:
    assert refusal(403, body) == "the service refuses this client (403 Reason)"


def test_of_several_reasons_the_first_is_shown() -> None:
    body = {"issue": [{"diagnostics": "first"}, {"diagnostics": "second"}]}

    assert refusal(403, body).endswith(": first")


def test_a_quota_that_is_used_up_ends_the_load_with_its_time() -> None:
    headers = {"Retry-After": "3600"}

    assert refusal(429, OUTCOME, **headers) == (
        "a quota is used up for 3600 s: why\nWait for that time before you continue."
    )


# Single calls


class Desk:
    """A publisher that answers in turn."""

    base = BASE

    def __init__(self, answers: Sequence[HTTPResponse]) -> None:
        self.answers, self.sent = [*answers], []  # type: tuple[list[HTTPResponse], list[Any]]

    async def register(self, registration: Any) -> Answered:
        self.sent.append(registration)
        return Answered(self.answers.pop(0), 1)


async def test_responses_come_in_the_order_of_the_registrations_and_renew_the_patience() -> None:
    desk = Desk([response(201, {}, **AT), response(422, OUTCOME)])
    patience = Patience(60)
    patience._since = -1_000.0
    calls = SingleCalls(cast("Any", desk), patience)

    codes = [one.response.code async for one in calls.send(cast("Any", ["a", "b"]))]

    assert codes == [201, 422]
    assert desk.sent == ["a", "b"]
    assert patience._since > -1_000.0


async def test_nothing_is_sent_after_a_response_that_all_would_get() -> None:
    desk = Desk([response(201, {}, **AT), response(401), response(201, {}, **AT)])
    calls = SingleCalls(cast("Any", desk), Patience(60))
    answers = calls.send(cast("Any", ["a", "b", "c"]))

    assert (await anext(answers)).response.code == 201
    with pytest.raises(NoneAccepted):
        await anext(answers)
    assert desk.sent == ["a", "b"]
