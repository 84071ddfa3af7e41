"""How deep a body may be, and how many values it may hold: at the limit, and beyond."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.strict_json import (
    MAX_DEPTH,
    MAX_NODES,
    dumps,
    loads,
    refuse_excess,
)
from fhirpub.problems import ContentProblem

TOO_DEEP = "the body is nested deeper than 64 levels"
TOO_MANY = "the body holds too many values"


def issue_of(raw: bytes) -> Issue:
    with pytest.raises(InvalidContent) as raised:
        loads(raw)
    (issue,) = raised.value.issues
    return issue


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def many(count: int) -> bytes:
    return b"[" + b",".join([b"0"] * count) + b"]"


# Depth


def test_lists_are_read_down_to_64_levels() -> None:
    assert dumps(loads(nested(64))) == nested(64)


@pytest.mark.parametrize("levels", [65, 254, 300, 1_000, 1_100, 90_000])
def test_deeper_lists_are_refused(levels: int) -> None:
    with pytest.raises(InvalidContent):
        loads(nested(levels))


@pytest.mark.parametrize("levels", [65, 300])
def test_the_refusal_of_a_deep_body_names_the_limit(levels: int) -> None:
    assert (issue_of(nested(levels)).diagnostics, issue_of(nested(levels)).details) == (
        TOO_DEEP,
        ContentProblem.BODY_TOO_COMPLEX,
    )


def test_many_brackets_side_by_side_are_not_deep() -> None:
    raw = b"[" + b",".join([b"[]"] * 65) + b"]"

    assert len(loads(raw)) == 65


def test_a_deep_part_of_a_long_body_is_refused() -> None:
    raw = b'{"note":"' + b"x" * 300_000 + b'","deep":' + nested(MAX_DEPTH) + b"}"

    assert issue_of(raw).diagnostics == TOO_DEEP


def test_a_long_body_of_64_levels_is_read() -> None:
    raw = b'{"note":"' + b"x" * 300_000 + b'","more":[],"deep":' + nested(MAX_DEPTH - 1) + b"}"

    assert loads(raw)["more"] == []


# Number of values


def test_a_hundred_thousand_values_are_read() -> None:
    assert len(loads(many(MAX_NODES))) == MAX_NODES


@pytest.mark.parametrize("more", [1, 2, 100])
def test_one_value_more_is_too_many(more: int) -> None:
    issue = issue_of(many(MAX_NODES + more))

    assert (issue.diagnostics, issue.details) == (TOO_MANY, ContentProblem.BODY_TOO_COMPLEX)


def test_values_of_all_levels_are_counted_together() -> None:
    half = MAX_NODES // 2
    raw = b'{"a":%b,"b":%b}'

    assert loads(raw % (many(half - 1), many(half - 1)))["b"][-1] == 0
    assert issue_of(raw % (many(half), many(half - 1))).diagnostics == TOO_MANY


def test_members_of_objects_are_counted_as_values() -> None:
    members = ",".join(f'"m{number}":0' for number in range(MAX_NODES + 1))

    assert issue_of(f"{{{members}}}".encode()).diagnostics == TOO_MANY


def test_too_many_brackets_are_refused_before_they_are_read() -> None:
    assert issue_of(b"[" * (MAX_NODES + 1)).diagnostics == TOO_MANY
    assert issue_of(b'{"a":' * (MAX_NODES + 1)).diagnostics == TOO_MANY
    assert issue_of(b"," * (MAX_NODES + 1)).diagnostics == TOO_MANY


def test_as_many_brackets_as_values_may_be_are_refused_for_what_they_are() -> None:
    assert issue_of(b"," * MAX_NODES).details == ContentProblem.JSON_MALFORMED


@pytest.mark.parametrize(
    "text",
    [
        "," * 200_000,
        "[{" * 200_000,
        r"\"" + "," * 200_000,
        r"\\" + "," * 200_000,
        r"\\\"" + "," * 200_000,
    ],
)
def test_commas_and_brackets_in_a_string_are_no_values(text: str) -> None:
    raw = f'{{"before":"a\\\\","note":"{text}","after":"b"}}'.encode()

    assert loads(raw) == json.loads(raw)


def test_values_behind_a_string_that_ends_with_a_backslash_are_counted() -> None:
    assert issue_of(b'["a\\\\",' + many(MAX_NODES + 2) + b',"b"]').diagnostics == TOO_MANY


def test_more_strings_than_there_may_be_values_and_names_are_too_many() -> None:
    commas = b'"' + b"," * (MAX_NODES + 1) + b'"'

    most = commas + b'""' * (2 * MAX_NODES - 1)
    assert issue_of(most).details == ContentProblem.JSON_MALFORMED
    assert issue_of(most + b'""').diagnostics == TOO_MANY


# What was made elsewhere: resources that were read from XML


def lists(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_value_is_refused_beyond_64_levels() -> None:
    refuse_excess(lists(64))
    with pytest.raises(InvalidContent, match=f"^{TOO_DEEP}$"):
        refuse_excess(lists(65))


def test_levels_of_objects_count_as_those_of_lists() -> None:
    value: Any = {}
    for _ in range(63):
        value = {"a": value}

    refuse_excess(value)
    with pytest.raises(InvalidContent, match=f"^{TOO_DEEP}$"):
        refuse_excess([value])


def test_each_of_several_values_is_looked_at_down_to_the_limit() -> None:
    refuse_excess([lists(63), {"a": []}, [], 1])
    for value in ([lists(64), {"a": []}, []], [[], lists(64), 1], {"a": lists(64), "b": [[]]}):
        with pytest.raises(InvalidContent, match=f"^{TOO_DEEP}$"):
            refuse_excess(value)


def test_a_value_may_be_deeper_than_functions_can_call_each_other() -> None:
    with pytest.raises(InvalidContent, match=f"^{TOO_DEEP}$"):
        refuse_excess(lists(100_000))


def test_a_value_is_refused_beyond_a_hundred_thousand_values() -> None:
    refuse_excess([0] * MAX_NODES)
    with pytest.raises(InvalidContent, match=f"^{TOO_MANY}$"):
        refuse_excess([0] * (MAX_NODES + 1))


def test_values_below_others_are_counted_too() -> None:
    refuse_excess([[0] * (MAX_NODES - 1)])
    with pytest.raises(InvalidContent, match=f"^{TOO_MANY}$"):
        refuse_excess([{"a": 0, "b": [0] * (MAX_NODES - 2)}])


@pytest.mark.parametrize("value", [None, 1, "text", [], {}])
def test_a_small_value_is_not_refused(value: Any) -> None:
    refuse_excess(value)
    refuse_excess(value, written=dumps(value))


def test_a_deep_value_is_refused_with_its_json_at_hand() -> None:
    with pytest.raises(InvalidContent, match=f"^{TOO_DEEP}$"):
        refuse_excess(lists(65), written=dumps(lists(65)))


def test_a_large_value_is_refused_with_its_json_at_hand() -> None:
    with pytest.raises(InvalidContent, match=f"^{TOO_MANY}$"):
        refuse_excess([0] * (MAX_NODES + 1), written=dumps([0] * (MAX_NODES + 1)))


def test_up_to_64_brackets_show_that_a_value_is_not_deep() -> None:
    refuse_excess(lists(65), written=b"[" * 64)
    refuse_excess([0] * (MAX_NODES + 1), written=b"," * (MAX_NODES - 64))
    with pytest.raises(InvalidContent):
        refuse_excess(lists(65), written=b"[" * 65)
    with pytest.raises(InvalidContent):
        refuse_excess([0] * (MAX_NODES + 1), written=b"," * (MAX_NODES - 63))
