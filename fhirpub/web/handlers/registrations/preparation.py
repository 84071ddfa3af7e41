"""Prepares what a body registers: without its large documents, and with a patient that is held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fhirpub.errors import Refused
from fhirpub.interactions.context import Context
from fhirpub.interactions.register import Candidate, Prepared, Rejected
from fhirpub.interactions.submission.cut import cut_documents, read_cut
from fhirpub.interactions.submission.held import ReadBody, read_with
from fhirpub.interactions.validation.validation import MisplacedCut
from fhirpub.runtime.stages import Stages, run_to_completion
from fhirpub.runtime.tracing.spans import step
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.patients.held import find_held
from fhirpub.web.handlers.placement import LARGE, joined

Prepare = Callable[..., Stages[Prepared]]


@dataclass(frozen=True, slots=True)
class Preparation:
    """How a body is prepared; ``prepare`` takes a context, a body, and how it is read."""

    handler: BodyHandler
    prepare: Prepare
    read_body: ReadBody
    chunks: list[bytes]

    async def run(self) -> Prepared:
        """Prepare the body, and complete what comes of it."""
        return await self.complete(await self._compute(self.read_body))

    async def complete(self, prepared: Prepared) -> Prepared:
        """Prepare the body again if it lacks a patient that turns out to be held (ADR 26)."""
        if not isinstance(prepared, Rejected) or prepared.held is None:
            return prepared
        held = await find_held(self.handler, prepared.held)
        if held is None:
            return prepared.with_unknown_patient()
        return await self._compute(partial(read_with, read=self.read_body, held=held))

    async def _compute(self, read_body: ReadBody) -> Prepared:
        handler, chunks = self.handler, self.chunks
        is_large = sum(map(len, chunks)) > LARGE
        if is_large and handler.has_few_values and not handler.is_xml:
            services = handler.services
            services.trimmer.note_large_work()
            work = partial(_prepare_without_documents, prepare=self.prepare, read_body=read_body)
            with step("validate"):
                prepared = await services.threads.run(
                    handler.owner, lambda: work(services.context, _join(chunks))
                )
            if prepared is not None:
                return prepared
        return await handler.compute_chunks(partial(self.prepare, read_body=read_body), chunks)


def _join(chunks: list[bytes]) -> bytes:
    """Return the chunks as one, and keep this one in their place: it is not held twice."""
    chunks[:] = [joined(chunks)]
    return chunks[0]


def _prepare_without_documents(
    context: Context, body: bytes, *, prepare: Prepare, read_body: ReadBody
) -> Prepared | None:
    """Prepare a body that is small without its documents; None for others, and for refusals.

    Those are explained with the whole body.
    """
    cut = cut_documents(body, max_rest=LARGE)
    if cut is None:
        return None
    rest, documents = cut
    read = partial(read_cut, read=read_body, documents=documents)
    try:
        prepared = run_to_completion(prepare(context, rest, read_body=read))
    except (Refused, MisplacedCut):
        return None
    is_settled = isinstance(prepared, Candidate) or prepared.held is not None
    return prepared if is_settled else None
