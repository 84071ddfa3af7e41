"""The output of the demo: commands that can be pasted, responses that fit the terminal."""

from __future__ import annotations

import json
from io import BytesIO

import click
import pytest
from tornado.httpclient import HTTPRequest, HTTPResponse
from tornado.httputil import HTTPHeaders

from fhirpub.cli.demo.printer import WIDTH, Step, Transcript, pretty


def test_a_plain_read_is_a_plain_command() -> None:
    step = Step(sentence="Read.", path="/fhir/r4/Flag/1", expected=200)

    assert step.curl() == (
        'curl -sS -i "$BASE/fhir/r4/Flag/1" \\\n  -H "Authorization: Bearer $TOKEN"'
    )


def test_an_operation_is_safe_from_the_shell() -> None:
    step = Step(sentence="", method="POST", path="/Flag/$register", file="f.json", expected=201)

    assert '"$BASE/Flag/\\$register"' in step.curl()
    assert "--data-binary @f.json" in step.curl()


def test_command_and_call_say_the_same() -> None:
    step = Step(
        sentence="",
        method="PATCH",
        path="/Flag/1",
        query={"a": "b|c"},
        file="f.json",
        if_match='W/"1"',
        expected=204,
    )

    call = step.call("http://h", "tok", b"{}")

    assert (call.method, call.url, call.body) == ("PATCH", "http://h/Flag/1?a=b%7Cc", b"{}")
    assert call.headers["If-Match"] == 'W/"1"'
    assert call.headers["Authorization"] == "Bearer tok"
    assert "-X PATCH" in step.curl()
    assert "--data-urlencode 'a=b|c'" in step.curl()
    assert "-H 'If-Match: W/\"1\"'" in step.curl()


def test_documents_are_shortened_for_the_eye() -> None:
    body = json.dumps({"list": [{"data": "QUJD" * 1000}], "id": "kept"}).encode()

    text = "\n".join(pretty(body))

    assert "QUJDQUJD… (4000 characters)" in text
    assert '"id": "kept"' in text


@pytest.mark.parametrize("last", [True, False])
def test_a_line_that_is_too_wide_is_cut_with_an_ellipsis(last: bool) -> None:  # noqa: FBT001
    body = {"text": "x" * 150} if last else {"text": "x" * 150, "z": 1}

    wide = pretty(json.dumps(body).encode())[1]

    assert len(wide) <= WIDTH - 4
    assert wide.endswith('x…"' if last else 'x…",')


@pytest.mark.parametrize(("body", "lines"), [(None, []), (b"", []), (b"plain", ["plain"])])
def test_what_is_no_json_is_shown_as_it_is(body: bytes | None, lines: list[str]) -> None:
    assert pretty(body) == lines


def test_steps_are_numbered(capsys: pytest.CaptureFixture[str]) -> None:
    transcript = Transcript()

    transcript.sentence("First.")
    transcript.sentence("Then.")

    assert capsys.readouterr().out == "\n1. First.\n\n2. Then.\n"


def test_resources_in_a_list_are_reduced_to_what_matters() -> None:
    resource = {"resourceType": "Flag", "id": "1", "status": "active", "code": {}, "subject": {}}
    body = json.dumps({"resourceType": "Bundle", "entry": [{"resource": resource}]}).encode()

    text = "\n".join(pretty(body, ["status"]))

    assert '"status": "active"' in text
    assert '"code"' not in text
    assert '"…": "2 more elements"' in text


def test_resources_in_parameters_are_reduced_as_well() -> None:
    meta = {"versionId": "2", "tag": [{"code": "SUBSETTED"}]}
    resource = {"resourceType": "Flag", "meta": meta, "status": "active", "code": {}}
    reference = {"name": "flag", "valueReference": {"reference": "Flag/1"}}
    entries = [{"name": "flag", "resource": resource}, reference]
    body = json.dumps({"resourceType": "Parameters", "parameter": entries}).encode()

    text = " ".join(line.strip() for line in pretty(body, ["status"]))

    assert '"meta": {"versionId": "2"}, "status": "active", "…": "1 more elements"' in text
    assert '"reference": "Flag/1"' in text


def test_of_many_that_look_alike_the_first_are_shown() -> None:
    alike = [{"name": "result", "value": number} for number in range(12)]
    body = json.dumps({"list": [{"name": "report"}, *alike, {"name": "issues"}]}).encode()

    text = "".join(line.strip() for line in pretty(body))

    assert text == (
        '{"list": [{"name": "report"},{"name": "result", "value": 0},'
        '{"name": "result", "value": 1},"… 10 more",{"name": "issues"}]}'
    )


def test_every_error_is_shown() -> None:
    errors = [{"severity": "error", "diagnostics": f"number {number}"} for number in range(12)]

    text = "\n".join(pretty(json.dumps({"issue": errors}).encode()))

    assert text.count('"error"') == 12


def test_a_body_that_was_just_shown_is_not_shown_again(capsys: pytest.CaptureFixture[str]) -> None:
    request = HTTPRequest("http://h/")
    transcript = Transcript()
    for _ in range(2):
        transcript.answer(HTTPResponse(request, 200, buffer=BytesIO(b'{"a": 1}')))

    assert capsys.readouterr().out.count('"a": 1') == 1


def test_the_headers_that_matter_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    headers = HTTPHeaders({"Location": "http://h/Flag/1", "ETag": 'W/"1"', "Server": "x"})

    Transcript().answer(HTTPResponse(HTTPRequest("http://h/"), 201, headers=headers))

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "    201 Created"
    assert "    Location: http://h/Flag/1" in lines
    assert not [line for line in lines if "Server" in line]


def test_a_request_without_a_body_is_a_post_all_the_same() -> None:
    step = Step(sentence="", method="POST", path="/x/verify", expected=200)

    assert step.call("http://h", "tok", None).body == b""
    assert "curl -sS -i -X POST " in step.curl()
    assert Step(sentence="", path="/x", expected=200).call("http://h", "tok", None).body is None


def test_an_empty_body_repeats_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    transcript = Transcript()
    for _ in range(2):
        transcript.answer(HTTPResponse(HTTPRequest("http://h/"), 204))

    assert capsys.readouterr().out == "    204 No Content\n" * 2


def test_what_was_shown_before_the_last_answer_is_shown_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    transcript = Transcript()
    for body in (b'{"a": 1}', b'{"b": 2}', b'{"a": 1}'):
        transcript.answer(HTTPResponse(HTTPRequest("http://h/"), 200, buffer=BytesIO(body)))

    assert capsys.readouterr().out.count('"a": 1') == 2


@pytest.mark.parametrize(("status", "colour"), [(399, "32"), (400, "31"), (412, "31")])
def test_a_refusal_is_red(capsys: pytest.CaptureFixture[str], status: int, colour: str) -> None:
    with click.Context(click.Command("x")) as context:
        context.color = True
        Transcript().answer(HTTPResponse(HTTPRequest("http://h/"), status, reason="R"))

    assert f"\x1b[{colour}m" in capsys.readouterr().out
