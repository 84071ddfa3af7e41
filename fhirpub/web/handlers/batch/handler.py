"""POST /fhir/r4: a batch, whose entries are answered one by one (ADR 27)."""

from __future__ import annotations

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


class BatchHandler(BodyHandler):
    """Answer each entry of a Bundle as the request that it stands for."""

    requires_token = True
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
        answers = await BatchRun(self, entries, self.find_handler).answers()
        if answers is None:  # the client has disconnected
            self.request.connection.close()
            self.cancel()
            return
        body = batch_response(answers)
        if not self.format.is_stored:
            work = partial(serialize_stored, form=self.format)
            body = await self.compute_answer(work, [body], body=body)
        self.respond_serialized(body)

    async def _read(self) -> list[Entry]:
        """Read the entries: on the event loop with pauses, if each of them is small."""
        context, body = self.services.context, joined(self.take_chunks())
        work = partial(read_batch, most=self.services.config.batch.entries)
        try:
            stages = work(context, body, window=LARGE)
            return await self.services.stages.run(stages, owner=self.owner)
        except PieceTooLarge:
            run = partial(run_at, now=None, work=work)
            is_dense = len(body) > VERY_LARGE or self._values > DENSE
            return await compute(
                self.services, self.owner, run, [body], size=len(body), is_dense=is_dense
            )
