"""Sends groups of registrations, and recognizes responses after which no other can succeed."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import chain, repeat

import click
from tornado.httpclient import HTTPResponse

from fhirpub.cli.http_client import json_of
from fhirpub.cli.publish.publisher import Publisher, Registration
from fhirpub.cli.publish.retries import PAUSES, Answered

SendGroup = Callable[[Sequence[Registration]], AsyncGenerator[Answered, None]]
"""Sends a group of registrations and yields their responses in the same order, each at once."""
_NOT_SERVED = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})
_ADVICE = "Wait for that time before you continue."


class NoneAccepted(click.ClickException):
    """The service accepts no registration of this client, whatever it contains."""


@dataclass(slots=True)
class Patience:
    """The pauses between attempts, as long as some registration was answered recently.

    ``seconds`` is for how long a service may answer none. A limit of the rate delays many
    requests repeatedly, and is no reason to give up.
    """

    seconds: float
    _since: float = field(default_factory=time.monotonic, init=False)

    def renew(self) -> None:
        """Begin to count again: the service has answered."""
        self._since = time.monotonic()

    def pauses(self) -> Iterator[float]:
        """Yield the seconds to wait before each further attempt."""
        for pause in chain(PAUSES, repeat(PAUSES[-1])):
            if time.monotonic() - self._since > self.seconds:
                return
            yield pause


@dataclass(frozen=True, slots=True)
class SingleCalls:
    """Sends each registration of a group by a call of its own."""

    publisher: Publisher
    patience: Patience

    async def send(self, group: Sequence[Registration]) -> AsyncGenerator[Answered, None]:
        """Yield the responses. Raises NoToken, Unreachable and NoneAccepted."""
        for registration in group:
            answered = await self.publisher.register(registration)
            _refuse_useless(answered.response, self.publisher.base)
            self.patience.renew()
            yield answered


def _refuse_useless(answer: HTTPResponse, base: str) -> None:
    """Raise NoneAccepted if the others would get the same response."""
    status = f"{answer.code} {answer.reason}"
    if answer.code == HTTPStatus.CREATED and "/_history/" in answer.headers.get("Location", ""):
        return
    if answer.code == HTTPStatus.UNAUTHORIZED:
        raise NoneAccepted(
            f"the service does not accept the token that it issued ({status}). "
            "Is --audience right?"
        )
    is_outcome = json_of(answer).get("resourceType") == "OperationOutcome"
    if answer.code < 400 or (answer.code in _NOT_SERVED and not is_outcome):
        raise NoneAccepted(f"{base} is not a service of this kind: {status}. Is --url right?")
    if answer.code == HTTPStatus.FORBIDDEN:
        raise NoneAccepted(f"the service refuses this client ({status}){_reason(answer)}")
    if answer.code == HTTPStatus.TOO_MANY_REQUESTS:
        after = answer.headers.get("Retry-After", "")
        raise NoneAccepted(f"a quota is used up for {after} s{_reason(answer)}\n{_ADVICE}")


def _reason(answer: HTTPResponse) -> str:
    issues = json_of(answer).get("issue")
    first = issues[0] if isinstance(issues, list) and issues else {}
    text = first.get("diagnostics") if isinstance(first, dict) else ""
    return f": {text}" if isinstance(text, str) and text else ""
