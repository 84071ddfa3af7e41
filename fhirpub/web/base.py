"""What all handlers share: who calls, which format, how an answer and a refusal are written."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from asyncio import Future
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any, ClassVar, TypeVar

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.web import HTTPError, RequestHandler, stream_request_body

from fhirpub.auth.caller import Caller
from fhirpub.auth.scopes import permits
from fhirpub.clock import now_ms
from fhirpub.errors import (
    FhirpubError,
    NotAuthenticated,
    NotPermitted,
    StoreUnavailable,
    Throttled,
    TooLarge,
)
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import JsonObject, dumps, loads, pretty
from fhirpub.fhir.times import http_date, instant
from fhirpub.logs import logger, where
from fhirpub.storage.contract import Version
from fhirpub.web import media
from fhirpub.web.error_mapping import answer_to, is_expected
from fhirpub.web.services import Services

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LENGTH = re.compile(r"[0-9]{1,18}")
_TAG = re.compile(r'(?:W/)?"([^"]*)"')
_LARGE = 64 * 1024
"""A body above this is read and judged in a thread, so that the loop goes on."""

_log = logger()
T = TypeVar("T")


class BaseHandler(RequestHandler):
    """A handler of the FHIR interface. ``requires_token`` must be stated by each."""

    requires_token: ClassVar[bool]
    scope: ClassVar[str] = ""
    """Letter of the SMART scope that the interaction needs: c, r, u or s (D-23)."""
    belongs_to_others: ClassVar[bool] = False
    """What is read came with a resource: the right to read that one is enough."""
    streams: ClassVar[bool] = False
    """It is made before the body has arrived, and gets it piece by piece."""
    caller: Caller
    answer_type = media.FHIR_JSON

    def initialize(self, services: Services, type_name: str = "") -> None:
        """Take what the route knows."""
        self.services = services
        self.type_name = type_name
        services.under_way.add(self)
        if not self.streams:
            services.bodies.end(self.request)

    def clear(self) -> None:
        """Start an answer, as Tornado's own does, with our headers in the place of its.

        Tornado calls it once or twice for each request, and formats a date each time.
        """
        headers = HTTPHeaders()
        headers["Server"] = "fhirpub"
        headers["Date"] = http_date(now_ms())
        headers["X-Content-Type-Options"] = "nosniff"
        headers["X-Request-Id"] = self.request_id
        self._headers = headers
        self.set_default_headers()
        self._write_buffer = []
        self._status_code = 200
        self._reason = "OK"

    @cached_property
    def request_id(self) -> str:
        """The id by which this request is known in the log: the client's, or one of ours."""
        asked = self.request.headers.get("X-Request-Id", "")
        if _REQUEST_ID.fullmatch(asked):
            return asked
        return str(next(self.application.settings["request_ids"]))

    def finish(self, chunk: str | bytes | dict[str, Any] | None = None) -> Future[None]:
        """Answer; a stopping service waits until all of it has left."""
        self.services.bodies.end(self.request)
        sent = super().finish(chunk)
        if sent.done():
            self.services.under_way.discard(self)
        else:
            sent.add_done_callback(lambda _sent: self.services.under_way.discard(self))
        return sent

    def on_connection_close(self) -> None:
        """Let it know as well that this one will never be: its client has hung up."""
        super().on_connection_close()
        self.services.bodies.end(self.request)
        self.services.under_way.discard(self)

    def compute_etag(self) -> None:
        """Never hash an answer: a version is its own tag."""
        return

    def prepare(self) -> Awaitable[None] | None:
        """Check the token, then the format; at once if the token is known already."""
        if not self.requires_token:
            self.ready()
            return None
        sent = self.request.headers.get_list("Authorization")
        caller = self.services.tokens.cached(sent[0]) if len(sent) == 1 else None
        if caller is None:
            return self._ask_who_calls(sent)
        self.caller = caller
        self.ready()
        return None

    async def _ask_who_calls(self, sent: Sequence[str]) -> None:
        self.caller = await self.services.tokens.caller(sent)
        self.ready()

    def ready(self) -> None:
        """Go on once it is known who calls."""
        if self.requires_token:
            self._permit()
        self.check_format()

    def _permit(self) -> None:
        self.services.rate_limit.count(self.caller.client_id)
        if not (self.services.config.auth.enforce_scopes and self.scope):
            return
        types = (self.type_name, *(self.services.types if self.belongs_to_others else ()))
        if not any(permits(self.caller.scopes, each, self.scope) for each in types):
            raise NotPermitted("the access token has no scope for this")

    def check_format(self) -> None:
        """Choose the format of the answer, or refuse (406)."""
        accept = ",".join(self.request.headers.get_list("Accept"))
        self.answer_type = media.answer_type(accept, self.parameter("_format"))

    def parameter(self, name: str) -> str:
        """Return a parameter of the query, the last if it repeats, or nothing."""
        if not self.request.query:
            return ""
        values = self.request.query_arguments.get(name)
        return values[-1].decode("utf-8", "replace") if values else ""

    def parameters(self) -> list[tuple[str, str]]:
        """Return all parameters of the query."""
        return _texts(self.request.query_arguments)

    def set_ours(self, name: str, value: str) -> None:
        """Set a header whose value is of our own making, so that nothing has to be checked."""
        self._headers[name] = value

    def answer(self, body: bytes | JsonObject, *, status: int = 200) -> None:
        """Write a resource, ready or to be encoded."""
        if self.parameter("_pretty") == "true":
            body = pretty(loads(body, trusted=True) if isinstance(body, bytes) else body)
        self.set_status(status)
        self.set_ours("Content-Type", self.answer_type)
        self.set_ours("Cache-Control", "private, no-cache")
        self.finish(body if isinstance(body, bytes) else dumps(body))

    def is_known(self, tag: str) -> bool:
        """Tell whether the client named this tag in If-None-Match (RFC 9110, weakly)."""
        named = self.request.headers.get("If-None-Match", "")
        return named.strip() == "*" or tag in _TAG.findall(named)

    def not_modified(self) -> None:
        """Answer 304: the client has it."""
        self.set_status(304)
        self.set_ours("Cache-Control", "private, no-cache")
        self.finish()

    def describe(self, version: Version, *, registration: bool = False) -> None:
        """Set ETag and Last-Modified (D-85)."""
        style = self.services.config.fhir.last_modified_style
        as_instant = style == "specification" or (style == "by-route" and registration)
        moment = instant(version.updated) if as_instant else http_date(version.updated)
        self.set_ours("ETag", f'W/"{version.version}"')
        self.set_ours("Last-Modified", moment)

    def locate(self, version: Version) -> None:
        """Set Location to the version (D-84)."""
        base = f"{self.services.context.fhir_url}/{version.type}/{version.id}"
        self.set_ours("Location", f"{base}/_history/{version.version}")

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write any refusal or fault as an OperationOutcome (D-139 to D-143)."""
        problem = kwargs.get("exc_info", (None, None, None))[1]
        answer = answer_to(problem, status=status_code)
        self.set_status(answer.status)
        _add_headers(self, problem)
        self.set_header("Content-Type", media.FHIR_JSON)
        self.set_header("Cache-Control", "no-store")
        self.finish(dumps(outcome_of(answer.issues)))

    def log_exception(
        self,
        typ: type[BaseException] | None,  # noqa: ARG002 - Tornado's signature
        value: BaseException | None,
        tb: TracebackType | None,  # noqa: ARG002
    ) -> None:
        """Tell the operator of faults, with where and never with what, and of refused tokens."""
        if isinstance(value, NotAuthenticated):
            _log.info("not authenticated", reason=value.reason, request_id=self.request_id)
        elif value is not None and not isinstance(value, HTTPError) and not is_expected(value):
            _log.error("failed", **where(value), request_id=self.request_id)

    @property
    def client_address(self) -> str:
        """The peer's address, or the one that a trusted proxy tells."""
        return client_address(self.request, self.services.config.server.trusted_proxies)


