"""What is stated about a body that cannot be read: the reason and the place, never its content."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.explanation.unreadable import place_in
from fhirpub.fhir.strict_json import loads
from fhirpub.fhir.xml.reader import read_xml


def issue_of(raw: bytes) -> Issue:
    with pytest.raises(InvalidContent) as raised:
        loads(raw)
    (issue,) = raised.value.issues
    return issue


@pytest.mark.parametrize("raw", [b"", b" ", b"\r\n\t ", b"\xef\xbb\xbf"])
def test_an_empty_body_is_called_empty(raw: bytes) -> None:
    assert (issue_of(raw).details, issue_of(raw).diagnostics) == (
        "body-empty",
        "the body is empty",
    )


@pytest.mark.parametrize("read", [loads, read_xml])
@pytest.mark.parametrize("raw", [b"", b"  \n"])
def test_an_empty_body_is_called_empty_in_each_format(read: object, raw: bytes) -> None:
    with pytest.raises(InvalidContent, match="the body is empty"):
        read(raw)  # type: ignore[operator]


def test_a_byte_that_is_not_utf_8_is_located() -> None:
    issue = issue_of(b'{"a":"\xc3\xb1",\n "b":"Ni\xf1o"}')

    assert issue.details == "body-not-utf8"
    assert "byte 20 (line 2, byte 9 of it)" in issue.diagnostics


def test_a_byte_in_a_later_line_is_counted_from_the_beginning_of_its_own() -> None:
    issue = issue_of(b'{\n"a":1,\n"b":2,\n"c":"\xf1"}')

    assert "byte 22 (line 4, byte 6 of it)" in issue.diagnostics


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"\x1f\x8b\x08\x00\xff", "gzip: send it with Content-Encoding: gzip"),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF: send it in base64"),
        (b"PK\x03\x04\xff", "a ZIP archive"),
    ],
)
def test_a_body_of_another_format_is_named(raw: bytes, words: str) -> None:
    assert words in issue_of(raw).diagnostics


@pytest.mark.parametrize("raw", [b"// a comment\n{}", b"# a comment\n{}"])
def test_a_comment_at_the_beginning_is_named(raw: bytes) -> None:
    assert "there are no comments in JSON" in issue_of(raw).diagnostics


def test_a_byte_of_xml_that_is_not_utf_8_is_located() -> None:
    with pytest.raises(InvalidContent, match=r"not UTF-8: byte 11 \(line 1, byte 11 of it\)"):
        read_xml(b'<A xmlns="\xc3\xf1"/>')


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-be"])
def test_utf_16_is_named(encoding: str) -> None:
    assert "is UTF-16: it must be UTF-8" in issue_of('{"a": 1}'.encode(encoding)).diagnostics


@pytest.mark.parametrize(
    ("raw", "reason", "place"),
    [
        (b'{"a":[1,]}', "there is a comma before } or ]", "line 1, column 8"),
        (b'{"a":1,\n}', "there is a comma before } or ]", "line 1, column 7"),
        (b"{'a':1}", "names and strings have double quotation marks", "line 1, column 2"),
        (b"{a:1}", "names and strings have double quotation marks", "line 1, column 2"),
        (b"{1:1}", "names and strings have double quotation marks", "line 1, column 2"),
        (b'{"a": \xe2\x80\x9cx\xe2\x80\x9d}', "double quotation marks", "line 1, column 7"),
        (b'{"a":NaN}', "NaN and Infinity are no numbers of JSON", "line 1, column 6"),
        (b'{"a":1 // x\n}', "there are no comments in JSON", "line 1, column 8"),
        (b'{"a":1 "b":2}', "a comma, a colon or a bracket is missing", "line 1, column 8"),
        (b'{"a":1', "it ends before it is complete", "line 1, column 7"),
        (b'{"a":"x\ny"}', r"a line break or a tab in a string is written", "line 1, column 8"),
        (b'{"a":"C:\\dir"}', r"a backslash in a string is written as", "line 1, column 9"),
        (b'{"a":True}', "the words are true, false and null", "line 1, column 6"),
        (b'{"a":01}', "no plus sign or leading zero", "line 1, column 6"),
        (b'{"a":.5}', "digits on both sides of a point", "line 1, column 6"),
        (b'{"a":1e999}', "a number is too large", "line 1, column 6"),
        (b'{"a":}', "a value is missing before this place", "line 1, column 6"),
        (b'{"a":1}{', "there is more after its end", "line 1, column 8"),
        (b"<P/>", "this is XML", "line 1, column 1"),
        (b"@register.json", "this is the name of a file", "line 1, column 1"),
        (b"hello", "it must begin with { or [", "line 1, column 1"),
    ],
)
def test_the_reason_is_stated_with_the_place(raw: bytes, reason: str, place: str) -> None:
    issue = issue_of(raw)

    assert issue.details == "json-malformed"
    assert reason in issue.diagnostics
    assert issue.diagnostics.endswith(f"({place})")


@pytest.mark.parametrize(
    ("raw", "name", "place"),
    [
        (b'{"a":1,"a":2}', ": a", ""),
        (b'{"resourceType":"Parameters","a":1,"a":2}', ": a", "Parameters"),
        (b'{"resourceType":"Patient","b":[1,{"c":{"a":1,"a":1}}]}', ": a", "Patient.b[1].c"),
        (b'{"resourceType":"Patient","b":[{"a b":1,"a b":1}]}', "", "Patient.b[0]"),
    ],
)
def test_a_name_given_twice_is_named_with_its_object(raw: bytes, name: str, place: str) -> None:
    issue = issue_of(raw)

    assert issue.details == "json-name-repeated"
    assert issue.diagnostics.endswith(f"has the same name twice{name}")
    assert issue.expression == place


def test_of_two_names_given_twice_one_is_named_with_its_own_object() -> None:
    issue = issue_of(b'{"resourceType":"Patient","a":{"x":1,"x":1},"b":{"y":1,"y":1}}')

    assert issue.diagnostics.endswith("has the same name twice: x")
    assert issue.expression == "Patient.a"


def test_a_place_that_is_too_long_is_left_out() -> None:
    opening = b'{"' + b"a" * 60 + b'":'

    assert issue_of(opening * 6 + b'{"b":1,"b":1}' + b"}" * 6).expression == ""


def test_a_control_character_is_located() -> None:
    issue = issue_of(b'{"resourceType":"Patient","name":[{"family":"\\u0000"}]}')

    assert (issue.details, issue.expression) == ("character-forbidden", "Patient.name[0].family")


def test_json_sent_as_xml_is_recognized() -> None:
    with pytest.raises(InvalidContent, match=r"is JSON, whose Content-Type"):
        read_xml(b'{"resourceType":"Patient"}')


PIECES = st.sampled_from([*"{}[]:,\"'7-.e\\\n", "\\u", "NaN", "Zw\xe9"])


@given(st.lists(PIECES, max_size=12).map("".join), st.sampled_from(["utf-8", "latin-1"]))
def test_no_text_is_repeated_whatever_is_wrong(text: str, encoding: str) -> None:
    try:
        loads(text.encode(encoding))
    except InvalidContent as refusal:
        (issue,) = refusal.issues
        assert "Zw" not in issue.diagnostics
        assert re.fullmatch(r"[ -~]+", issue.diagnostics)


@pytest.mark.parametrize("raw", [b'{"a":1.}', b'{"a":1e}', b'{"a":1E+}', b'{"a":-}', b"[+1]"])
def test_a_number_in_another_form_is_called_one(raw: bytes) -> None:
    assert "a number has no plus sign or leading zero" in issue_of(raw).diagnostics


@pytest.mark.parametrize(
    ("kind", "place"), [("Patient", "Patient.a"), ("Juan P", "a"), (7, "a"), ("", "a")]
)
def test_only_a_plain_type_is_named_in_a_place(kind: object, place: str) -> None:
    assert place_in({"resourceType": kind, "a": True}, lambda one: one is True) == place
