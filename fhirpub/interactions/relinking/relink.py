"""Relink: move a resource to another Patient, in its next version (ADR 26).

The version carries everything: the resource and those of its members that refer to the patient,
with their new references; the statement about the corrected patient; who moved it and why; and
the event. One insert commits it (ADR 1), so that no crash leaves a part of it undone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from fhirpub.errors import NotPossible
from fhirpub.fhir.document import documents_in
from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored
from fhirpub.fhir.times import instant
from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import PATIENT, statement_id
from fhirpub.interactions.patients.parts import (
    PROVENANCE,
    first_parts,
    parts_now,
    sources_of_type,
)
from fhirpub.interactions.patients.statements import Source
from fhirpub.interactions.relinking.corrections import Target, corrected_patient, moved
from fhirpub.interactions.update import add_next
from fhirpub.interactions.versions import (
    events_of,
    key_of,
    still_attached,
    with_server_meta,
)
from fhirpub.plugin_api import Change
from fhirpub.runtime.logging import logger
from fhirpub.storage.contract import Blob, StoreAdmin, Version
from fhirpub.storage.erasure.tombstones import fhir_type, is_erased
from fhirpub.tenant import Tenant, is_member_id

_PAGE = 100

_log = logger()


class NotMovable(NotPossible):
    """A resource that cannot be moved to another Patient; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Note:
    """The operator of a relocation, and its reason, without names or identifiers of patients."""

    operator: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relink:
    """What a relink leads to, or has led to.

    ``version`` is that of the resource afterwards. ``is_needed`` is false where the resource
    refers to the Patient already: then nothing is stored. ``states`` is whether it stated
    something about the Patient that it is moved from.
    """

    type: str
    id: str
    version: int
    before: str
    after: str
    is_needed: bool
    states: bool


@dataclass(frozen=True, slots=True)
class _Stored:
    """What the next version is made from."""

    newest: Version
    source: Source
    first: JsonObject
    current: JsonObject
    members: Mapping[str, Version]

    @property
    def former_id(self) -> str:
        """The id of the Patient that it belongs to."""
        return str(self.current[self.source.part]["id"])


async def plan_relink(
    resource_id: str, target: Target, *, tenant: Tenant, context: Context
) -> Relink:
    """Return what :func:`relink` would do. Raises NotMovable."""
    newest = await _newest(resource_id, tenant, context)
    return _outcome(await _stored(newest, {}, tenant, context), target)


async def relink(
    resource_id: str,
    target: Target,
    note: Note,
    *,
    tenant: Tenant,
    context: Context,
    store: StoreAdmin,
) -> Relink:
    """Insert the next version of a resource, which belongs to another Patient.

    Nothing is inserted if it belongs to that one already, so that repeating a call is safe. A
    lost race begins again with the version that the other call added: what that changed stays.
    Raises NotMovable, StoreUnavailable.
    """

    async def make(newest: Version) -> tuple[Version | None, Collection[Blob], Relink]:
        members = await _members_of(newest, context, store)
        stored = await _stored(newest, members, tenant, context)
        outcome = _outcome(stored, target)
        version = _next_version(stored, target, note, context) if outcome.is_needed else None
        return version, (), outcome

    outcome = await add_next(
        newest_of=lambda: _newest(resource_id, tenant, context),
        make=make,
        tenant=tenant,
        context=context,
    )
    if outcome.is_needed:
        _log.warning(
            "resource moved to another patient",
            tenant=tenant.id,
            resource=f"{outcome.type}/{outcome.id}",
            version=outcome.version,
            before=outcome.before,
            after=outcome.after,
            operator=note.operator,
            reason=note.reason,
        )
    return outcome


async def _newest(resource_id: str, tenant: Tenant, context: Context) -> Version:
    newest = await context.resources.latest(tenant.id, resource_id)
    if newest is None:
        raise NotMovable(f"the tenant has no report {resource_id}")
    if is_erased(newest):
        raise NotMovable(f"{fhir_type(newest.type)}/{newest.id} was erased")
    if is_member_id(resource_id) or newest.type not in context.types:
        what = f"{newest.type}/{newest.id}"
        raise NotMovable(f"{what} came with another resource: it moves together with that one")
    return newest


