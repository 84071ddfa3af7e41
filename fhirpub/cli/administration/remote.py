"""Calls operations of a running service over its interface for administration."""

from __future__ import annotations

import math
import re
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import orjson
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPResponse

from fhirpub.administration.operation import Operation
from fhirpub.auth.assertions.signing import sign_assertion
from fhirpub.auth.assertions.verification import TYPE as ASSERTION_TYPE
from fhirpub.cli.http_client import Call, http_client, json_of, send
from fhirpub.cli.publish.connection_problems import explain
from fhirpub.config.loader import variable
from fhirpub.errors import ConfigurationError, FhirpubError, NoSuchRecord
from fhirpub.problems import RequestProblem
from fhirpub.runtime.clock import now_ms

_BASE = "/admin/v1"
_KEY_VARIABLE = "FHIRPUB_ADMIN_KEY"
_NO_RECORD = re.compile(r"there is no (?P<kind>[a-z]+) (?P<id>.*)", re.DOTALL)
_REFUSED = "the service does not accept the key of --admin-key or FHIRPUB_ADMIN_KEY"
_NO_KEY = (
    "--admin-url needs a key: name a file in --admin-key, or set FHIRPUB_ADMIN_KEY to the "
    "bootstrap key"
)


class RemoteRefusal(FhirpubError):
    """The service has refused an operation; the text is the one that it gave."""


@asynccontextmanager
async def open_remote(url: str, key: Path | None) -> AsyncGenerator[RemoteService, None]:
    """Open connections to the service at a URL until the block ends.

    ``key`` is the file of the key. Raises ConfigurationError.
    """
    address = urlsplit(url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ConfigurationError(f"--admin-url: {url} is no URL such as https://admin.example.org")
    base = url.rstrip("/").removesuffix(_BASE) + _BASE
    async with http_client() as client:
        yield RemoteService(base, client, _read_key(key))


def _read_key(file: Path | None) -> str:
    """Return what is in the file of a key, or else in the variable. Raises ConfigurationError."""
    if file is None:
        text = variable(_KEY_VARIABLE)
    else:
        try:
            text = file.read_text()
        except (OSError, UnicodeError) as problem:
            reason = getattr(problem, "strerror", "") or "it is no text"
            raise ConfigurationError(f"--admin-key: cannot read {file}: {reason}") from None
    if not text.strip():
        raise ConfigurationError(_NO_KEY)
    return text.strip()


class RemoteService:
    """Runs operations on a service."""

    def __init__(self, base: str, client: AsyncHTTPClient, key: str) -> None:
        self._base = base
        self._client = client
        self._key = key
        self._token, self._renewed_at = "", 0.0

    async def __call__(self, operation: Operation, **arguments: Any) -> Any:
        """Run an operation and return its result; None stands for an argument that is not given.

        Raises:
            FhirpubError: The service refuses it, or cannot be reached.
        """
        checked = operation.check(arguments)
        if time.monotonic() >= self._renewed_at:
            self._token, seconds = await self._authenticate()
            self._renewed_at = time.monotonic() + seconds / 2
        response = await self._send(self._call(operation, checked))
        if response.code == operation.status:
            return orjson.loads(response.body)
        raise _refusal(response)

    async def _authenticate(self) -> tuple[str, float]:
        """Return the bootstrap key, or the token that an assertion gets; and its seconds."""
        if not self._key.startswith("{"):
            return self._key, math.inf
        key = _parse_key(self._key)
        url, name = f"{self._base}/token", str(key.get("name", ""))
        fields = {
            "grant_type": "client_credentials",
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": _sign(key, name, url),
        }
        response = await self._send(Call.form(url, fields))
        said = json_of(response)
        if response.code != HTTPStatus.OK:
            reason = said.get("error_description") or f"HTTP status {response.code}"
            raise RemoteRefusal(f"{_REFUSED}: {reason}")
        seconds = said.get("expires_in")
        if not isinstance(seconds, int | float):
            seconds = math.inf
        return str(said.get("access_token", "")), seconds

    def _call(self, operation: Operation, arguments: Mapping[str, Any]) -> Call:
        """Return the request: each argument in its place."""
        places = _by_place(operation, arguments)
        path = operation.path
        for name, value in places["path"].items():
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        query = {name: _as_text(value) for name, value in places["query"].items()}
        has_body = any(one.place == "body" for one in operation.parameters)
        headers = {"Authorization": f"Bearer {self._token}"}
        if has_body:
            headers["Content-Type"] = "application/json"
        return Call(
            method=operation.method,
            url=f"{self._base}{path}{'?' * bool(query)}{urlencode(query, doseq=True)}",
            headers=headers,
            body=orjson.dumps(places["body"]) if has_body else _empty(operation.method),
        )

    async def _send(self, call: Call) -> HTTPResponse:
        try:
            return await send(self._client, call)
        except (OSError, HTTPClientError) as problem:
            advice = explain(problem, call.url, option="--admin-url", certificates="SSL_CERT_FILE")
            raise RemoteRefusal(advice.text) from None


def _parse_key(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ConfigurationError("--admin-key is no JSON") from None


def _sign(key: Any, name: str, url: str) -> str:
    try:
        return sign_assertion(key, subject=name, audience=url, clock=now_ms)
    except ConfigurationError as problem:
        raise ConfigurationError(f"--admin-key {problem}") from None


def _by_place(
    operation: Operation, arguments: Mapping[str, Any]
) -> Mapping[str, Mapping[str, Any]]:
    """Return the arguments by their names, for each place in the request."""
    places: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "body": {}}
    for parameter in operation.parameters:
        if parameter.name in arguments:
            places[parameter.place][parameter.name] = arguments[parameter.name]
    return places


def _empty(method: str) -> bytes | None:
    return None if method in ("GET", "DELETE") else b""


def _as_text(value: Any) -> str | Sequence[str]:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, list) else str(value)


def _refusal(response: HTTPResponse) -> FhirpubError:
    """Return the refusal that the service has sent."""
    outcome = json_of(response)
    issues = outcome.get("issue", []) if outcome.get("resourceType") == "OperationOutcome" else []
    texts = [_text_of(issue) for issue in issues]
    if not texts:
        return RemoteRefusal(
            f"HTTP status {response.code} is no response of the interface for administration: "
            f"is --admin-url right?"
        )
    if response.code == HTTPStatus.UNAUTHORIZED:
        return RemoteRefusal(f"{_REFUSED}: {texts[0]}")
    match = _NO_RECORD.fullmatch(texts[0])
    if _problem_of(issues[0]) == RequestProblem.RECORD_UNKNOWN and match:
        return NoSuchRecord(match["kind"], match["id"])
    return RemoteRefusal("; ".join(texts))


def _text_of(issue: Mapping[str, Any]) -> str:
    place = next(iter(issue.get("expression", ())), "")
    return f"{place}: {issue.get('diagnostics', '')}".removeprefix(": ")


def _problem_of(issue: Mapping[str, Any]) -> str:
    coding = issue.get("details", {}).get("coding", ({},))
    return str(coding[0].get("code", ""))
