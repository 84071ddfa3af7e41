"""The life of a request: from its head to the last byte of its response."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import TypeVar

from tornado.httputil import ResponseStartLine
from tornado.iostream import StreamClosedError

from fhirpub.auth.caller import Caller
from fhirpub.fhir.times import http_date
from fhirpub.http.exchange import Headers
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.contract import BlobInfo
from fhirpub.web.admission.quotas import Ticket
from fhirpub.web.error_mapping import TooSlow
from fhirpub.web.handlers.placement import LARGE
from fhirpub.web.message.request import Request
from fhirpub.web.message.response_body import ResponseBody
from fhirpub.web.observed import ObservedRequest
from fhirpub.web.services import Services

_REASONS = {status.value: status.phrase for status in HTTPStatus}
_PIECE_BYTES = 64 * 1024  # as much of each response is sent in one turn of the event loop

T = TypeVar("T")


class RequestLifecycle(ObservedRequest, ABC):
    """Takes one request through its phases and sends the response.

    In the order of the calls: :meth:`begin` once the head is parsed, :meth:`data_received` for
    each piece of the body, :meth:`run` once it is complete, and :meth:`finish` or
    :meth:`finish_with` by the method that responds. :meth:`fail` may take its place at any time,
    and :meth:`cancel` ends a request whose client has disconnected.
    """

    ticket: Ticket | None = None
    """The quotas that the request is subject to, if its caller has any."""

    def __init__(
        self,
        request: Request,
        services: Services,
        type_name: str = "",
        blanks: Sequence[str] = (),
    ) -> None:
        super().__init__(request, services)
        self.type_name = type_name
        self.headers = self.default_headers()
        self._path_parameters = blanks
        self._refusal: Exception | None = None
        self._answered = False

    def default_headers(self) -> Headers:
        """Return the headers that every answer begins with."""
        return Headers(
            {
                "Server": "fhirpub",
                "Date": http_date(now_ms()),
                "X-Content-Type-Options": "nosniff",
                "X-Request-Id": self.request_id,
            }
        )

    def begin(self) -> Awaitable[None] | None:
        """Check all that can be checked before the body, and keep a refusal until it is read.

        A client that is still sending does not see an earlier answer; only one that
        sent ``Expect: 100-continue`` waits for it.
        """
        self.services.in_flight.add(self)
        self.begin_span()
        if self.request.has_body():
            self.services.body_timeout.begin(self.request, self.too_slow)
        try:
            later = self.prepare()
        except Exception as problem:  # noqa: BLE001 - a fault is answered as well
            self._defer_refusal(problem)
            return None
        return None if later is None else self._await_or_fail(later, self._defer_refusal)

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
        """Answer in a turn of the tenant, now that all of the body is here."""
        self.services.body_timeout.end(self.request)
        self.services.loop_turns.begin(self.owner, self._begin_answering)

    def _begin_answering(self) -> None:
        answering = self.answer()
        if answering is not None:
            self._answering = asyncio.ensure_future(answering)

    def answer(self) -> Awaitable[None] | None:
        """Answer, at once or by awaiting the returned object, now that all of the body is here."""
        self.services.body_timeout.end(self.request)
        if self._refusal is not None:
            self.fail(self._refusal)
            return None
        try:
            answering = self.dispatch()
        except Exception as problem:  # noqa: BLE001
            self.fail(problem)
            return None
        return None if answering is None else self._await_or_fail(answering, self.fail)

    async def _await_or_fail(
        self, work: Awaitable[None], failed: Callable[[Exception], None]
    ) -> None:
        self.enter_span()
        try:
            await work
        except Exception as problem:  # noqa: BLE001
            failed(problem)

    def dispatch(self) -> Awaitable[None] | None:
        """Call the method that the request names."""
        method = self.request.method
        answer = getattr(self, "get" if method == "HEAD" else method.lower())
        answering: Awaitable[None] | None = answer(*self._path_parameters)
        return answering

    def cancel(self) -> None:
        """Cancel the request: the client disconnected before its body was complete."""
        self.services.body_timeout.end(self.request)
        self.services.request_memory.release(self.request)
        self.leave()

    def leave(self) -> None:
        """End the request, also in the counts of its caller."""
        self.services.in_flight.discard(self)
        self.note_end()
        if self.ticket is not None:
            self.ticket.leave()

    def decide(self) -> None:
        """Note that the answer is certain, though it is sent later: no more of a body is taken."""
        self.services.body_timeout.end(self.request)
        self.request.connection.decide()

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
            self._leave_after(sent)
        else:
            sent.add_done_callback(self._leave_after)

    def _leave_after(self, sent: asyncio.Future[None]) -> None:
        self._is_sent = not sent.cancelled() and sent.exception() is None
        self.leave()

    def finish_with(self, body: ResponseBody) -> None:
        """Send an answer of any size, as fast as the client takes it."""
        whole = body.at_once() if body.length <= LARGE else None
        if whole is not None:
            self.finish(whole)
            return
        start_line = self._begin_answer(body.length)
        self.request.connection.write_headers(start_line, self.headers)
        self._sending = asyncio.create_task(self._send_in_pieces(body))

    def _begin_answer(self, length: int) -> ResponseStartLine:
        self._answered = True
        services, seconds = self.services, self.request.milliseconds() / 1000
        services.body_timeout.end(self.request)
        services.request_memory.release(self.request)
        if length <= LARGE:  # else when all of it has left
            services.response_memory.release(self.request)
        method, trace_id = self.request.method, self.sampled_trace_id
        services.metrics.count_response(method, self.route, self.status, seconds, trace_id)
        self._length = 0 if method == "HEAD" else length
        if self.ticket is not None:
            self.headers.update(self.ticket.fields())
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
            self._is_sent = True
        except (StreamClosedError, TimeoutError):
            connection.close()
        except Exception as problem:  # noqa: BLE001 - a fault is logged, too
            self.fail(problem)
        finally:
            self.services.response_memory.release(self.request)
            self.leave()

    async def _send_piece(self, piece: memoryview) -> None:
        for start in range(0, len(piece), _PIECE_BYTES):
            left = self.request.connection.write(piece[start : start + _PIECE_BYTES])
            async with asyncio.timeout(self.services.config.limits.body_seconds):
                await asyncio.shield(left)  # the connection waits for it, too

    def fail(self, problem: Exception) -> None:
        """Answer with a refusal or a fault, whatever was written until now."""
        self.note_problem(problem)
        if self._answered:  # too late for another answer: let the client know at least that
            self.leave()
            self.request.connection.close()
            return
        self.headers = self.default_headers()
        self.write_refusal(problem)

    @abstractmethod
    def prepare(self) -> Awaitable[None] | None:
        """Check what the head allows to check; raises refusals."""

    @abstractmethod
    def write_refusal(self, problem: Exception) -> None:
        """Respond with a refusal or a fault."""

    @abstractmethod
    def read_pieces(self, blob: BlobInfo, part: slice) -> AsyncGenerator[bytes, None]:
        """Yield a part of a stored document that the response contains."""

    @property
    def owner(self) -> str:
        """The tenant whose shares of memory and threads the request takes, if there is one."""
        caller: Caller | None = getattr(self, "caller", None)
        return caller.tenant.id if caller else ""
