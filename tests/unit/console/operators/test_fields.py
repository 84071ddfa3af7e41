"""Fields of forms: how each parameter is entered, shown again, and read."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration.operation import Operation, Parameter
from fhirpub.console.operators.fields import Field, fields_of, filled_with, read_given
from fhirpub.console.operators.words import label_of


async def nothing(_administration: object, **given: Any) -> Any:
    return given


def a_parameter(name: str = "name", **changes: Any) -> Parameter:
    return Parameter(name=name, text="", **changes)


def an_operation(*parameters: Parameter) -> Operation:
    return Operation(
        command="thing add", method="POST", path="/x", summary="", run=nothing,
        parameters=parameters,
    )  # fmt: skip


def read(parameter: Parameter, *texts: str, **others: Any) -> Any:
    given = read_given(an_operation(parameter), {parameter.name: list(texts), **others})
    return given.get(parameter.name, "nothing")


@pytest.mark.parametrize(
    ("changes", "control"),
    [
        ({}, "text"),
        ({"type": "integer"}, "number"),
        ({"type": "boolean"}, "checkbox"),
        ({"type": "strings"}, "lines"),
        ({"type": "object"}, "json"),
        ({"type": "objects"}, "json"),
        ({"type": "instant"}, "instant"),
        ({"choices": ("a",)}, "select"),
    ],
)
def test_each_type_has_a_control(changes: dict[str, Any], control: str) -> None:
    (field,) = fields_of(an_operation(a_parameter(**changes)), {}, {})

    assert field.control == control
    assert field.is_kept


@pytest.mark.parametrize("name", ["bearer_token", "client_secret", "signing_secret", "token"])
def test_a_secret_is_entered_unseen_and_not_shown_again(name: str) -> None:
    (field,) = fields_of(an_operation(a_parameter(name)), {name: ["s3cret"]}, {})

    assert (field.control, field.is_kept) == ("password", False)
    assert "s3cret" not in repr(field)


def test_a_field_has_what_was_entered_and_what_is_wrong_with_it() -> None:
    operation = an_operation(a_parameter("one"), a_parameter("other_one", type="instant"))

    one, other = fields_of(operation, {"one": ["x", "y"]}, {"other_one": "is wrong"})

    assert (one.name, one.label, one.value, one.problem) == ("one", "One", "x", "")
    assert (other.label, other.value, other.problem) == ("Other one (UTC)", "", "is wrong")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (["a", "b"], "a\nb"),
        (None, ""),
        (7, "7"),
        (True, "true"),
        ({"a": 1}, '{"a":1}'),
    ],
)
def test_a_field_is_filled_with_what_a_record_has(value: Any, text: str) -> None:
    fields = fields_of(an_operation(a_parameter()), {}, {})

    (field,) = filled_with(fields, {"name": value})

    assert field.value == text


def test_what_was_entered_is_not_replaced_by_what_a_record_has() -> None:
    fields = fields_of(an_operation(a_parameter()), {"name": ["entered"]}, {})

    assert [one.value for one in filled_with(fields, {"name": "x"})] == ["entered"]


def test_a_part_of_the_path_is_not_filled() -> None:
    fields: list[Field] = fields_of(an_operation(a_parameter(place="path")), {}, {})

    assert [one.value for one in filled_with(fields, {"name": "x"})] == [""]


def test_what_a_record_does_not_have_leaves_a_field_empty() -> None:
    fields = fields_of(an_operation(a_parameter()), {}, {})

    assert [one.value for one in filled_with(fields, {"other": "x"})] == [""]


@pytest.mark.parametrize(
    ("changes", "text", "value"),
    [
        ({}, " x ", "x"),
        ({"type": "integer"}, "7", 7),
        ({"type": "integer"}, "x", "x"),
        ({"type": "boolean"}, "true", True),
        ({"type": "strings"}, "a\r\n\r\n b \nc", ["a", "b", "c"]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "object"}, "{", "{"),
        ({"type": "objects"}, "[{}]", [{}]),
        ({"type": "instant"}, "2026-11-21T10:00", "2026-11-21T10:00:00Z"),
        ({"type": "instant"}, "2026-11-21T10:00:05", "2026-11-21T10:00:05Z"),
        ({"type": "instant"}, "2026-11-21T10:00:05Z", "2026-11-21T10:00:05Z"),
        ({"type": "instant"}, "2026-11-21T10:00:05+02:00", "2026-11-21T10:00:05+02:00"),
        ({"type": "instant"}, "2026-11-21T10:00:05-05:00", "2026-11-21T10:00:05-05:00"),
        ({"type": "instant"}, "2026-11-21", "2026-11-21T00:00:00Z"),
    ],
)
def test_a_text_is_read_as_the_parameter_is_declared(
    changes: dict[str, Any], text: str, value: Any
) -> None:
    assert read(a_parameter(**changes), text) == value


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_an_empty_field_gives_nothing(text: str) -> None:
    assert read(a_parameter(), text) == "nothing"
    assert read(a_parameter()) == "nothing"


def test_a_field_that_was_emptied_gives_what_is_empty() -> None:
    assert read(a_parameter(), "", filled=["other", "name"]) == ""
    assert read(a_parameter(type="strings"), "", filled=["name"]) == []
    assert read(a_parameter(), "x", filled=["name"]) == "x"


def test_a_field_that_was_empty_before_is_not_emptied_with_another() -> None:
    assert read(a_parameter(), "", filled=["other"]) == "nothing"


def test_fields_of_no_parameter_are_passed_over() -> None:
    assert read_given(an_operation(a_parameter()), {"other": ["x"], "proof": ["p"]}) == {}


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("url", "URL"),
        ("client_id", "Client"),
        ("valid_days", "Valid days"),
        ("disabled", "State"),
        ("x", "X"),
    ],
)
def test_members_have_a_name_that_pages_write(name: str, label: str) -> None:
    assert label_of(name) == label