class BodyHandler(BaseHandler):
    """A handler that takes a body: a small one whole, a larger one as it comes (:func:`streamed`).

    Whatever is refused, the body is read to its end first: a client that is still sending does
    not see an earlier answer (D-61); only one that sent ``Expect: 100-continue`` waits for it.
    """

    def initialize(self, services: Services, type_name: str = "") -> None:
        """Take what the route knows, and prepare for a body."""
        super().initialize(services, type_name)
        self._chunks: list[bytes] = []
        self._received = 0
        self._refusal: FhirpubError | None = None

    def prepare(self) -> Awaitable[None] | None:
        """Check what can be checked before the body; keep a refusal until it has been read."""
        connection: Any = self.request.connection
        connection.set_max_body_size(self.services.config.limits.drain_bytes)
        try:
            later = super().prepare()
        except FhirpubError as refusal:
            self._postpone(refusal)
            return None
        if later is not None:
            return self._later(later)
        self._check_announced_size()
        return None

    async def _later(self, later: Awaitable[None]) -> None:
        try:
            await later
        except FhirpubError as refusal:
            self._postpone(refusal)
        else:
            self._check_announced_size()

    def ready(self) -> None:
        """Go on with the type of the body."""
        super().ready()
        self.check_content_type()

    def check_content_type(self) -> None:
        """Refuse a body of another type than FHIR JSON (415)."""
        headers = self.request.headers
        media.check_fhir_json(headers.get("Content-Type", ""), headers.get("Content-Encoding", ""))

    def _check_announced_size(self) -> None:
        announced = self.request.headers.get("Content-Length", "0")
        if _LENGTH.fullmatch(announced) and int(announced) > self.most_bytes():
            self._postpone(self._too_large())

    def most_bytes(self) -> int:
        """Return how large a body may be."""
        return self.services.config.limits.request_bytes

    def _postpone(self, refusal: FhirpubError) -> None:
        if self.request.headers.get("Expect", "").lower() == "100-continue":
            raise refusal
        self._refusal = refusal

    def _too_large(self) -> TooLarge:
        return TooLarge.because(f"the body has more than {self.most_bytes()} bytes")

    def data_received(self, chunk: bytes) -> None:
        """Keep a piece of the body, unless it will be refused anyway."""
        self._received += len(chunk)
        if self._received > self.most_bytes() and self._refusal is None:
            self._refusal = self._too_large()
        if self._refusal is not None:
            self._chunks.clear()
        else:
            self._chunks.append(chunk)

    def take_body(self) -> bytes:
        """Return the whole body, once; raises what was found before it was read."""
        self.services.bodies.end(self.request)
        if self._refusal is not None:
            raise self._refusal
        if not self.streams:
            return self.request.body
        chunks, self._chunks = self._chunks, []
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def judged(self, size: int, judge: Callable[[], T]) -> T:
        """Run a pure function here, or in a thread if the body is large."""
        if size <= _LARGE:
            # One turn of the loop later, so that those who arrived together are judged one after
            # the other: the second finds warm in the processor's caches what the first needed.
            await asyncio.sleep(0)
            return judge()
        return await asyncio.get_running_loop().run_in_executor(None, judge)


