"""What a parameter of an operation takes, up to its bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.administration.operation import Operation, Parameter, why_no_line, why_no_name
from fhirpub.errors import MAX_ISSUES, InvalidContent

NAMES = Parameter(name="names", text="", type="strings", minimum=1, maximum=2, max_length=3)
COUNT = Parameter(name="count", text="", type="integer", minimum=0, maximum=5)
PART = Parameter(name="part", text="", place="path")
ITEMS = Parameter(name="items", text="", type="objects", maximum=1)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [(NAMES, ["a"]), (NAMES, ["abc", "b"]), (COUNT, 0), (COUNT, 5), (PART, "x"), (ITEMS, [{}])],
)
def test_a_value_within_the_bounds_is_taken(parameter: Parameter, value: Any) -> None:
    assert parameter.problem(value) == ""


@pytest.mark.parametrize(
    ("parameter", "value", "problem"),
    [
        (NAMES, [], "must have at least 1"),
        (NAMES, ["a", "b", "c"], "has more than 2 strings"),
        (NAMES, ["abcd"], "has more than 3 characters"),
        (NAMES, ["a", 1], "must be a list of strings"),
        (COUNT, -1, "must be at least 0"),
        (COUNT, 6, "must be at most 5"),
        (COUNT, True, "must be a whole number"),
        (COUNT, 1.0, "must be a whole number"),
        (PART, "", "must not be empty"),
        (ITEMS, [{}, {}], "has more than 1 objects"),
        (ITEMS, [{}, 1], "must be a list of objects"),
        (ITEMS, [1, {}], "must be a list of objects"),
        (NAMES, ["abc", "abcd"], "has more than 3 characters"),
    ],
)
def test_a_value_beyond_the_bounds_is_refused(
    parameter: Parameter, value: Any, problem: str
) -> None:
    assert parameter.problem(value) == problem


AT = Parameter(name="at", text="", type="instant")
FLAG = Parameter(name="flag", text="", type="boolean")
MANY = Parameter(name="many", text="", type="strings")
THINGS = Parameter(name="things", text="", type="objects")
KIND = Parameter(name="kind", text="", choices=("a", "b"))
ONE = Parameter(name="one", text="", type="object")
TEXT = Parameter(name="text", text="")


async def nothing(_administration: object, **given: Any) -> dict[str, Any]:
    return given


def an_operation(*parameters: Parameter, **changes: Any) -> Operation:
    usual: dict[str, Any] = {
        "command": "thing add",
        "method": "POST",
        "path": "/things/{part}/{other}",
        "summary": "",
        "run": nothing,
        "parameters": parameters,
    }
    return Operation(**usual | changes)


def problems(operation: Operation, **given: Any) -> dict[str, str]:
    try:
        operation.check(given)
    except InvalidContent as refused:
        return {issue.expression: issue.diagnostics for issue in refused.issues}
    return {}


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (TEXT, ""),
        (TEXT, "x" * 2_000),
        (FLAG, True),
        (FLAG, False),
        (ONE, {}),
        (KIND, "b"),
        (AT, "2026-11-21T10:00:00Z"),
        (Parameter(name="n", text="", type="integer"), -(10**30)),
        (MANY, []),
        (MANY, ["x"] * 1_000),
        (THINGS, [{}] * 1_000),
    ],
)
def test_a_value_of_the_type_is_taken(parameter: Parameter, value: Any) -> None:
    assert parameter.problem(value) == ""


@pytest.mark.parametrize(
    ("parameter", "value", "problem"),
    [
        (TEXT, 5, "must be a string"),
        (TEXT, ["x"], "must be a string"),
        (TEXT, "x" * 2_001, "has more than 2000 characters"),
        (FLAG, "true", "must be true or false"),
        (FLAG, 1, "must be true or false"),
        (ONE, [], "must be an object"),
        (KIND, "c", "must be one of a, b"),
        (KIND, "", "must be one of a, b"),
        (AT, "2026-11-21", "must be a time such as 2026-11-21T10:00:00Z"),
        (AT, 1_795_000_000_000, "must be a time such as 2026-11-21T10:00:00Z"),
        (COUNT, "5", "must be a whole number"),
        (ITEMS, {}, "must be a list of objects"),
        (ITEMS, ["x"], "must be a list of objects"),
        (NAMES, "ab", "must be a list of strings"),
        (
            Parameter(name="l", text="", type="strings"),
            ["x"] * 1_001,
            "has more than 1000 strings",
        ),
        (THINGS, [{}] * 1_001, "has more than 1000 objects"),
    ],
)
def test_a_value_of_another_type_is_refused(
    parameter: Parameter, value: Any, problem: str
) -> None:
    assert parameter.problem(value) == problem


def test_a_rule_is_asked_about_a_text_and_about_each_string_of_a_list() -> None:
    def rule(text: str) -> str:
        return "is bad" if text == "bad" else ""

    text = Parameter(name="t", text="", rule=rule)
    texts = Parameter(name="t", text="", type="strings", rule=rule)

    assert (text.problem("good"), text.problem("bad")) == ("", "is bad")
    assert (texts.problem(["good"]), texts.problem(["good", "bad"])) == ("", "is bad")


def test_an_operation_gets_a_time_in_milliseconds_and_all_else_as_it_is() -> None:
    operation = an_operation(AT, COUNT, TEXT)

    given = {"at": "1970-01-01T00:00:05Z", "count": 0, "text": None}
    assert operation.arguments(given) == {"at": 5_000, "count": 0}


@pytest.mark.parametrize(
    ("parameter", "texts", "value"),
    [
        (TEXT, ["a", "b"], "b"),
        (NAMES, ["a", "b"], ["a", "b"]),
        (COUNT, ["5"], 5),
        (COUNT, ["1", "2"], 2),
        (COUNT, ["-5"], -5),
        (COUNT, ["9" * 18], 10**18 - 1),
        (COUNT, ["9" * 19], "9" * 19),
        (COUNT, ["5.0"], "5.0"),
        (COUNT, ["+5"], "+5"),
        (COUNT, [" 5"], " 5"),
        (COUNT, ["\u0663"], "\u0663"),
        (FLAG, ["true"], True),
        (FLAG, ["false"], False),
        (FLAG, ["1"], "1"),
        (FLAG, ["True"], "True"),
    ],
)
def test_the_texts_of_a_query_stand_for_a_value(
    parameter: Parameter, texts: list[str], value: Any
) -> None:
    found = parameter.from_texts(texts)

    assert (found, type(found)) == (value, type(value))


def test_everything_that_is_wrong_with_arguments_is_named() -> None:
    needed = Parameter(name="needed", text="", required=True)

    assert problems(an_operation(needed, COUNT), count=9, cuont=1, zzz=2) == {
        "count": "must be at most 5",
        "cuont": "is not a parameter here; did you mean count?",
        "zzz": "is not a parameter here; known are needed, count",
        "needed": "is required",
    }


def test_an_operation_without_parameters_knows_none() -> None:
    assert problems(an_operation(), zzz=2) == {"zzz": "is not a parameter here; known are none"}


def test_what_is_required_is_not_given_by_nothing_but_by_what_is_empty() -> None:
    needed = Parameter(name="needed", text="", required=True)

    assert problems(an_operation(needed), needed=None) == {"needed": "is required"}
    assert problems(an_operation(needed), needed="") == {}


def test_no_more_problems_are_named_than_a_response_has() -> None:
    given = {f"p{number}": 1 for number in range(MAX_ISSUES + 5)}

    assert len(problems(an_operation(), **given)) == MAX_ISSUES


@pytest.mark.parametrize(
    ("command", "action", "name", "audited"),
    [
        ("tenant add", "", "tenantAdd", "tenant.add"),
        ("tenant add --key", "", "tenantAddKey", "tenant.add"),
        ("client add-person", "client.add", "clientAddPerson", "client.add"),
        ("restore", "", "restore", "restore"),
        ("erase report --dry-run", "", "eraseReportDryRun", "erase.report"),
    ],
)
def test_an_operation_has_the_names_of_its_command(
    command: str, action: str, name: str, audited: str
) -> None:
    operation = an_operation(command=command, action=action)

    assert (operation.name, operation.audited_as) == (name, audited)


def test_the_blanks_of_a_path_are_named_in_their_order() -> None:
    assert an_operation().blanks == ["part", "other"]


def test_a_value_that_is_required_must_be_right_as_well() -> None:
    operation = an_operation(replace(COUNT, required=True), replace(NAMES, required=True))

    assert problems(operation, count="x", names=[]) == {
        "count": "must be a whole number",
        "names": "must have at least 1",
    }
    assert problems(operation, count=1) == {"names": "is required"}


@pytest.mark.parametrize(
    ("text", "is_line", "is_name"),
    [("a b", True, True), ("", True, False), (" ", True, False), ("a\nb", False, False),
     ("a\tb", False, False), ("\u200b", False, False), ("Süd", True, True)],
)  # fmt: skip
def test_a_name_is_a_line_that_is_not_blank(text: str, *, is_line: bool, is_name: bool) -> None:
    assert (why_no_line(text) == "") is is_line
    assert (why_no_name(text) == "") is is_name
