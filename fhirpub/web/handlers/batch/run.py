"""One batch: its entries go through the handlers of their requests, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from fhirpub.errors import Busy, FhirpubError, InvalidContent, Issue, TooLarge
from fhirpub.fhir.batch.envelope import Entry, EntryRequest, urns_in
from fhirpub.fhir.outcome import outcome_of
from fhirpub.problems import BatchProblem, ContentProblem
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.runtime.stages import Stages
from fhirpub.web.admission.memory_budget import has_disconnected
from fhirpub.web.error_mapping import response_for
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.batch.admission import services_of_entries
from fhirpub.web.handlers.batch.answers import EntryAnswer, answer_of
from fhirpub.web.handlers.batch.exchange import AnswerBytes, EntryExchange
from fhirpub.web.handlers.batch.requests import (
    Body,
    body_of_patch,
    check_conditions,
    request_of,
    target_of,
    with_http_dates,
)
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.placement import compute
from fhirpub.web.message.content_negotiation import NotAcceptable
from fhirpub.web.message.request import Request
from fhirpub.web.services import Services

FindHandler = Callable[[Request, Services], BaseHandler]

_AT_A_TIME = 32
_LOOK_EVERY = 16
"""After so many entries the client may have disconnected: to look takes a call of the system."""
_RETRY_SECONDS = 5
_READS = frozenset({"GET", "HEAD"})

_log = logger()


class BatchTimeout(Busy):
    """The batch has used up its time before this entry began."""

    details = BatchProblem.BATCH_TIMEOUT

    def __init__(self, seconds: float) -> None:
        super().__init__(retry_after=_RETRY_SECONDS)
        self.args = (f"the batch took {seconds:g} s: send this entry again in another one",)


class BatchRun:
    """Answers the entries of one batch."""

    def __init__(
        self, batch: BodyHandler, entries: Sequence[Entry], find_handler: FindHandler
    ) -> None:
        self._batch = batch
        self._entries = entries
        self._find_handler = find_handler
        self._services = services_of_entries(batch.services)
        self._fhir_url = batch.services.context.fhir_url
        self._answers: list[bytes | None] = [None] * len(entries)
        self._full_urls = {
            entry.full_url: place
            for place, entry in enumerate(entries)
            if isinstance(entry, EntryRequest) and entry.full_url.startswith("urn:")
        }
        self._room = AnswerBytes(batch.services.config.batch.answer_bytes)
        self._is_abandoned = False
        self._until = asyncio.get_running_loop().time() + batch.services.config.batch.seconds

    async def answers(self) -> Sequence[bytes] | None:
        """Return the answers to all entries in their order; None if the client disconnects.

        What is committed by then stays, and what has not begun by then is left out.
        """
        places = iter(range(len(self._entries)))
        async with asyncio.TaskGroup() as group:
            for _ in range(min(len(self._entries), _AT_A_TIME)):
                group.create_task(self._answer_next(places))
        answers = [answer for answer in self._answers if answer is not None]
        return answers if len(answers) == len(self._entries) else None

    async def _answer_next(self, places: Iterator[int]) -> None:
        turns, owner = self._services.entry_turns, self._batch.owner
        for place in places:
            await turns.take(owner)
            try:
                if place % _LOOK_EVERY == 0:
                    self._is_abandoned = has_disconnected(self._batch.request.connection.stream)
                if self._is_abandoned:
                    return
                answer = await self._answer(place)
            finally:
                turns.release(owner)
            self._answers[place] = answer.serialize()

    async def _answer(self, place: int) -> EntryAnswer:
        try:
            return await self._ask(place)
        except FhirpubError as problem:
            return self._refusal(problem)
        except Exception as problem:  # noqa: BLE001 - a fault is answered as well
            _log.error("failed", **where(problem), request_id=self._batch.request_id)
            return self._refusal(problem)

    def _refusal(self, problem: Exception) -> EntryAnswer:
        answer = response_for(problem)
        outcome = outcome_of(
            answer.issues, fhir_url=self._fhir_url, request_id=self._batch.request_id
        )
        return EntryAnswer(answer.status, outcome=outcome)

    async def _ask(self, place: int) -> EntryAnswer:
        """Let the handler of its request answer an entry. Raises refusals.

        It begins as a stage: many entries are answered, or refused, without waiting for anything,
        and would hold up the event loop one after another.
        """
        entry, stages = self._entries[place], self._services.context.stages
        body = await self._body_of(entry, f"Bundle.entry[{place}]")
        asked = await stages.run(self._begin(place, body), owner=self._batch.owner)
        if asked.later is not None:
            await asked.later
        if not asked.is_begun:
            later = _go_on(asked.handler, body.data)
            if later is not None:
                await later
        await asked.exchange.wait_ended()
        return self._answer_of(asked.exchange, place, is_placed=body.is_resource)

    def _begin(self, place: int, body: Body) -> Stages[_Asked]:
        """Hand the request of an entry to its handler. Raises refusals."""
        entry, at = self._entries[place], f"Bundle.entry[{place}]"
        if not isinstance(entry, EntryRequest):
            raise InvalidContent(entry.issues)  # a copy: its traceback leads here
        self._check_bounds(entry)
        target = target_of(entry, self._fhir_url, at)
        self._check_references(entry, at)
        entry = with_http_dates(entry, at)
        yield
        exchange = EntryExchange(self._batch.request.connection, self._room)
        proxied = self._services.config.server.certificate_header
        sent = self._batch.request.headers
        request = request_of(entry, target, body, sent, exchange, proxied)
        request.headers["X-Request-Id"] = f"{self._batch.request_id}-{place}"
        if self._batch.trace is not None:
            request.headers["Traceparent"] = self._batch.trace.header
        handler = self._find_handler(request, self._services)
        check_conditions(entry, handler, at)
        later = handler.begin()
        if later is not None:  # the token is not known yet
            return _Asked(handler, exchange, later, is_begun=False)
        return _Asked(handler, exchange, _go_on(handler, body.data), is_begun=True)

    def _check_bounds(self, entry: EntryRequest) -> None:
        if asyncio.get_running_loop().time() > self._until:
            raise BatchTimeout(self._services.config.batch.seconds)
        if self._room.is_used_up and entry.method in _READS:
            raise self._no_room()

    def _no_room(self) -> TooLarge:
        said = (
            f"the resources in the response have more than {self._room.most} bytes: "
            "send this entry in another batch"
        )
        return TooLarge.because(said, details=BatchProblem.BATCH_ANSWER_TOO_LARGE)

    def _check_references(self, entry: EntryRequest, at: str) -> None:
        """Refuse what relies on another entry: the entries of a batch are independent."""
        found = [
            reference
            for reference in urns_in(entry.resource)
            if reference in self._full_urls and reference != entry.full_url
        ]
        if not found:
            return
        other = self._full_urls[found[0]]
        said = (
            f"refers to entry[{other}] of the batch by its fullUrl: entries of a batch are "
            "independent. Register resources that belong together by one $register, or refer to "
            "one that exists"
        )
        issue = Issue.error(ContentProblem.REFERENCE_UNRESOLVED, said, f"{at}.resource")
        raise InvalidContent([issue])

    async def _body_of(self, entry: Entry, at: str) -> Body:
        if not isinstance(entry, EntryRequest):
            return Body(b"")
        if entry.method != "PATCH" or b'"Binary"' not in entry.resource:
            return Body(entry.resource)
        work = partial(body_of_patch, at=at)
        size = len(entry.resource)
        return await compute(
            self._services, self._batch.owner, work, [entry.resource], size=size, is_dense=False
        )

    def _answer_of(self, exchange: EntryExchange, place: int, *, is_placed: bool) -> EntryAnswer:
        """Return what a handler wrote. Raises refusals."""
        entry = self._entries[place]
        method = entry.method if isinstance(entry, EntryRequest) else ""
        if exchange.body is None and method in _READS:
            raise self._no_room()
        if not exchange.is_fhir:
            raise NotAcceptable("this address has no FHIR resource: send a request of its own")
        if exchange.body is not None and not exchange.is_complete:
            raise RuntimeError("the answer to an entry was not complete")
        answer = answer_of(exchange, place=place if is_placed else None, fhir_url=self._fhir_url)
        if method == "HEAD":
            answer.resource = b""
        return answer


@dataclass(frozen=True, slots=True)
class _Asked:
    """A handler that has its request, and what is to be awaited before the answer is there."""

    handler: BaseHandler
    exchange: EntryExchange
    later: Awaitable[None] | None
    is_begun: bool
    """Whether it has its body, too."""


def _go_on(handler: BaseHandler, body: bytes) -> Awaitable[None] | None:
    """Give a handler its body, which is in memory already, and let it answer."""
    if body:
        handler.data_received(body)
    return handler.answer()
