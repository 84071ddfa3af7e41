"""Requests that the console makes of the service: in memory, for the person of a session.

They go through the handlers of all requests, with their checks, quotas and records in the audit
trail, so that a page shows nothing that its person could not read otherwise (ADR 46).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from tornado.httputil import HTTPHeaders, RequestStartLine

from fhirpub.auth.caller import Caller
from fhirpub.errors import StoreUnavailable
from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.batch.exchange import AnswerBytes, EntryExchange
from fhirpub.web.message.content_negotiation import FHIR_JSON
from fhirpub.web.message.request import Request
from fhirpub.web.routes import Router
from fhirpub.web.services import Services

_MOST_BYTES = 2 * 1024 * 1024
"""So much of an answer fits into a page; a page asks for few resources, without documents."""
_FORWARDED = "X-Forwarded-For"

Query = Sequence[tuple[str, str]]


class AnswerTooLarge(Exception):
    """An answer does not fit into a page."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service answered."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def json(self) -> Any:
        """The body."""
        return loads_stored(self.body) if self.body else None

    @property
    def is_refusal(self) -> bool:
        """Whether the service has refused."""
        return self.status >= HTTPStatus.BAD_REQUEST

    @property
    def problems(self) -> list[str]:
        """What is wrong according to a refusal, in sentences."""
        outcome = self.json or {}
        return [_sentence(issue) for issue in outcome.get("issue", [])]


class ServiceClient:
    """Asks the service, as the caller of a session, for one request of a browser."""

    def __init__(self, router: Router, services: Services, handler: BaseHandler) -> None:
        self._router = router
        self._services = services
        self._handler = handler
        self._count = 0
        self.received = 0
        """So many bytes have the answers so far."""

    async def get(self, caller: Caller, path: str, query: Query = ()) -> Answer:
        """Return the answer to a GET. Raises AnswerTooLarge, StoreUnavailable."""
        target = f"{path}?{urlencode(query)}" if query else path
        return await self.ask(caller, "GET", target)

    async def ask(
        self, caller: Caller, method: str, target: str, body: Mapping[str, Any] | None = None
    ) -> Answer:
        """Return the answer to a request, with a body of JSON if there is one.

        Raises AnswerTooLarge, and StoreUnavailable for a request that was cut off.
        """
        data = b"" if body is None else dumps(body)
        exchange = EntryExchange(self._handler.request.connection, AnswerBytes(_MOST_BYTES))
        request = Request(
            RequestStartLine(method, target, "HTTP/1.1"), self._headers(data), exchange
        )
        asked = self._router.handler(request, self._services)
        asked.authenticated = caller
        later = asked.begin()
        if later is not None:
            await later
        if data:
            later = asked.data_received(data)
            if later is not None:
                await later
        later = asked.answer()
        if later is not None:
            await later
        await exchange.wait_ended()
        if exchange.body is None:
            raise AnswerTooLarge
        if not exchange.is_complete:
            raise StoreUnavailable("the answer was cut off")
        self.received += len(exchange.body)
        return Answer(exchange.status, exchange.headers, exchange.body)

    def _headers(self, data: bytes) -> HTTPHeaders:
        self._count += 1
        sent = self._handler.request.headers
        headers = HTTPHeaders(
            {
                "Accept": FHIR_JSON,
                "X-Request-Id": f"{self._handler.request_id}-{self._count}",
            }
        )
        if data:
            headers["Content-Type"] = "application/json"
            headers["Content-Length"] = str(len(data))
        for value in sent.get_list(_FORWARDED):
            headers.add(_FORWARDED, value)
        if "Traceparent" in sent:
            headers["Traceparent"] = sent["Traceparent"]
        return headers


def _sentence(issue: Mapping[str, Any]) -> str:
    said = str(issue.get("diagnostics", issue.get("code", "")))
    places = ", ".join(issue.get("expression", []))
    return f"{places}: {said}" if places else said
