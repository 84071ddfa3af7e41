"""Sends a request until the service has answered it, and gives up when that is no use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import count

import click
from tornado.httpclient import HTTPClientError, HTTPResponse

from fhirpub.cli.http_client import Call
from fhirpub.cli.publish.connection_problems import explain

PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
_LATER = frozenset({408, 429, 502, 503, 504})
_MAX_PAUSE = 60.0


Send = Callable[[Call], Awaitable[HTTPResponse]]
"""Sends a request once. Raises OSError or HTTPClientError if there is no response."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A response, and how often the request was sent until it came."""

    response: HTTPResponse
    attempts: int


class Unreachable(click.ClickException):
    """The service cannot be reached, or puts off every request."""


async def send_until_answered(
    send: Send,
    call: Call,
    *,
    note: Callable[[str], None],
    pauses: Iterable[float] = PAUSES,
) -> Answered:
    """Send the same request until the service has accepted or refused it, after each pause again.

    Requests that were lost, or deferred by the service, are sent again: nothing is published
    twice. ``note`` gets each reason once, until another one follows. Raises Unreachable.
    """
    waits, noted = iter(pauses), ""
    for attempt in count(1):
        try:
            answer = await send(call)
        except (OSError, HTTPClientError) as problem:
            explained = explain(problem, call.url)
            if explained.is_lasting:
                raise Unreachable(explained.text) from problem
            reason, at_least = explained.text, 0.0
        else:
            if answer.code not in _LATER or is_used_up(answer):
                return Answered(answer, attempt)
            reason = f"the service returned {answer.code} {answer.reason}"
            at_least = retry_after(answer)
        pause = next(waits, None)
        if pause is None:
            raise Unreachable(f"{reason}\nGave up; the same command may be run again.")
        wait = max(pause, at_least)
        if reason != noted or at_least > pause:
            note(f"{reason}; sending the same request again in {wait:g} s")
            noted = reason
        await asyncio.sleep(wait)
    raise AssertionError  # count has no end


def is_used_up(answer: HTTPResponse) -> bool:
    """Return whether a quota is used up until tomorrow, which no command waits for."""
    text = answer.headers.get("Retry-After", "")
    return answer.code == 429 and text.isdecimal() and float(text) > _MAX_PAUSE


def retry_after(answer: HTTPResponse) -> float:
    """Return how many seconds the service asks to wait, at most a minute (RFC 9110, 10.2.3)."""
    text = answer.headers.get("Retry-After", "")
    return min(float(text), _MAX_PAUSE) if text.isdecimal() else 0.0
