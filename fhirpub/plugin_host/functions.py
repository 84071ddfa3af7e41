"""What the checks of declarations share: the form of texts, and how functions can be called."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def matches(shape: re.Pattern[str], value: object) -> bool:
    """Return whether a value is a text of a form."""
    return isinstance(value, str) and shape.fullmatch(value) is not None


def wrong_function(field: str, function: Any, given: Sequence[str]) -> Iterator[str]:
    """Report values that are not functions, or functions with the wrong parameters."""
    if not callable(function):
        yield f"{field} must be a function"
    elif not _takes(function, given):
        yield f"{field} must be a function of {' and '.join(given)}"


def wrong_plain_function(name: str, function: Any, given: str) -> Iterator[str]:
    """Report the same of a function that is called without waiting: it cannot be a coroutine."""
    if inspect.iscoroutinefunction(function) or not callable(function):
        yield f"has {name} that is not a function, or is a coroutine"
    elif not _takes(function, [given]):
        yield f"has {name} that is not a function of {given}"


def _takes(function: Callable[..., Any], given: Sequence[str]) -> bool:
    try:
        inspect.signature(function).bind(*given)
    except TypeError:
        return False
    except ValueError:  # written in C, it does not say what it takes
        pass
    return True
