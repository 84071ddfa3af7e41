"""POST /fhir/r4: a batch, whose entries are answered one by one (ADR 27)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fhirpub.fhir.batch.envelope import Entry, read_batch
from fhirpub.fhir.batch.splitter import PieceTooLarge
from fhirpub.interactions.context import run_at
from fhirpub.web.handlers.batch.answers import batch_response
from fhirpub.web.handlers.batch.run import BatchRun, FindHandler
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.placement import DENSE, LARGE, VERY_LARGE, compute, joined
from fhirpub.web.message import content_negotiation as media
from fhirpub.web.message.representation import serialize_stored

_JOINED = 8 * 1024 * 1024
"""So many bytes are joined on the event loop."""


class BatchHandler(BodyHandler):
    """Answer each entry of a Bundle as the request that it stands for."""

    requires_token = True
    action = "batch"
    audits_refusals_only = True
    find_handler: FindHandler
    """Set by the router: it returns the handler of a request."""

    def check_format(self) -> None:
        """Accept JSON alone: the answers are put together as they are stored."""
        super().check_format()
        if media.is_xml(self.response_type):
            raise media.NotAcceptable("the response to a batch is JSON: ask for it")

    def check_content_type(self) -> None:
        """Accept JSON alone: the entries are found in it without parsing it."""
        super().check_content_type()
        if self.is_xml:
            raise media.UnsupportedMediaType(
                f"a batch must be {media.FHIR_JSON}: send XML in single requests"
            )

    async def post(self) -> None:
        """Answer all entries, or none if the Bundle is no batch."""
        entries = await self._read()
        answers = None
        if await self._has_memory():
            answers = await BatchRun(self, entries, self.find_handler).answers()
        if answers is None:  # the client has disconnected
            self.request.connection.close()
            self.cancel()
            return
        await self._respond(batch_response(answers))

    async def _respond(self, parts: Sequence[bytes]) -> None:
        size = sum(map(len, parts))
        if self.format.is_stored and not self.wants_gzip(size):
            self.respond_with_parts(parts)
            return
        whole = joined(parts)
        if not self.format.is_stored:
            work = partial(serialize_stored, form=self.format)
            whole = await self.compute_answer(work, [whole], body=whole)
        self.respond_serialized(whole)

    async def _has_memory(self) -> bool:
        """Reserve memory for the answers; False if the client has disconnected. Raises Busy."""
        memory, size = self.services.batch_memory, self.services.config.batch.answer_bytes
        turn = memory.acquire(self.request, size, owner=self.owner)
        if turn is not None:
            await turn
        return self.request in memory

    def leave(self) -> None:
        """Release the memory of the answers, too."""
        super().leave()
        self.services.batch_memory.release(self.request)

    async def _read(self) -> list[Entry]:
        """Read the entries: on the event loop with pauses, if each of them is small."""
        context, chunks = self.services.context, self.take_chunks()
        size = sum(map(len, chunks))
        if size > LARGE:
            self.services.trimmer.note_large_work()
        work = partial(read_batch, most=self.services.config.batch.entries)
        if size <= _JOINED:
            try:
                stages = work(context, joined(chunks), window=LARGE)
                return await self.services.context.stages.run(stages, owner=self.owner)
            except PieceTooLarge:
                pass
        is_dense = size > VERY_LARGE or self._values > DENSE
        run = partial(run_at, now=None, work=work)
        return await compute(self.services, self.owner, run, chunks, size=size, is_dense=is_dense)
