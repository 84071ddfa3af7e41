"""A handler with a request body: its media type, size, memory budget and validation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

from fhirpub.errors import Busy, FhirpubError, InvalidContent, QuotaExceeded, Refused, TooLarge
from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.interactions.context import Context, run_at
from fhirpub.interactions.submission.cut import MisplacedCut, cut_documents
from fhirpub.problems import ContentProblem
from fhirpub.runtime.clock import now_ms
from fhirpub.runtime.stages import Stages
from fhirpub.runtime.tracing.spans import step
from fhirpub.web.admission.quotas import Ticket
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.placement import (
    DENSE,
    LARGE,
    LARGE_STORED,
    VERY_LARGE,
    compute,
    count_values,
    joined,
)
from fhirpub.web.message import content_negotiation as media
from fhirpub.web.message.content_coding import GZIP, GzipDecoder, names_gzip
from fhirpub.web.message.representation import serialize_stored

T = TypeVar("T")
BodyWork = Callable[[Context, bytes], Stages[T]]
"""A pure computation on a body: a function of a module, or a partial of one."""
CutWork = Callable[[Context, bytes, Mapping[str, bytes]], T]
"""A pure computation on what is left of a body, and on what was cut out of it."""

_STEP_BYTES = 256 * 1024
"""As much more memory is reserved each time that a body has used up its reservation."""
_SMALL_GZIP = 16 * 1024
"""A longer piece of gzip is decoded in threads, as is what decodes to more than 64 KiB."""


class BodyHandler(BaseHandler):
    """A handler that takes a body, piece by piece as it arrives."""

    also_read: ClassVar[tuple[str, ...]] = ()
    """Media types of a body other than those of FHIR."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._chunks: list[bytes] = []
        self._received = 0
        self._values = 0
        self._announced = 0
        self._reserved = LARGE
        self._gzip: GzipDecoder | None = None
        self.body_type = media.FHIR_JSON

    def ready(self) -> Awaitable[None] | None:
        """Go on with the type of the body, and with its size as far as it is announced."""
        super().ready()
        self.check_content_type()
        self._gzip = self._decoder()
        self._announced = int(self.request.headers.get("Content-Length", "0"))
        if self._announced > self.max_bytes():
            raise self._too_large()
        if self.ticket is not None and self.request.has_content():
            self.ticket.check_bytes(self._announced or 1)
        if self._gzip is not None:  # how much it decodes to is not known
            self._announced = 0
        return self._reserve_memory() if self._announced > LARGE else None

    def _reserve_memory(self) -> Awaitable[None] | None:
        """Reserve memory for the next bytes of a large body."""
        self._reserved = min(self._announced or self.max_bytes(), self._received + _STEP_BYTES)
        turn = self.services.request_memory.acquire(
            self.request, self._reserved, expected=self._announced, owner=self.owner
        )
        return None if turn is None else self._wait_for(turn)

    async def _wait_for(self, turn: Awaitable[None]) -> None:
        self.services.body_timeout.end(self.request)  # from here the client is not the slow side
        try:
            await turn
        finally:
            self.services.body_timeout.begin(self.request, self.too_slow)

    def check_content_type(self) -> None:
        """Refuse a body of another type than FHIR's (415)."""
        headers = self.request.headers
        self.body_type = media.body_type(headers.get("Content-Type", ""), also=self.also_read)

    def _decoder(self) -> GzipDecoder | None:
        """Return what decodes the body, if it is gzip; raises CompressedBody for other codings."""
        coding = self.request.headers.get("Content-Encoding", "")
        if not coding or coding.lower() == "identity":
            return None
        if not self.services.config.server.gzip_requests:
            raise media.CompressedBody("identity")
        if not names_gzip(coding):
            raise media.CompressedBody(f"{GZIP}, identity")
        return GzipDecoder()

    def write_refusal(self, problem: Exception) -> None:
        """List the supported patch formats in a 415 (RFC 5789, 2.2)."""
        if type(problem) is media.UnsupportedMediaType and self.request.method == "PATCH":
            self.headers["Accept-Patch"] = ", ".join(self.also_read)
        super().write_refusal(problem)

    @property
    def is_xml(self) -> bool:
        """Whether the body is XML, according to its media type."""
        return media.is_xml(self.body_type)

    def max_bytes(self) -> int:
        """Return how large a body may be."""
        return self.services.config.limits.request_bytes

    def _too_large(self) -> FhirpubError:
        rule = f"the body has more than {self.max_bytes()} bytes"
        return TooLarge.because(rule, details=ContentProblem.BODY_TOO_LARGE)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Keep a piece of the body, decoded, unless it will be refused anyway."""
        if self._gzip is None or self._refusal is not None:
            return self._keep(chunk)
        self._gzip.feed(chunk)
        if self._gzip.received > self.max_bytes():
            self.refuse(self._too_large())
            return None
        later = self._keep_decoded(self._gzip) if len(chunk) <= _SMALL_GZIP else None
        return self._decode_in_threads(self._gzip, later) if self._gzip.has_more else later

    def _keep_decoded(self, gzip: GzipDecoder) -> Awaitable[None] | None:
        try:
            return self._keep(gzip.decode(LARGE))
        except InvalidContent as problem:
            self.refuse(problem)
            return None

    async def _decode_in_threads(
        self, gzip: GzipDecoder, later: Awaitable[None] | None = None
    ) -> None:
        """Decode a piece in slices, of which each gets its memory before the next is decoded.

        A client that disconnects while a slice waits gets no memory, and nothing more is decoded.
        """
        if later is not None:
            await later
        decode = partial(gzip.decode, _STEP_BYTES)
        stream = self.request.connection.stream
        while gzip.has_more and self._refusal is None and not stream.closed():
            try:
                later = self._keep(await self.services.threads.run(self.owner, decode))
            except InvalidContent as problem:
                self.refuse(problem)
                return
            if later is not None:
                await later

    def _keep(self, chunk: bytes) -> Awaitable[None] | None:
        """Keep a piece of the body as it is to be read."""
        self._received += len(chunk)
        if self._received > self.max_bytes() and self._refusal is None:
            self.refuse(self._too_large())
        if self.ticket is not None and self._refusal is None:
            self._count_bytes(self.ticket, len(chunk))
        if self._refusal is not None:
            return None
        self._chunks.append(chunk)
        self._values += count_values(chunk, is_xml=self.is_xml)
        if self._received <= self._reserved:
            return None
        turn = self._reserve_memory()
        return None if turn is None else self._wait_amid(turn)

    def _count_bytes(self, ticket: Ticket, size: int) -> None:
        try:
            ticket.receive(size)
        except QuotaExceeded as problem:
            self.refuse(problem)

    async def _wait_amid(self, turn: Awaitable[None]) -> None:
        try:
            await turn
        except Busy as problem:
            self.refuse(problem)

    def refuse(self, problem: Exception) -> None:
        """Throw away what came, and will throw away what comes."""
        super().refuse(problem)
        self._chunks.clear()
        self.services.request_memory.release(self.request)

    def answer(self) -> Awaitable[None] | None:
        """Answer, now that the size of the body is known."""
        if self._gzip is not None and self._refusal is None:
            try:
                self._gzip.check_end()
            except InvalidContent as problem:
                self.refuse(problem)
        self.services.request_memory.shrink(self.request, self._received)
        return super().answer()

    def take_body(self) -> bytes:
        """Return the whole body, once."""
        return joined(self.take_chunks())

    def take_chunks(self) -> list[bytes]:
        """Return the whole body in pieces, once."""
        chunks, self._chunks = self._chunks, []
        return chunks

    def return_preference(self, *honoured: str) -> str:
        """Return the client's preference, and confirm it in the response if it is honoured."""
        wanted = media.preference(self.request.headers.get("Prefer", ""), "return")
        if wanted in honoured:
            self.headers["Preference-Applied"] = f"return={wanted}"
        return wanted

    async def respond_with_parameters(
        self, response: bytes, status: int, *, if_empty: int
    ) -> None:
        """Write Parameters whose last entry are the issues, or what the client prefers (D-74)."""
        wanted = self.return_preference("minimal", "representation", "OperationOutcome")
        if wanted == "minimal":
            self.headers["Cache-Control"] = "private, no-cache"
            self.respond_empty(status=if_empty)
            return
        if wanted == "OperationOutcome":
            response = dumps(loads_stored(response)["parameter"][-1]["resource"])
        if not self.format.is_stored:
            work = partial(serialize_stored, form=self.format)
            response = await self.compute_answer(work, [response], body=response)
        self.respond_serialized(response, status)

    async def keep_pace(self) -> None:
        """Wait a moment if the tenant's events wait for time of this process (ADR 22)."""
        sending = self.services.sending
        seconds = sending.pause_for(self.owner) if sending else 0.0
        if seconds:
            await asyncio.sleep(seconds)

    async def compute_body(self, work: BodyWork[T]) -> T:
        """Run a pure computation on the body, as :meth:`compute_chunks` does."""
        return await self.compute_chunks(work, self.take_chunks())

    async def compute_chunks(
        self, work: BodyWork[T], chunks: Sequence[bytes], *, stored: bytes = b""
    ) -> T:
        """Run a pure computation on a body, and on ``stored`` JSON that ``work`` brings (ADR 23).

        A small one runs on the event loop, in a cohort.
        """
        context, size = self.services.context, sum(map(len, chunks)) + len(stored)
        is_dense = self._is_dense(size, stored)
        if size <= LARGE and not is_dense:
            return await self.run_on_loop(work(context, joined(chunks)))
        # A job waits for its process: the time of a real clock is that of its beginning.
        now = None if context.clock is now_ms else context.clock()
        run = partial(run_at, now=now, work=work)
        with step("validate"):
            return await compute(
                self.services, self.owner, run, chunks, size=size, is_dense=is_dense
            )

    async def compute_cut(self, work: CutWork[T], chunks: list[bytes]) -> T | None:
        """Run a pure computation on what is left of a body, and on documents cut out (ADR 32).

        It runs in a thread. None if the body has to be computed as a whole: it is not large, large
        without its documents too, in XML, or refused, which the whole body alone explains.
        """
        if self.is_xml or sum(map(len, chunks)) <= LARGE or not self.has_few_values:
            return None
        self.services.trimmer.note_large_work()
        cut = partial(_compute_cut, self.services.context, work, chunks)
        with step("validate"):
            return await self.services.threads.run(self.owner, cut)

    def is_for_loop(self, chunks: Sequence[bytes]) -> bool:
        """Return whether a body is so small that it is computed on the event loop."""
        size = sum(map(len, chunks))
        return size <= LARGE and not self._is_dense(size)

    @property
    def has_few_values(self) -> bool:
        """Whether what was received is large only by its texts, as far as can be seen."""
        return self._values <= DENSE

    def _is_dense(self, size: int, stored: bytes = b"") -> bool:
        return (
            size > VERY_LARGE
            or len(stored) > LARGE_STORED
            or self._values + count_values(stored) > DENSE
        )

    async def run_on_loop(self, stages: Stages[T]) -> T:
        """Run a pure computation on the event loop, in a cohort."""
        with step("validate"):
            return await self.services.context.stages.run(stages, owner=self.owner)


def _compute_cut(context: Context, work: CutWork[T], chunks: list[bytes]) -> T | None:
    chunks[:] = [joined(chunks)]  # this one in their place: the body is not held twice
    cut = cut_documents(chunks[0], max_rest=LARGE)
    if cut is None:
        return None
    try:
        return work(context, *cut)
    except (Refused, MisplacedCut):
        return None
