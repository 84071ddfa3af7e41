"""Registers submissions with a token of its own, which it renews."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import click
from tornado.httpclient import AsyncHTTPClient, HTTPResponse

from fhirpub.cli.http_client import FHIR_JSON, Call, json_of
from fhirpub.cli.printing import as_text
from fhirpub.cli.publish.retries import send_until_answered
from fhirpub.cli.publish.submission import Submission

ID_VARIABLE, SECRET_VARIABLE = "FHIRPUB_CLIENT_ID", "FHIRPUB_CLIENT_SECRET"


class NoToken(click.ClickException):
    """The token endpoint gave no access token."""


@dataclass(slots=True)
class Publisher:
    """A client of one service. ``grant`` are the credentials and the audience."""

    client: AsyncHTTPClient
    base: str
    grant: Mapping[str, str]
    note: Callable[[str], None]
    _token: str = field(default="", init=False)

    async def register(self, submission: Submission) -> HTTPResponse:
        """Register a submission and return the response. Raises NoToken and Unreachable."""
        had_token = bool(self._token)
        answer = await self._register(submission)
        if answer.code == HTTPStatus.UNAUTHORIZED and had_token:  # it has expired since
            self._token = ""
            answer = await self._register(submission)
        return answer

    async def _register(self, submission: Submission) -> HTTPResponse:
        self._token = self._token or await self._request_token()
        call = Call(
            method="POST",
            url=f"{self.base}/fhir/r4/{submission.type_name}/$register",
            headers={
                "Authorization": f"Bearer {self._token}",
                "Content-Type": FHIR_JSON,
                "Accept": FHIR_JSON,
            },
            body=submission.to_json(),
        )
        return await send_until_answered(self.client, call, note=self.note)

    async def _request_token(self) -> str:
        fields = {"grant_type": "client_credentials", **self.grant}
        call = Call.form(f"{self.base}/oauth/token", fields)
        answer = await send_until_answered(self.client, call, note=self.note)
        token = json_of(answer).get("access_token")
        if answer.code == HTTPStatus.OK and isinstance(token, str):
            return token
        raise NoToken(_explain(answer, self.base))


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
