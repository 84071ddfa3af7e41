"""Functions of declarations are checked before they are called."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.plugin_host.functions import wrong_plain_function


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
