"""Responses of administration."""

from __future__ import annotations

import asyncio
import json

import pytest

from fhirpub.administration.http.responses import (
    Asked,
    is_fault,
    refuse,
    refuse_token,
    respond,
    respond_with_list,
)
from fhirpub.errors import (
    ConfigurationError,
    NoSuchRecord,
    NotAuthenticated,
    NotPossible,
    StoreUnavailable,
    TokenRefused,
)
from fhirpub.problems import OperationProblem, RequestProblem
from fhirpub.web.error_mapping import MethodNotAllowed

RECORDS = [{"id": f"client-{number}", "scopes": ["system/*.rs"]} for number in range(1_000)]


@pytest.mark.parametrize("count", [0, 1, 2, 1_000])
async def test_a_list_is_encoded_as_any_value_is(count: int) -> None:
    assert await respond_with_list(RECORDS[:count], status=201) == respond(
        RECORDS[:count], status=201
    )


async def test_other_requests_have_their_turns_while_a_list_is_encoded() -> None:
    encoding = asyncio.create_task(respond_with_list(RECORDS))
    turns = 0
    while not encoding.done():
        await asyncio.sleep(0)
        turns += 1

    assert turns >= len(RECORDS) // 100
    assert json.loads((await encoding).body) == RECORDS


def refused(problem: Exception) -> tuple[int, list[str]]:
    answer = refuse(problem, fhir_url="https://fhir.example.org/fhir/r4", request_id="r-1")
    assert answer.headers["Content-Type"] == "application/fhir+json"
    return answer.status, [one["diagnostics"] for one in json.loads(answer.body)["issue"]]


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (ConfigurationError("a text for operators"), 422),
        (NotPossible("a text for operators"), 409),
        (NoSuchRecord("client", "x"), 404),
        (StoreUnavailable("down"), 503),
        (ValueError("a secret"), 500),
    ],
)
def test_a_refusal_has_the_status_of_its_kind(problem: Exception, status: int) -> None:
    assert refused(problem)[0] == status


@pytest.mark.parametrize(
    ("problem", "header", "value"),
    [
        (StoreUnavailable("down", retry_after=7), "Retry-After", "7"),
        (
            NotAuthenticated("none", "no token", RequestProblem.TOKEN_MISSING, token_sent=False),
            "WWW-Authenticate",
            'Bearer realm="fhirpub"',
        ),
        (MethodNotAllowed("no such method", allow="GET, PUT"), "Allow", "GET, PUT"),
    ],
)
def test_a_refusal_has_the_headers_of_its_kind(
    problem: Exception, header: str, value: str
) -> None:
    answer = refuse(problem, fhir_url="https://fhir.example.org/fhir/r4", request_id="r-1")

    assert answer.headers[header] == value


def test_what_the_settings_do_not_allow_is_a_rule_of_business() -> None:
    answer = refuse(ConfigurationError("no"), fhir_url="https://a.example", request_id="r-1")

    (issue,) = json.loads(answer.body)["issue"]
    assert (issue["severity"], issue["code"]) == ("error", "business-rule")
    assert issue["details"]["coding"][0]["code"] == OperationProblem.NOT_POSSIBLE


def test_a_refusal_by_the_settings_has_its_text_and_a_fault_has_none() -> None:
    assert refused(ConfigurationError("a text for operators"))[1] == ["a text for operators"]
    assert "secret" not in str(refused(ValueError("a secret")))


def test_only_what_was_not_foreseen_is_a_fault() -> None:
    assert is_fault(ValueError())
    assert not is_fault(NotPossible("no"))
    assert not is_fault(ConfigurationError("no"))


def test_a_token_is_refused_as_oauth_writes_it() -> None:
    answer = refuse_token(TokenRefused("invalid_client", "the assertion is wrong"))

    assert answer.status == 401
    assert json.loads(answer.body) == {
        "error": "invalid_client",
        "error_description": "the assertion is wrong",
    }


def test_the_first_value_of_a_header_counts() -> None:
    asked = Asked(
        method="GET",
        path="/",
        query="",
        headers={"a": ["1", "2"], "b": []},
        body=b"secret",
        address="",
        request_id="",
    )

    assert (asked.header("a"), asked.header("b"), asked.header("c")) == ("1", "", "")
    assert "secret" not in repr(asked)
