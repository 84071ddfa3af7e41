"""Prepares what a body registers: without its large documents, and with a patient that is held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from fhirpub.interactions.context import Context
from fhirpub.interactions.register import Candidate, Prepared, Rejected
from fhirpub.interactions.submission.cut import read_cut
from fhirpub.interactions.submission.held import ReadBody, read_with
from fhirpub.runtime.stages import Stages, run_to_completion
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.patients.held import find_held

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
        work = partial(_prepare_cut, prepare=self.prepare, read_body=read_body)
        prepared = await self.handler.compute_cut(work, self.chunks)
        if prepared is not None:
            return prepared
        whole = partial(self.prepare, read_body=read_body)
        return await self.handler.compute_chunks(whole, self.chunks)


def _prepare_cut(
    context: Context,
    rest: bytes,
    documents: Mapping[str, bytes],
    *,
    prepare: Prepare,
    read_body: ReadBody,
) -> Prepared | None:
    """Prepare what is left of a body; None for refusals, which the whole body explains."""
    read = partial(read_cut, read=read_body, documents=documents)
    prepared = run_to_completion(prepare(context, rest, read_body=read))
    is_settled = isinstance(prepared, Candidate) or prepared.held is not None
    return prepared if is_settled else None