def streamed(handler: type[BodyHandler]) -> type[BodyHandler]:
    """Return a handler like another, for bodies that do not fit into one piece."""
    larger = type(f"Streamed{handler.__name__}", (handler,), {"streams": True})
    return stream_request_body(larger)


def client_address(request: HTTPServerRequest, trusted: Sequence[str]) -> str:
    """Return who is at the other end: X-Forwarded-For is believed of trusted proxies alone."""
    peer = request.remote_ip or ""
    networks = [ipaddress.ip_network(each, strict=False) for each in trusted]
    if not networks or not _within(peer, networks):
        return peer
    told = ",".join(request.headers.get_list("X-Forwarded-For")).split(",")
    for each in reversed([one.strip() for one in told if one.strip()]):
        if not _within(each, networks):
            return each if _is_address(each) else peer
    return peer


def _within(address: str, networks: Sequence[Any]) -> bool:
    return _is_address(address) and any(
        ipaddress.ip_address(address) in network for network in networks
    )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _texts(arguments: dict[str, list[bytes]]) -> list[tuple[str, str]]:
    return [
        (name, value.decode("utf-8", "replace"))
        for name, values in arguments.items()
        for value in values
    ]


def _add_headers(handler: RequestHandler, problem: BaseException | None) -> None:
    """Add what a status obliges to: the challenge of a 401, when to come back."""
    if isinstance(problem, NotAuthenticated):
        error = ', error="invalid_token"' if problem.token_sent else ""
        handler.set_header("WWW-Authenticate", f'Bearer realm="fhirpub"{error}')
    if isinstance(problem, media.UnsupportedMediaType) and handler.request.method == "PATCH":
        handler.set_header("Accept-Patch", media.FHIR_JSON)
    if isinstance(problem, (Throttled, StoreUnavailable)):
        handler.set_header("Retry-After", str(problem.retry_after))