async def _members_of(
    newest: Version, context: Context, store: StoreAdmin
) -> Mapping[str, Version]:
    """Return the newest versions of the members of a resource, by id.

    Its versions are read from the first on: of a member, no reference need lead to it.
    """
    found: dict[str, Version] = {}
    number = 0 if context.types[newest.type].repeating else newest.version
    while number < newest.version:
        limit = min(newest.version - number, _PAGE)
        page = await store.scan(after=(newest.id, number), limit=limit)
        for _tenant, version in page:
            if version.id == newest.id and not is_erased(version):
                found |= {member.id: member for member in version.members}
        number = page[-1][1].version if page and page[-1][1].id == newest.id else newest.version
    return found


async def _stored(
    newest: Version, members: Mapping[str, Version], tenant: Tenant, context: Context
) -> _Stored:
    first = await first_parts(newest, tenant=tenant, context=context)
    sources = [one for one in sources_of_type(newest.type, context) if one.part in first]
    if len(sources) != 1:
        which = "several patients" if sources else "no patient"
        raise NotMovable(f"{newest.type}/{newest.id} came with {which}: it cannot be moved")
    current = await parts_now(newest, first, tenant=tenant, context=context)
    return _Stored(newest, sources[0], first, current, members)


def _outcome(stored: _Stored, target: Target) -> Relink:
    newest, before = stored.newest, stored.former_id
    is_needed = before != target.id
    stated = stored.current[stored.source.part]["meta"]["versionId"]
    return Relink(
        type=newest.type,
        id=newest.id,
        version=newest.version + is_needed,
        before=before,
        after=target.id,
        is_needed=is_needed,
        states=stated == "1" or stated.startswith(f"{newest.id}."),
    )


def _next_version(stored: _Stored, target: Target, note: Note, context: Context) -> Version:
    newest, element, base = stored.newest, stored.source.element, context.fhir_url
    number, updated = newest.version + 1, max(context.clock(), newest.updated + 1)
    statement = statement_id(newest.id, number)
    corrected = corrected_patient(stored.first[stored.source.part], target)
    patient = with_server_meta(corrected, target.id, version=statement, updated=updated)
    parts = {**stored.first, stored.source.part: patient}
    before = loads_stored(newest.body)
    patients = (stored.former_id, patient)
    after = moved(before, patients, element=element, base=base)
    resource = with_server_meta(after, newest.id, version=number, updated=updated)
    members = tuple(_next_members(stored, patients, parts, updated, context))
    change = Change(
        id=newest.id,
        version=number,
        after=resource,
        before=before,
        parts=parts,
        changed=tuple(f"{member.type}/{member.id}" for member in members),
        identifier=key_of(newest),
    )
    body = dumps(resource)
    documents = documents_in(body)
    provenance = _provenance(stored, patient, note, updated)
    return Version(
        id=newest.id,
        version=number,
        type=newest.type,
        system=newest.system,
        value=newest.value,
        status=newest.status,
        created=newest.created,
        updated=updated,
        body=body,
        documents=documents,
        attached=still_attached(newest, documents),
        parts=dumps({**parts, PROVENANCE: provenance}),
        events=events_of(change, context.types[newest.type]),
        search=context.searched[newest.type].values(resource, parts, limited=False),
        members=members,
    )


def _next_members(
    stored: _Stored,
    patients: tuple[str, JsonObject],
    parts: Mapping[str, JsonObject],
    updated: int,
    context: Context,
) -> Iterator[Version]:
    """Yield the next version of each member that refers to the patient."""
    for member in stored.members.values():
        before = loads_stored(member.body)
        after = moved(before, patients, base=context.fhir_url)
        if after == before:
            continue
        number = member.version + 1
        resource = with_server_meta(after, member.id, version=number, updated=updated)
        searched = context.searched[member.type]
        yield replace(
            member,
            version=number,
            updated=updated,
            body=dumps(resource),
            search=searched.values_of_member(resource, parts, limited=False),
        )


def _provenance(stored: _Stored, patient: JsonObject, note: Note, updated: int) -> JsonObject:
    """Return by whom, when and why a resource was moved, as FHIR describes it (R4, Provenance)."""
    newest, statement = stored.newest, patient["meta"]["versionId"]
    targets = (
        f"{newest.type}/{newest.id}/_history/{newest.version + 1}",
        f"{PATIENT}/{patient['id']}/_history/{statement}",
    )
    former = {"reference": f"{PATIENT}/{stored.former_id}"}
    return {
        "resourceType": "Provenance",
        "id": statement,
        "meta": {"versionId": statement, "lastUpdated": instant(updated)},
        "target": [{"reference": target} for target in targets],
        "recorded": instant(updated),
        "reason": [{"text": note.reason}],
        "agent": [{"who": {"display": note.operator}}],
        "entity": [{"role": "revision", "what": former}],
    }
