"""When a request is sent again: every one that the service may get twice (RFC 9110, 9.2.2)."""

from __future__ import annotations

import random
from collections.abc import Iterator

import httpx

PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each repetition, if the service does not name a longer time."""
_DEFERRED = frozenset({408, 429, 502, 503, 504})
_MAX_PAUSE = 60.0


def pauses() -> Iterator[float]:
    """Yield the pauses of a request, each up to a quarter longer: clients fail together."""
    for pause in PAUSES:
        yield pause * random.uniform(1.0, 1.25)  # noqa: S311 - no secret


def is_deferred(response: httpx.Response) -> bool:
    """Return whether the same request may succeed a little later.

    A quota that is used up until tomorrow is none of these: the caller has to decide.
    """
    if response.status_code not in _DEFERRED:
        return False
    return response.status_code != 429 or _named(response) <= _MAX_PAUSE


def pause_after(response: httpx.Response, pause: float) -> float:
    """Return for how many seconds to wait: what the service names, a minute at most, or longer."""
    return max(pause, min(_named(response), _MAX_PAUSE))


def _named(response: httpx.Response) -> float:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0
