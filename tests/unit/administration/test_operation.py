"""What a parameter of an operation takes, up to its bounds."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration.operation import Parameter

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
    ],
)
def test_a_value_beyond_the_bounds_is_refused(
    parameter: Parameter, value: Any, problem: str
) -> None:
    assert parameter.problem(value) == problem
