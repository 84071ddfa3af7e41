"""Looks up the patient that a body refers to instead of bringing it (ADR 26)."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.errors import NoSuchResource
from fhirpub.interactions.erased import ResourceErased
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.patients.read import read_patient
from fhirpub.interactions.submission.held import Held
from fhirpub.web.handlers.base import BaseHandler


async def find_held(handler: BaseHandler, held: Held) -> Held | None:
    """Return a patient with its content; None if there is none that the caller may read."""
    tenant, context = handler.caller.tenant, handler.services.context
    try:
        found = await read_patient(held.id, tenant=tenant, context=context)
    except (NoSuchResource, ResourceErased):
        return None
    if not handler.may_with("r", (PATIENT, found.owner_type)):
        return None
    return replace(held, body=found.body)
