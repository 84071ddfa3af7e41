"""Reports a registration whose identifier is registered with other content."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fhirpub.errors import OtherContent
from fhirpub.interactions.context import Context
from fhirpub.interactions.erased import first_version
from fhirpub.interactions.members.lookup import look_up_all
from fhirpub.interactions.register import Registration
from fhirpub.interactions.repetition.difference import differing_elements
from fhirpub.runtime.logging import logger
from fhirpub.storage.contract import Version
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.placement import compute_with

REPLAYED, CONTENT = "Idempotent-Replayed", "Idempotent-Content"

_log = logger()


def replay_headers(registration: Registration) -> dict[str, str]:
    """Return the headers that name a repetition as one, and other content as such."""
    if registration.created:
        return {}
    return {REPLAYED: "true"} | ({CONTENT: "different"} if registration.same is False else {})


async def report_other_content(handler: BodyHandler, first: Version, repeated: Version) -> None:
    """Log and count a registration of other content; raise OtherContent if that is refused."""
    elements = await compare(handler, first, repeated)
    handler.services.metrics.other_content.inc()
    _log.warning(
        "other content under a registered identifier",
        type=first.type,
        id=first.id,
        elements=" ".join(elements),
        request_id=handler.request_id,
        client=handler.caller.client_id,
    )
    if handler.services.config.fhir.other_content == "conflict":
        raise OtherContent(f"{first.type}/{first.id}", elements)


async def compare(handler: BodyHandler, first: Version, repeated: Version) -> tuple[str, ...]:
    """Return the names of the elements that differ, computed where resources of their size are."""
    first = await _with_members(handler, first, repeated)
    members = [member.body for member in (*first.members, *repeated.members)]
    stored = [first.body, first.parts, repeated.body, repeated.parts, *members]
    first, repeated = (_compared(version) for version in (first, repeated))
    work = partial(_differing_elements, first=first, repeated=repeated)
    return await compute_with(handler.services, handler.owner, work, stored)


async def _with_members(handler: BodyHandler, first: Version, repeated: Version) -> Version:
    """Return a first version with those of its members that a repetition has as well."""
    resources, tenant = handler.services.context.resources, handler.owner
    ids = [member.id for member in repeated.members]
    found = await look_up_all(lambda one: first_version(resources, tenant, one), ids)
    return replace(first, members=tuple(found))


def _compared(version: Version) -> Version:
    """Return a version without what is not compared, which another process need not get."""
    return replace(version, response=b"", events=b"[]", search=b"[]")


def _differing_elements(
    _context: Context, _body: bytes, *, first: Version, repeated: Version
) -> tuple[str, ...]:
    return differing_elements(first, repeated)
