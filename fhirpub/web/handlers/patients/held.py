"""Looks up the patient that a body refers to instead of bringing it (ADR 26)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from fhirpub.errors import NoSuchResource
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.patients.read import read_patient
from fhirpub.interactions.register import Prepared, Rejected
from fhirpub.interactions.submission.held import Held, ReadBody, read_with
from fhirpub.runtime.stages import Stages
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.body import BodyHandler

Prepare = Callable[..., Stages[Prepared]]


async def prepare_with_held(
    handler: BodyHandler, prepare: Prepare, read_body: ReadBody
) -> Prepared:
    """Prepare a body; again if the patient that it lacks turns out to be held."""
    chunks = handler.take_chunks()
    prepared = await handler.compute_chunks(partial(prepare, read_body=read_body), chunks)
    return await complete_with_held(handler, prepared, prepare, read_body, chunks)


async def complete_with_held(
    handler: BodyHandler,
    prepared: Prepared,
    prepare: Prepare,
    read_body: ReadBody,
    chunks: Sequence[bytes],
) -> Prepared:
    """Prepare a body again if it lacks a patient that turns out to be held."""
    if not isinstance(prepared, Rejected) or prepared.held is None:
        return prepared
    held = await find_held(handler, prepared.held)
    if held is None:
        return prepared.with_unknown_patient()
    read = partial(read_with, read=read_body, held=held)
    return await handler.compute_chunks(partial(prepare, read_body=read), chunks)


async def find_held(handler: BaseHandler, held: Held) -> Held | None:
    """Return a patient with its content; None if there is none that the caller may read."""
    tenant, context = handler.caller.tenant, handler.services.context
    try:
        found = await read_patient(held.id, tenant=tenant, context=context)
    except NoSuchResource:
        return None
    if not handler.may_with("r", (PATIENT, found.owner_type)):
        return None
    return replace(held, body=found.body)
