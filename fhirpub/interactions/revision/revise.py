"""Revise: a resource and its members corrected together, in one commit (ADR 25)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from fhirpub.errors import BrokenRule, VersionReplaced
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.context import Context
from fhirpub.interactions.members.lookup import look_up_all
from fhirpub.interactions.patients.parts import first_parts, parts_now
from fhirpub.interactions.register import Candidate
from fhirpub.interactions.revision.comparison import (
    Revision,
    Stored,
    members_of,
)
from fhirpub.interactions.update import add_next
from fhirpub.storage.contract import Blob, Version
from fhirpub.tenant import Tenant

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
    nothing that differs, so that repeating a call is safe: also under the condition that its first
    attempt has met (RFC 9110, 13.1.1).
    Raises what ``newest_of``, ``check`` and ``compare`` raise, StoreUnavailable.
    """

    async def make(newest: Version) -> tuple[Version | None, Collection[Blob], Revised]:
        replaced = _replaced(check, newest)
        stored = await _stored_for(candidate.version, newest, tenant, context)
        try:
            revision = await compare(candidate.version, stored)
        except BrokenRule as broken:
            raise replaced or broken from None
        created = revision.version is not None
        if created and replaced is not None:
            raise replaced
        revised = Revised(revision.version or newest, created=created, response=revision.response)
        return revision.version, candidate.blobs, revised

    return await add_next(newest_of=newest_of, make=make, tenant=tenant, context=context)


def _replaced(check: Callable[[Version], None], newest: Version) -> VersionReplaced | None:
    """Return the conflict, if the client means an earlier version than the newest one."""
    try:
        check(newest)
    except VersionReplaced as conflict:
        return conflict
    return None


async def _stored_for(
    candidate: Version, latest: Version, tenant: Tenant, context: Context
) -> Stored:
    first = await first_parts(latest, tenant=tenant, context=context)
    current = await parts_now(latest, first, tenant=tenant, context=context)
    ids = sorted(members_of(candidate, latest))
    found = await look_up_all(lambda one: context.resources.latest(tenant.id, one), ids)
    members = {version.id: version for version in found}
    return Stored(latest, dumps(first), dumps(current), tenant, members)
