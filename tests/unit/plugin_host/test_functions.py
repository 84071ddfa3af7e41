"""Functions of declarations are checked before they are called."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fhirpub.plugin_host.functions import matches, wrong_function, wrong_plain_function


async def coroutine(_request: object) -> None:
    """Return nothing, later."""


@pytest.mark.parametrize(
    ("function", "problems"),
    [
        (lambda request: request, []),
        (dict, []),  # written in C, it does not say what it takes
        (lambda: None, ["has a run that is not a function of OperationRequest"]),
        (coroutine, ["has a run that is not a function, or is a coroutine"]),
        ("run", ["has a run that is not a function, or is a coroutine"]),
    ],
    ids=["right", "in-c", "without-arguments", "coroutine", "text"],
)
def test_a_function_must_take_what_it_is_called_with(function: Any, problems: list[str]) -> None:
    assert [*wrong_plain_function("a run", function, "OperationRequest")] == problems


@pytest.mark.parametrize(
    ("function", "problems"),
    [
        (lambda one, other: (one, other), []),
        (dict, []),
        (coroutine, ["check must be a function of resource and context"]),
        (lambda: None, ["check must be a function of resource and context"]),
        (lambda one, two, three: None, ["check must be a function of resource and context"]),
        (lambda one, two, three=3: None, []),
        ("run", ["check must be a function"]),
        (None, ["check must be a function"]),
    ],
    ids=["right", "in-c", "of-one", "without-arguments", "of-three", "of-more", "text", "none"],
)
def test_a_function_of_two_must_take_both(function: Any, problems: list[str]) -> None:
    assert [*wrong_function("check", function, ("resource", "context"))] == problems


def test_a_function_that_is_waited_for_may_be_a_coroutine() -> None:
    assert [*wrong_function("check", coroutine, ("resource",))] == []


@pytest.mark.parametrize(
    ("value", "is_right"),
    [("ab", True), ("abc", False), ("", False), (None, False), (12, False), (b"ab", False)],
)
def test_a_text_must_have_the_whole_form(value: object, *, is_right: bool) -> None:
    assert matches(re.compile("[a-z]{2}"), value) is is_right
