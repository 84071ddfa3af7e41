"""What an entry of a batch-response has, from what the handler of its request wrote."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tornado.httputil import ResponseStartLine
from tornado.iostream import IOStream

from fhirpub.fhir.strict_json import dumps
from fhirpub.http.exchange import Exchange, Headers
from fhirpub.web.handlers.batch.answers import EntryAnswer, answer_of, batch_response
from fhirpub.web.handlers.batch.exchange import AnswerBytes, EntryExchange
from tests.unit.web.handlers.asking import named

URL = "https://api.example/fhir/r4"


def written(stream: IOStream, body: bytes, status: int = 200, **headers: str) -> EntryExchange:
    """Return the exchange in which a handler has answered."""
    connection = SimpleNamespace(stream=stream, context=None)
    exchange = EntryExchange(cast("Exchange", connection), AnswerBytes(10_000))
    sent = Headers({**named(headers), "Content-Length": str(len(body))})
    exchange.write_headers(ResponseStartLine("HTTP/1.1", status, "-"), sent, body)
    exchange.finish()
    return exchange


def outcome(*places: str | None) -> bytes:
    issues: list[dict[str, Any]] = [
        {"severity": "error"} | ({} if place is None else {"expression": [place]})
        for place in places
    ]
    return json.dumps(
        {"resourceType": "OperationOutcome", "issue": issues}, separators=(",", ":")
    ).encode()


def expressions(answer: EntryAnswer) -> list[list[str] | None]:
    assert answer.outcome is not None
    return [issue.get("expression") for issue in answer.outcome["issue"]]


def codes(answer: EntryAnswer) -> list[str]:
    assert answer.outcome is not None
    return [one["details"]["coding"][0]["code"] for one in answer.outcome["issue"]]


def test_the_status_has_its_phrase() -> None:
    assert json.loads(EntryAnswer(412).serialize()) == {
        "response": {"status": "412 Precondition Failed"}
    }


def test_an_answer_has_its_location_its_tag_and_its_time() -> None:
    headers = {"Location": "l", "ETag": 'W/"1"', "Last-Modified": "t", "Server": "fhirpub"}

    assert json.loads(EntryAnswer(201, headers, b'{"a":1.10}').serialize()) == {
        "resource": {"a": 1.1},
        "response": {
            "status": "201 Created",
            "location": "l",
            "etag": 'W/"1"',
            "lastModified": "t",
        },
    }


def test_a_resource_keeps_its_bytes() -> None:
    assert EntryAnswer(200, {}, b'{"a": 1.10}').serialize().startswith(b'{"resource":{"a": 1.10},')


def test_an_outcome_stands_in_the_response_and_not_as_resource() -> None:
    answer = EntryAnswer(404, {}, b"", {"resourceType": "OperationOutcome"})

    assert json.loads(answer.serialize()) == {
        "response": {
            "status": "404 Not Found",
            "outcome": {"resourceType": "OperationOutcome"},
        }
    }


async def test_a_body_that_is_no_outcome_is_the_resource(stream: IOStream) -> None:
    answer = answer_of(written(stream, b'{"resourceType":"Patient"}'), place=3, fhir_url=URL)

    assert (answer.status, answer.resource, answer.outcome) == (
        200,
        b'{"resourceType":"Patient"}',
        None,
    )


async def test_a_body_that_is_an_outcome_is_no_resource(stream: IOStream) -> None:
    answer = answer_of(written(stream, outcome("Patient"), 404), place=0, fhir_url=URL)

    assert (answer.status, answer.resource) == (404, b"")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Patient", "Bundle.entry[4].resource"),
        ("Patient.name[0].family", "Bundle.entry[4].resource.name[0].family"),
        ("Parameters.parameter[2]", "Bundle.entry[4].resource.parameter[2]"),
        ("identifier.value", "identifier.value"),
        ("Patient-name", "Patient-name"),
    ],
)
async def test_a_path_begins_at_the_bundle(stream: IOStream, before: str, after: str) -> None:
    answer = answer_of(written(stream, outcome(before), 400), place=4, fhir_url=URL)

    assert expressions(answer) == [[after]]


async def test_all_paths_of_an_issue_begin_at_the_bundle(stream: IOStream) -> None:
    places = ["Patient.name[0]", "Patient.name[1]", "x"]
    issue = {"severity": "error", "code": "value", "expression": places}
    body = dumps({"resourceType": "OperationOutcome", "issue": [issue]})

    answer = answer_of(written(stream, body, 400), place=2, fhir_url=URL)

    whole = "Bundle.entry[2].resource"
    assert expressions(answer) == [[f"{whole}.name[0]", f"{whole}.name[1]", "x"]]


async def test_an_issue_without_a_path_gets_none(stream: IOStream) -> None:
    answer = answer_of(written(stream, outcome(None, "Patient.id"), 400), place=0, fhir_url=URL)

    assert expressions(answer) == [None, ["Bundle.entry[0].resource.id"]]


async def test_paths_stay_if_the_resource_is_not_the_body(stream: IOStream) -> None:
    answer = answer_of(written(stream, outcome("Patient.id"), 400), place=None, fhir_url=URL)

    assert expressions(answer) == [["Patient.id"]]


async def test_a_repetition_is_an_information(stream: IOStream) -> None:
    exchange = written(stream, b"{}", 201, Idempotent_Replayed="true")

    answer = answer_of(exchange, place=0, fhir_url=URL)

    assert answer.outcome is not None
    assert codes(answer) == ["registered-before"]
    assert answer.outcome["issue"][0]["severity"] == "information"


async def test_a_repetition_with_other_content_is_a_warning_alone(stream: IOStream) -> None:
    named = {"Idempotent_Replayed": "true", "Idempotent_Content": "different"}

    answer = answer_of(written(stream, b"{}", 201, **named), place=0, fhir_url=URL)

    assert answer.outcome is not None
    assert codes(answer) == ["registered-differently"]
    assert answer.outcome["issue"][0]["severity"] == "warning"


async def test_a_remark_stands_behind_the_issues_of_the_answer(stream: IOStream) -> None:
    exchange = written(stream, outcome("Patient"), 201, Idempotent_Replayed="true")

    answer = answer_of(exchange, place=1, fhir_url=URL)

    assert expressions(answer) == [["Bundle.entry[1].resource"], None]
    assert (answer.outcome or {})["resourceType"] == "OperationOutcome"


async def test_an_answer_without_a_remark_has_no_outcome(stream: IOStream) -> None:
    assert answer_of(written(stream, b"{}", 201), place=0, fhir_url=URL).outcome is None


def test_a_response_without_entries_has_no_empty_list() -> None:
    assert b"".join(batch_response([])) == b'{"resourceType":"Bundle","type":"batch-response"}'


def test_the_entries_of_a_response_keep_their_order() -> None:
    whole = b"".join(batch_response([b"1", b"2", b"3"]))

    assert whole == b'{"resourceType":"Bundle","type":"batch-response","entry":[1,2,3]}'


def test_a_response_with_one_entry_has_no_comma_behind_it() -> None:
    assert b"".join(batch_response([b"1"])).endswith(b'"entry":[1]}')


def test_an_entry_that_is_not_sent_has_its_tag() -> None:
    answer = EntryAnswer(304, {"ETag": 'W/"1"', "Server": "x"})

    assert json.loads(answer.serialize()) == {
        "response": {"status": "304 Not Modified", "etag": 'W/"1"'}
    }
