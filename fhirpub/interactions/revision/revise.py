"""Revise: a resource and its members corrected together, in one commit (ADR 25)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from fhirpub.errors import StoreUnavailable
from fhirpub.interactions.context import Context
from fhirpub.interactions.register import Candidate
from fhirpub.interactions.revision.comparison import (
    Revision,
    Stored,
    blobs_of_revision,
    members_of,
)
from fhirpub.storage.contract import Version
from fhirpub.tenant import Tenant

_RACES = 300
"""How often a revision without If-Match starts again because another update was quicker."""
_AT_ONCE = 50
"""So many members are read together; small ones are read on the event loop."""

Compare = Callable[[Version, Stored], Awaitable[Revision]]


@dataclass(frozen=True, slots=True)
class Revised:
    """The newest version after a revision, whether it was made by it, and the response."""

    version: Version
    created: bool
    response: bytes


async def revise(
    candidate: Candidate,
    *,
    newest_of: Callable[[], Awaitable[Version]],
    check: Callable[[Version], None],
    compare: Compare,
    tenant: Tenant,
    context: Context,
) -> Revised:
    """Insert the next version of a resource and of the members that differ, if anything does.

    ``newest_of`` reads the version to revise, again after each lost race, and ``check`` raises
    VersionConflict unless it is one that the client wants to replace. ``compare`` runs
    :func:`comparison.compare` where bodies of this size are compared. A repeated revision finds
    nothing that differs, so that repeating a call is safe.
    Raises what ``newest_of``, ``check`` and ``compare`` raise, StoreUnavailable.
    """
    for _race in range(_RACES):
        newest = await newest_of()
        check(newest)
        stored = await _stored_for(candidate.version, newest, tenant, context)
        revision = await compare(candidate.version, stored)
        if revision.version is None:
            return Revised(newest, created=False, response=revision.response)
        blobs = blobs_of_revision(candidate, revision.version)
        if await context.resources.add(tenant.id, revision.version, blobs):
            context.added()
            return Revised(revision.version, created=True, response=revision.response)
    raise StoreUnavailable(f"lost {_RACES} races for the next version")


async def _stored_for(
    candidate: Version, latest: Version, tenant: Tenant, context: Context
) -> Stored:
    first = await context.resources.version(tenant.id, latest.id, 1)
    if first is None:
        raise StoreUnavailable("version 1 is missing")
    ids = sorted(members_of(candidate, latest))
    found = await _newest(ids, tenant, context)
    return Stored(latest, first.parts, {version.id: version for version in found})


async def _newest(ids: Collection[str], tenant: Tenant, context: Context) -> list[Version]:
    found: list[Version | None] = []
    waiting = list(ids)
    while waiting:
        few, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
        found += await asyncio.gather(*(context.resources.latest(tenant.id, one) for one in few))
        await asyncio.sleep(0)
    return [version for version in found if version is not None]
