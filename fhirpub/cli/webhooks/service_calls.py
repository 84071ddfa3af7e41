"""Calls of ``/webhooks/v1`` for commands of tenants, with refusals in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import click
from tornado.httpclient import HTTPResponse

from fhirpub.cli.printing import as_text
from fhirpub.cli.publish.outcome import issues_of
from fhirpub.cli.publish.publisher import Publisher
from fhirpub.errors import InvalidContent
from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored

_BASE = "/webhooks/v1"
_JSON = {"Accept": "application/json"}


class Refused(click.ClickException):
    """The service has refused a call. ``status`` is that of the response."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class WebhookCalls:
    """The calls of one client."""

    client: Publisher

    async def get(self, path: str, **query: Any) -> JsonObject:
        """Return what there is. Raises Refused, NoToken and Unreachable."""
        return await self._call("GET", f"{path}?{urlencode(query)}" if query else path)

    async def send(self, method: str, path: str, fields: Mapping[str, Any]) -> JsonObject:
        """Send fields, and return the result. Raises Refused, NoToken and Unreachable."""
        return await self._call(method, path, dumps(fields))

    async def _call(self, method: str, path: str, body: bytes | None = None) -> JsonObject:
        address = f"{_BASE}{path}"
        answer = (await self.client.request(method, address, body, _JSON)).response
        found = _object_in(answer)
        if HTTPStatus.OK <= answer.code < HTTPStatus.MULTIPLE_CHOICES:
            return found
        raise Refused(_explain(answer, found, method), answer.code)


def _object_in(answer: HTTPResponse) -> JsonObject:
    """Return the body; one of ours, so that decimals stay as they are written."""
    try:
        found = loads_stored(answer.body or b"{}")
    except InvalidContent:  # of a proxy, perhaps
        return {}
    return found if isinstance(found, dict) else {}


def _explain(answer: HTTPResponse, found: JsonObject, method: str) -> str:
    said = [
        " ".join(filter(None, (*issue.get("expression", ()), issue.get("diagnostics", ""))))
        for issue in issues_of(found)
    ]
    lines = [
        as_text(f"the service refused it: {answer.code} {answer.reason}"),
        *map(as_text, said),
    ]
    if answer.code == HTTPStatus.FORBIDDEN:
        scope = "webhooks.read" if method == "GET" else "webhooks.write"
        lines.append(f"The client needs the scope {scope}; the operator can add it.")
    return "\n  ".join(lines)
