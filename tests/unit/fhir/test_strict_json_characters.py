"""Which characters and numbers are JSON for us, and how JSON is written."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.strict_json import (
    SentDecimal,
    dumps,
    in_decimals,
    in_plain_decimals,
    loads,
    loads_stored,
    pretty,
)
from fhirpub.problems import ContentProblem

UNSPEAKABLE = "a string holds a control character, U+FFFE or U+FFFF"


def issue_of(raw: bytes) -> Issue:
    with pytest.raises(InvalidContent) as raised:
        loads(raw)
    (issue,) = raised.value.issues
    return issue


# Characters


@pytest.mark.parametrize(
    "character",
    [*"\x00\x01\x07\x08\x0b\x0c\x0e\x1f", "\ufffe", "\uffff"],
    ids=lambda character: f"U+{ord(character):04X}",
)
def test_what_xml_cannot_write_is_refused(character: str) -> None:
    issue = issue_of(json.dumps({"note": [{"text": f"a{character}b"}]}).encode())

    assert (issue.diagnostics, issue.details, issue.expression) == (
        UNSPEAKABLE,
        ContentProblem.CHARACTER_FORBIDDEN,
        "note[0].text",
    )


@pytest.mark.parametrize("raw", [b'"\xef\xbf\xbe"', b'["\xef\xbf\xbf"]', b'"\\b"', b'"\\f"'])
def test_what_xml_cannot_write_is_refused_without_an_escape_by_number(raw: bytes) -> None:
    assert issue_of(raw).diagnostics == UNSPEAKABLE


@pytest.mark.parametrize(
    "text", ["\t\n\r", "\x20\x7f\x80", "\ufffd", "\ufeff", "\ufdd0", "\\b \\u0001", "\U0001fffe"]
)
def test_what_xml_can_write_is_read(text: str) -> None:
    assert loads(json.dumps([text]).encode()) == [text]
    assert loads(json.dumps([text], ensure_ascii=False).encode()) == [text]


def test_a_forbidden_character_in_a_name_is_at_the_object_that_has_it() -> None:
    issue = issue_of(b'{"resourceType":"Patient","name":[{},{"\\u0001":1}]}')

    assert issue.expression == "Patient.name[1]"


def test_a_forbidden_character_of_a_text_alone_has_no_place() -> None:
    assert issue_of(b'"\\u0000"').expression == ""


@pytest.mark.parametrize("raw", [rb'"\ud800"', rb'"\udc00\ud800"', b'"\xed\xa0\x80"', b'"\xff"'])
def test_half_a_character_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidContent):
        loads(raw)


# Numbers and notations


@pytest.mark.parametrize(
    "raw",
    [
        *("NaN", "Infinity", "-Infinity", "1e309", "-1.8e308", "01", "+1", "1.", ".5", "0x1"),
        *("0e9999999999999999999", "1e-9999999999999999999"),
    ],
)
def test_what_is_no_number_of_json_or_beyond_all_is_refused(raw: str) -> None:
    assert issue_of(f"[{raw}]".encode()).details == ContentProblem.JSON_MALFORMED


def test_the_largest_number_is_read() -> None:
    assert dumps(loads(b"[1.7e308]")) == b"[1.7e308]"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("123456789012345678", int),
        ("1234567890123456789", Decimal),
        ("-0", Decimal),
        ("0", int),
        ("0.0", Decimal),
        ("13.20", Decimal),
        ("1e2", SentDecimal),
        ("1E+2", Decimal),
        ("0.0000001", SentDecimal),
    ],
)
def test_a_number_has_the_plainest_kind_that_keeps_its_text(text: str, kind: type) -> None:
    (value,) = in_decimals(loads(b'{"a":[%b]}' % text.encode()))["a"]

    assert type(value) is kind


def test_decimals_equal_what_was_sent() -> None:
    assert in_decimals({"a": 13.2, "b": [1]}) == {"a": Decimal("13.2"), "b": [1]}


def test_plain_decimals_are_made_in_a_copy() -> None:
    value = {"a": [Decimal(1), {"b": SentDecimal("1e2")}], "c": [1]}

    copy = in_plain_decimals(value)

    assert type(copy["a"][1]["b"]) is Decimal
    assert type(value["a"][1]["b"]) is SentDecimal  # type: ignore[index]
    assert copy["c"] is value["c"]


def test_of_a_list_without_sent_numbers_there_is_no_copy() -> None:
    value = [Decimal(1), {"b": [1.5, "x", None]}]

    assert in_plain_decimals(value) is value


def test_a_mark_of_the_order_of_bytes_is_passed_over() -> None:
    assert loads(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


def test_a_body_is_utf_8() -> None:
    assert issue_of('{"a":"ñ"}'.encode("utf-16-le")).details == ContentProblem.BODY_NOT_UTF8


def notation(escapes: str) -> bytes:
    """Return JSON with blanks; its number is a float only if the fast reader was enough."""
    return f'{{"a": 13.2, "b": "{escapes}"}}'.encode()


def test_up_to_500_escapes_are_read_fast() -> None:
    assert type(loads(notation(r"\/"))["a"]) is float
    assert type(loads(notation(r"\/" * 500))["a"]) is float
    assert type(loads(notation(r"\/" * 501))["a"]) is Decimal


@pytest.mark.parametrize("escape", [r"\u0080", r"\u00e9", r"\ud7ff", r"\ue000"])
def test_an_escape_of_one_character_is_read_fast(escape: str) -> None:
    assert type(loads(notation(escape))["a"]) is float


@pytest.mark.parametrize("pair", [r"\ud800\udc00", r"\udbff\udfff", r"\ud83e\uddea"])
def test_a_character_of_two_escapes_is_read(pair: str) -> None:
    assert loads(notation(pair))["b"] == json.loads(f'"{pair}"')


def test_what_is_malformed_is_refused_with_its_place() -> None:
    issue = issue_of(b'{"a":\n  }')

    assert (issue.diagnostics, issue.details) == (
        "the body is not valid JSON: a value is missing before this place (line 2, column 3)",
        ContentProblem.JSON_MALFORMED,
    )


def test_a_name_that_is_used_twice_is_named_with_its_object() -> None:
    issue = issue_of(b'{"a":[{"b":1,"c":2,"b":1}]}')

    assert (issue.expression, issue.details) == ("a[0]", ContentProblem.JSON_NAME_REPEATED)


# What is stored


def test_what_is_stored_is_read_beyond_the_limits_of_today() -> None:
    deep, long = b"[" * 65 + b"]" * 65, b"[" + b"0," * 100_000 + b"0]"

    assert dumps(loads_stored(deep)) == deep
    assert dumps(loads_stored(long)) == long
    assert loads_stored(rb'"\u0001"') == "\x01"


@pytest.mark.parametrize("raw", [b"", b"{", b'{"a":1,"a":1}', b"\xff"])
def test_what_is_stored_is_json_without_repeated_names(raw: bytes) -> None:
    with pytest.raises(InvalidContent):
        loads_stored(raw)


def test_json_is_written_compact_in_utf_8_and_in_the_order_given() -> None:
    value = {"b": [1, None, True], "a": {"ñ": "中"}}

    assert dumps(value) == '{"b":[1,null,true],"a":{"ñ":"中"}}'.encode()


def test_json_for_people_has_two_blanks_an_indent() -> None:
    assert pretty({"a": [1]}) == b'{\n  "a": [\n    1\n  ]\n}'


@pytest.mark.parametrize("write", [dumps, pretty])
def test_what_json_has_no_form_for_is_not_written(write: Any) -> None:
    with pytest.raises(TypeError):
        write({"a": {1, 2}})
