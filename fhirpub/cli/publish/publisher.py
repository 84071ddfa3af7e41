"""Registers submissions with a token of its own, which it renews."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from types import MappingProxyType

import click
from tornado.httpclient import HTTPResponse

from fhirpub.cli.http_client import FHIR_JSON, Call, json_of
from fhirpub.cli.printing import as_text
from fhirpub.cli.publish.retries import PAUSES, Answered, Send, send_until_answered

ID_VARIABLE, SECRET_VARIABLE = "FHIRPUB_CLIENT_ID", "FHIRPUB_CLIENT_SECRET"


class NoToken(click.ClickException):
    """The token endpoint gave no access token."""


@dataclass(frozen=True, slots=True)
class Registration:
    """The body of a registration, and the type of the resource to register."""

    type_name: str
    body: bytes


@dataclass(slots=True)
class Publisher:
    """A client of one service, for many tasks. ``grant`` are the credentials and the audience.

    ``pauses`` makes the pauses before a request is sent again.
    """

    send: Send
    base: str
    grant: Mapping[str, str]
    note: Callable[[str], None]
    pauses: Callable[[], Iterable[float]] = lambda: PAUSES
    _token: str = field(default="", init=False)
    _renewal: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def register(self, registration: Registration) -> Answered:
        """Send a registration and return the response. Raises NoToken and Unreachable."""
        path = f"/fhir/r4/{registration.type_name}/$register"
        return await self.request("POST", path, registration.body)

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answered:
        """Send a request with a token and return the response. Raises NoToken and Unreachable.

        ``path`` begins with a slash. The request must be safe to repeat.
        """
        given = {"Accept": FHIR_JSON, **headers}
        if body is not None:
            given["Content-Type"] = FHIR_JSON
        call = Call(method=method, url=f"{self.base}{path}", headers=given, body=body)
        had_token = bool(self._token)
        token = await self._valid_token()
        answered = await self._send_with(token, call)
        if answered.response.code == HTTPStatus.UNAUTHORIZED and had_token:  # it has expired since
            again = await self._send_with(await self._valid_token(instead_of=token), call)
            return Answered(again.response, answered.attempts + again.attempts)
        return answered

    async def _send_with(self, token: str, call: Call) -> Answered:
        headers = {"Authorization": f"Bearer {token}", **call.headers}
        return await self._send(replace(call, headers=headers))

    async def _valid_token(self, *, instead_of: str = "") -> str:
        """Return the token; request one, only once for all tasks, if it is none or expired."""
        async with self._renewal:
            if self._token == instead_of:
                self._token = ""
                self._token = await self._request_token()
            return self._token

    async def _request_token(self) -> str:
        fields = {"grant_type": "client_credentials", **self.grant}
        answer = (await self._send(Call.form(f"{self.base}/oauth/token", fields))).response
        token = json_of(answer).get("access_token")
        if answer.code == HTTPStatus.OK and isinstance(token, str):
            return token
        raise NoToken(_explain(answer, self.base))

    async def _send(self, call: Call) -> Answered:
        return await send_until_answered(self.send, call, note=self.note, pauses=self.pauses())


def _explain(answer: HTTPResponse, base: str) -> str:
    """Return why there is no token, and what to do about it."""
    body = json_of(answer)
    status = as_text(f"{answer.code} {answer.reason}")
    if location := answer.headers.get("Location"):
        return (
            f"{base} redirects to {as_text(location)} ({status}). Is that the address for --url?"
        )
    if not isinstance(body.get("error"), str):
        return f"{base} is not a service of this kind: no token, but {status}. Is --url right?"
    reason = ": ".join(str(body[name]) for name in ("error", "error_description") if name in body)
    return f"no token: {answer.code} {as_text(reason)}\n{_way_out(answer.code)}"


def _way_out(status: int) -> str:
    if status == HTTPStatus.UNAUTHORIZED:
        return f"Are {ID_VARIABLE} and {SECRET_VARIABLE} those of this service and environment?"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "Wait, and check the credentials before you try again."
    return "Is --audience right? The operator knows it."
