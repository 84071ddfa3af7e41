"""Finds functions of a declaration that cannot be called as they will be."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any


def wrong_function(field: str, function: Any, given: Sequence[str]) -> Iterator[str]:
    """Report values that are not functions, or functions with the wrong parameters."""
    if not callable(function):
        yield f"{field} must be a function"
        return
    try:
        inspect.signature(function).bind(*given)
    except TypeError:
        yield f"{field} must be a function of {' and '.join(given)}"
    except ValueError:  # written in C, it does not say what it takes
        return
