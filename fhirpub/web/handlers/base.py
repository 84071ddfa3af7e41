"""The base of all handlers: authentication, content negotiation, responses and errors."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import cached_property
from http import HTTPStatus
from typing import ClassVar, TypeVar
from urllib.parse import urlencode

from tornado.httputil import ResponseStartLine
from tornado.iostream import StreamClosedError

from fhirpub.auth.caller import Caller
from fhirpub.auth.scopes import permits
from fhirpub.errors import (
    FhirpubError,
    NotAuthenticated,
    NotPermitted,
    SecretsUnavailable,
    StoreUnavailable,
)
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored, pretty
from fhirpub.fhir.times import http_date, instant
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.http.exchange import Headers
from fhirpub.interactions.update import is_named
from fhirpub.interactions.versions import Listing, documents_of
from fhirpub.runtime.clock import now_ms
from fhirpub.runtime.logging import logger, where
from fhirpub.runtime.metrics import NO_ROUTE, method_word
from fhirpub.storage.contract import BlobInfo, Version
from fhirpub.web.error_mapping import TooSlow, headers_for, is_expected, response_for
from fhirpub.web.message import content_negotiation as media
from fhirpub.web.message.request import Request
from fhirpub.web.message.response_body import ResponseBody
from fhirpub.web.services import Services

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_REASONS = {h_t_t_p_status.value: h_t_t_p_status.phrase for h_t_t_p_status in HTTPStatus}
_MAX_INLINE_BYTES = 256 * 1024
LARGE = 64 * 1024
"""Larger bodies are parsed, validated and serialized in a thread, to keep the loop free."""

_log = logger()
T = TypeVar("T")


class BaseHandler:
    """A handler of one request. ``requires_token`` must be stated by each class.

    Its methods are named after those of HTTP (``get`` answers HEAD as well) and take the blanks
    of the path. In the order of their calls: :meth:`begin`, :meth:`data_received` as the body
    arrives, :meth:`run`, and :meth:`finish` by whatever answers.
    """

    requires_token: ClassVar[bool]
    scope: ClassVar[str] = ""
    """Letters of the SMART scopes that the interaction needs: c, r, u and s."""
    belongs_to_others: ClassVar[bool] = False
    """What is read came with a resource: the right to read its type is enough."""
    caller: Caller
    route = NO_ROUTE
    """The path of its row in the table of URLs."""
    answer_type = media.FHIR_JSON
    status = 200

    def __init__(
        self,
        request: Request,
        services: Services,
        type_name: str = "",
        blanks: Sequence[str] = (),
    ) -> None:
        self.request = request
        self.services = services
        self.type_name = type_name
        self.headers = self.first_headers()
        self._blanks = blanks
        self._refusal: Exception | None = None
        self._answered = False

    @cached_property
    def request_id(self) -> str:
        """The id by which this request is known in the log: the client's, or one of ours."""
        asked = self.request.headers.get("X-Request-Id", "")
        return asked if _REQUEST_ID.fullmatch(asked) else next(self.services.request_ids)

    def first_headers(self) -> Headers:
        """Return the headers that every answer begins with."""
        return Headers(
            {
                "Server": "fhirpub",
                "Date": http_date(now_ms()),
                "X-Content-Type-Options": "nosniff",
                "X-Request-Id": self.request_id,
            }
        )

    # The life of a request.

    def begin(self) -> Awaitable[None] | None:
        """Check all that can be checked before the body, and keep a refusal until it is read.

        A client that is still sending does not see an earlier answer; only one that
        sent ``Expect: 100-continue`` waits for it.
        """
        self.services.under_way.add(self)
        if self.request.has_body():
            self.services.bodies.begin(self.request, self.too_slow)
        try:
            later = self.prepare()
        except Exception as problem:  # noqa: BLE001 - a fault is answered as well
            self._defer_refusal(problem)
            return None
        return None if later is None else self._see_through(later, self._defer_refusal)

    def _defer_refusal(self, refusal: Exception) -> None:
        if self.request.headers.get("Expect", "").lower() == "100-continue":
            self.fail(refusal)
        else:
            self._refusal = refusal

    def refuse(self, problem: Exception) -> None:
        """Keep a refusal that came up amid the body."""
        self._refusal = problem

    def too_slow(self) -> None:
        """Refuse a body that takes too long."""
        seconds = self.services.config.limits.body_seconds
        slow = TooSlow(f"the body was not here after {seconds:g} seconds; it may be sent again")
        self.refuse_now(slow)

    def refuse_now(self, problem: Exception) -> None:
        """Refuse amid the body, for what was wrong before it if anything was."""
        problem = self._refusal or problem
        self.refuse(problem)
        self.fail(problem)

    def data_received(self, _chunk: bytes) -> Awaitable[None] | None:
        """Throw a piece of the body away: the methods of this class take none."""
        return None

    def run(self) -> None:
        """Answer, now that all of the body is here."""
        self.services.bodies.end(self.request)
        if self._refusal is not None:
            self.fail(self._refusal)
            return
        try:
            answering = self.dispatch()
        except Exception as problem:  # noqa: BLE001
            self.fail(problem)
            return
        if answering is not None:
            self._answering = asyncio.create_task(self._see_through(answering, self.fail))

    async def _see_through(
        self, work: Awaitable[None], failed: Callable[[Exception], None]
    ) -> None:
        try:
            await work
        except Exception as problem:  # noqa: BLE001
            failed(problem)

    def dispatch(self) -> Awaitable[None] | None:
        """Call the method that the request names."""
        method = self.request.method
        answer = getattr(self, "get" if method == "HEAD" else method.lower())
        answering: Awaitable[None] | None = answer(*self._blanks)
        return answering

    def abandon(self) -> None:
        """Cancel the request: the client disconnected before its body was complete."""
        self.services.bodies.end(self.request)
        self.services.body_room.leave(self.request)
        self.services.under_way.discard(self)

    def finish(self, body: bytes = b"") -> None:
        """Send the answer; a stopping service waits until all of it has left."""
        if len(body) > LARGE:
            self.finish_with(ResponseBody([body], self.read_pieces))
            return
        start_line = self._begin_answer(len(body))
        body = b"" if self.request.method == "HEAD" else body
        connection = self.request.connection
        sent = connection.write_headers(start_line, self.headers, body)
        connection.finish()
        if sent.done():
            self.services.under_way.discard(self)
        else:
            sent.add_done_callback(lambda _sent: self.services.under_way.discard(self))
        self._log_answer()

    def finish_with(self, body: ResponseBody) -> None:
        """Send an answer of any size, as fast as the client takes it."""
        whole = body.at_once() if body.length <= LARGE else None
        if whole is not None:
            self.finish(whole)
            return
        start_line = self._begin_answer(body.length)
        self.request.connection.write_headers(start_line, self.headers)
        self._sending = asyncio.create_task(self._send_in_pieces(body))
        self._log_answer()

    def _begin_answer(self, length: int) -> ResponseStartLine:
        self._answered = True
        services, seconds = self.services, self.request.milliseconds() / 1000
        services.bodies.end(self.request)
        services.body_room.leave(self.request)
        if length <= LARGE:  # else when all of it has left
            services.answer_room.leave(self.request)
        services.metrics.count_response(self.request.method, self.route, self.status, seconds)
        if self.status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            self.headers["Content-Length"] = str(length)
        return ResponseStartLine("HTTP/1.1", self.status, _REASONS[self.status])

    async def _send_in_pieces(self, body: ResponseBody) -> None:
        """Send a large response; disconnect a client that reads nothing, or on a failed read."""
        connection = self.request.connection
        try:
            if self.request.method != "HEAD":
                async with aclosing(body.pieces()) as pieces:
                    async for piece in pieces:
                        await self._send_piece(memoryview(piece))
            connection.finish()
        except (StreamClosedError, TimeoutError):
            connection.close()
        except Exception as problem:  # noqa: BLE001 - a fault is logged, too
            self.fail(problem)
        finally:
            self.services.answer_room.leave(self.request)
            self.services.under_way.discard(self)

    async def _send_piece(self, piece: memoryview) -> None:
        for start in range(0, len(piece), _MAX_INLINE_BYTES):
            left = self.request.connection.write(piece[start : start + _MAX_INLINE_BYTES])
            async with asyncio.timeout(self.services.config.limits.body_seconds):
                await asyncio.shield(left)  # the connection waits for it, too

    def fail(self, problem: Exception) -> None:
        """Answer with a refusal or a fault, whatever was written until now."""
        self._log_problem(problem)
        if self._answered:  # too late for another answer: let the client know at least that
            self.services.under_way.discard(self)
            self.request.connection.close()
            return
        self.headers = self.first_headers()
        self.write_refusal(problem)

    # Before the body.

    def prepare(self) -> Awaitable[None] | None:
        """Check the token, then the format; at once if the token is known already."""
        if not self.requires_token:
            return self.ready()
        sent = self.request.headers.get_list("Authorization")
        caller = self.services.tokens.cached_caller(sent[0]) if len(sent) == 1 else None
        if caller is None:
            return self._ask_who_calls(sent)
        self.caller = caller
        return self.ready()

    async def _ask_who_calls(self, sent: Sequence[str]) -> None:
        self.caller = await self.services.tokens.caller(sent)
        if self._answered:  # the body timed out in the meantime: reserve nothing
            return
        later = self.ready()
        if later is not None:
            await later

    def ready(self) -> Awaitable[None] | None:
        """Continue once the caller is authenticated."""
        if self.requires_token:
            self.services.rate_limit.count(self.caller.client_id)
            if self.services.config.auth.enforce_scopes and not self.is_permitted():
                raise NotPermitted
        self.check_format()
        return None

    def is_permitted(self) -> bool:
        """Return whether the scopes of the token allow this."""
        return all(map(self.may, self.scope))

    def may(self, letter: str) -> bool:
        """Return whether the caller may create, read, update or search here."""
        others = self.services.types if self.belongs_to_others else ()
        return self.may_with(letter, (self.type_name, *others))

    def may_with(self, letter: str, types: Iterable[str]) -> bool:
        """Return whether the caller may do so with resources of any of these types."""
        enforced, scopes = self.services.config.auth.enforce_scopes, self.caller.scopes
        return not enforced or any(permits(scopes, type_name, letter) for type_name in types)

    def check_format(self) -> None:
        """Choose the format of the answer, or refuse (406)."""
        self.answer_type = self._requested_type()

    def _requested_type(self) -> str:
        accept = ",".join(self.request.headers.get_list("Accept"))
        return media.answer_type(accept, self.request.parameter("_format"))

    # The answer.

    def answer(self, body: bytes) -> None:
        """Write a resource that is known to be small."""
        self._send(self.serialize(body), HTTPStatus.OK)

    async def answer_whole(self, version: Version, *, status: int = 200) -> None:
        """Write a version with its documents in it."""
        tenant_id, context = self.caller.tenant.id, self.services.context
        documents = await documents_of(version, tenant_id=tenant_id, context=context)
        text = await self.compute(len(version.body), lambda: self.serialize(version.body))
        self.answer_with_documents(text, documents, status=status)

    def answer_with_documents(
        self, text: bytes, documents: Mapping[str, BlobInfo], *, status: int = 200
    ) -> None:
        """Write a resource, encoded already, with the data of its documents put in."""
        self._describe_body(status)
        self.finish_with(ResponseBody.with_documents(text, documents, self.read_pieces))

    def read_pieces(self, blob: BlobInfo, part: slice) -> AsyncGenerator[bytes, None]:
        """Yield a part of a document of the tenant that calls."""
        return self.services.store.blob_pieces(self.caller.tenant.id, blob, part)

    async def answer_made(
        self, size: int, make: Callable[[], bytes], *, status: int = 200
    ) -> None:
        """Write what a pure function makes of ``size`` bytes."""
        self._send(await self.compute(size, make), status)

    def serialize(self, body: bytes | JsonObject) -> bytes:
        """Return a resource, ready or to be encoded, as the client wants to see it."""
        in_lines = self.request.parameter("_pretty") == "true"
        if media.is_xml(self.answer_type):
            resource = loads_stored(body) if isinstance(body, bytes) else body
            return write_xml(resource, pretty=in_lines)
        if in_lines:
            return pretty(loads_stored(body) if isinstance(body, bytes) else body)
        return body if isinstance(body, bytes) else dumps(body)

    def serialize_bundle(self, listing: Listing) -> bytes:
        """Return a Bundle whose links ask for the format that this request asks for."""
        bundle = listing.bundle()
        wishes = {item: self.request.parameter(item) for item in ("_format", "_pretty")}
        asked = urlencode({name: value for name, value in wishes.items() if value})
        for link in bundle["link"] if asked else ():
            link["url"] += f"{'&' if '?' in link['url'] else '?'}{asked}"
        return self.serialize(bundle)

    async def compute(self, size: int, work: Callable[[], T]) -> T:
        """Run a pure function here, or in a thread if what it works on is large."""
        if size <= LARGE:
            return work()
        return await asyncio.get_running_loop().run_in_executor(None, work)

    def _send(self, body: bytes, status: int) -> None:
        self._describe_body(status)
        self.finish(body)

    def _describe_body(self, status: int) -> None:
        self.status = status
        self.headers["Content-Type"] = self.answer_type
        self.keep_private()

    def keep_private(self) -> None:
        """Let the client alone keep the answer, for what it accepts, and ask before each use."""
        self.headers["Cache-Control"] = "private, no-cache"
        self.headers["Vary"] = "Accept"

    def answer_empty(self, *, status: int = 204) -> None:
        """Write an answer that has no body, such as 204 or 304."""
        self.status = status
        self.finish()

    def is_known(self, tag: str) -> bool:
        """Return whether If-None-Match names this tag (RFC 9110, 13.1.2, weak comparison)."""
        return is_named(tag, self.request.headers.get("If-None-Match", ""))

    def not_modified(self) -> None:
        """Answer 304: the client has it."""
        self.keep_private()
        self.answer_empty(status=304)

    def set_version_headers(self, version: Version, *, registration: bool = False) -> None:
        """Set ETag and Last-Modified (D-85)."""
        style = self.services.config.fhir.last_modified_style
        as_instant = style == "specification" or (style == "by-route" and registration)
        moment = instant(version.updated) if as_instant else http_date(version.updated)
        self.headers["ETag"] = f'W/"{version.version}"'
        self.headers["Last-Modified"] = moment

    def locate(self, version: Version) -> None:
        """Set Location to the version (D-84)."""
        base = f"{self.services.context.fhir_url}/{version.type}/{version.id}"
        self.headers["Location"] = f"{base}/_history/{version.version}"

    # Refusals.

    def write_refusal(self, problem: Exception) -> None:
        """Write any refusal or fault as an OperationOutcome (D-139 to D-143)."""
        answer = response_for(problem)
        self.status = answer.status
        self.headers.update(headers_for(problem))
        fhirpath = self.services.context.schemas.fhirpath
        outcome = outcome_of([issue.at(fhirpath(issue.expression)) for issue in answer.issues])
        try:
            self.answer_type = self._requested_type()
            body = self.serialize(outcome)
        except FhirpubError:  # what cannot be had must not hide what is wrong
            self.answer_type = media.FHIR_JSON
            body = dumps(outcome)
        self.headers["Content-Type"] = self.answer_type
        self.headers["Cache-Control"] = "no-store"
        self.finish(body)

    def _log_problem(self, problem: Exception) -> None:
        """Log faults by place, never by content, refused tokens, and store failures."""
        if isinstance(problem, NotAuthenticated):
            _log.info("not authenticated", reason=problem.reason, request_id=self.request_id)
        elif isinstance(problem, StoreUnavailable):
            self.services.metrics.store_unavailable.inc()
            _log.warning("store unavailable", reason=problem.reason, request_id=self.request_id)
        elif isinstance(problem, SecretsUnavailable):
            _log.error("secrets unavailable", reason=problem.reason, request_id=self.request_id)
        elif not is_expected(problem):
            _log.error("failed", **where(problem), request_id=self.request_id)

    def _log_answer(self) -> None:
        status, request = int(self.status), self.request
        if status < HTTPStatus.BAD_REQUEST:
            if self.services.config.logs.level == "debug":
                _log.debug("answered", status=status, method=method_word(request.method))
            return
        write: Callable[..., None] = _log.error if status >= 500 else _log.info
        write(
            "refused",
            status=status,
            method=method_word(request.method),
            handler=type(self).__name__,
            type=self.type_name,
            request_id=self.request_id,
            milliseconds=round(request.milliseconds(), 1),
            client=getattr(getattr(self, "caller", None), "client_id", None),
        )
