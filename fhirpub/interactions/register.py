"""Register: one call, safe to repeat, that makes a resource with its documents (D-30 to D-92).

The id follows from the business identifier, so that racing registrations meet at one key of
the store. A call that loses the race, or is repeated years later, gets the first response again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeGuard

from fhirpub.errors import InvalidContent, Issue, Refused, StoreUnavailable
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions import references, rules
from fhirpub.interactions.context import Context
from fhirpub.interactions.erased import first_version, is_tombstone, number_after
from fhirpub.interactions.indexing.persons import PATIENT, persons_of, statement_id
from fhirpub.interactions.members.response import response_of
from fhirpub.interactions.members.versions import first_versions, ids_of_members
from fhirpub.interactions.patients.conflicts import with_conflicts
from fhirpub.interactions.repetition.digest import is_same
from fhirpub.interactions.submission.held import Held, ReadBody, held_part_of
from fhirpub.interactions.submission.record import Submission, parse
from fhirpub.interactions.validation.validation import take_documents, validate_leniently
from fhirpub.interactions.versions import attach, events_of, to_blobs, with_server_meta
from fhirpub.plugin_api import Change, Entry, ResourceType
from fhirpub.problems import ContentProblem
from fhirpub.runtime.stages import Stages
from fhirpub.storage.contract import Blob, Version
from fhirpub.tenant import Tenant

Key = tuple[str, str, str]
Reserve = Callable[[int], Callable[..., None]]
"""Raises what refuses so many new bytes, or returns what to call with ``created`` at the end."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A resource as it was first registered, and whether this call did it.

    ``same`` is whether a repetition has the content of the first call; None if nothing shows it.
    ``repeated`` is what a repetition with other content would have stored.
    """

    first: Version
    created: bool
    same: bool | None = None
    repeated: Version | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """What will be stored if the identifier is free."""

    version: Version
    blobs: tuple[Blob, ...]

    @property
    def id(self) -> str:
        """The id that follows from the identifier."""
        return self.version.id

    @property
    def digest(self) -> bytes:
        """The digest of what was sent."""
        return self.version.digest

    @property
    def size(self) -> int:
        """How many bytes are stored if its documents are new."""
        return self.version.size + sum(len(blob.data) for blob in self.blobs)


@dataclass(frozen=True, slots=True)
class Rejected:
    """What must not be stored, unless the same was registered before it was refused."""

    id: str
    digest: bytes
    refusal: Refused
    held: Held | None = None
    """The patient that is missing, if it is one that the tenant may hold."""

    def error(self) -> Refused:
        """Return the refusal to raise: a copy, whose traceback leads to no frame that holds it."""
        return type(self.refusal)(self.refusal.issues)

    def with_unknown_patient(self) -> Rejected:
        """Return it with an error that the tenant holds no such patient."""
        if self.held is None:
            return self
        rule = f"refers to {self.held.literal}, which is not held here: send the patient"
        issue = Issue.error(ContentProblem.REFERENCE_UNRESOLVED, rule, self.held.at)
        return replace(self, refusal=InvalidContent([*self.refusal.issues, issue]))


Prepared = Candidate | Rejected


@dataclass(frozen=True, slots=True)
class Received:
    """A body as it was read, before it is validated: its digest shows whether it is a repetition.

    ``body``, ``is_xml`` and ``read_body`` are what it was read from, and how.
    """

    submission: Submission
    key: Key | None
    body: bytes
    is_xml: bool
    read_body: ReadBody

    def numbered(self, number: int) -> Received:
        """Return it to be stored as the version of a number, also if it is read again."""
        if number == 1:
            return self
        self.submission.number = number
        read_body = partial(read_numbered, read=self.read_body, number=number)
        return replace(self, read_body=read_body)


def prepare_registration(
    context: Context,
    body: bytes,
    *,
    is_xml: bool,
    read_body: ReadBody,
    type_name: str,
    tenant: Tenant,
) -> Stages[Prepared]:
    """Go from the bytes of a body to what is to be stored; pure, for any thread or process.

    Raises what :func:`receive_registration` and :func:`validate_registration` raise.
    """
    received = yield from receive_registration(
        context, body, is_xml=is_xml, read_body=read_body, type_name=type_name
    )
    yield
    return (yield from validate_registration(context, received, tenant=tenant))


def receive_registration(
    context: Context, body: bytes, *, is_xml: bool, read_body: ReadBody, type_name: str
) -> Stages[Received]:
    """Go from the bytes of a body to its identifier and its digest; pure.

    Raises InvalidContent for what cannot be read as a submission.
    """
    content = parse(body, is_xml=is_xml)
    yield
    submission = read_body(content, context.types[type_name])
    yield
    take_documents(submission)
    return Received(submission, key_of(submission), body, is_xml, read_body)


def validate_registration(
    context: Context, received: Received, *, tenant: Tenant
) -> Stages[Prepared]:
    """Go from what was read to what is to be stored; pure.

    Raises InvalidContent, TooLarge or BrokenRule with all issues of the stage that failed, if
    the body has no identifier; else it returns them, since the same may be registered already.
    """
    submission = received.submission
    try:
        submission, issues = yield from validate_leniently(
            submission,
            received.body,
            is_xml=received.is_xml,
            read_body=received.read_body,
            context=context,
            tenant_id=tenant.id,
        )
        submission.remarks = rules.refuse([*submission.remarks, *issues], context)
        yield
        return (yield from build_candidate(submission, tenant, context))
    except Refused as refusal:
        if received.key is None:
            raise
        # Without its traceback, which holds all that was sent.
        rejected = refusal.with_traceback(None)
        held = held_part_of(submission, PATIENT, context.fhir_url)
        return Rejected(tenant.resource_id(*received.key), submission.digest, rejected, held)


def read_numbered(
    content: Any, resource_type: ResourceType, *, read: ReadBody, number: int
) -> Submission:
    """Read a body as ``read`` does, to be stored as the version of a number."""
    submission = read(content, resource_type)
    submission.number = number
    return submission


def key_of(submission: Submission) -> Key | None:
    """Return the type, system and value from which the id follows, if they were found."""
    return None if submission.key is None else (submission.type.name, *submission.key)


def reserve_nothing(_size: int) -> Callable[..., None]:
    """Refuse nothing: the tenant has no quota."""
    return lambda **_created: None


async def find_first(key: Key | None, *, tenant: Tenant, context: Context) -> Version | None:
    """Return what is registered under an identifier."""
    if key is None:
        return None
    return await first_version(context.resources, tenant.id, tenant.resource_id(*key))


def repeats(first: Version | None, digest: bytes) -> TypeGuard[Version]:
    """Return whether the content of a digest is what is registered, as far as it shows."""
    return first is not None and is_same(first.digest, digest) is True


async def register(
    prepared: Prepared,
    first: Version | None,
    *,
    tenant: Tenant,
    context: Context,
    reserve: Reserve = reserve_nothing,
) -> Registration:
    """Store a candidate unless its identifier is taken; return what is registered then.

    ``first`` is what was registered when it was looked up, before or after the validation.
    ``reserve`` is called only for what is not registered yet: a repetition is always answered.
    Raises what refused the request, unless it repeats what is registered.
    """
    if repeats(first, prepared.digest):
        return Registration(first, created=False, same=True)
    if isinstance(prepared, Rejected):
        raise prepared.error()
    if first is not None and not is_tombstone(first):
        return _repetition(first, prepared)
    return await _add(prepared, tenant=tenant, context=context, reserve=reserve)


async def _add(
    candidate: Candidate, *, tenant: Tenant, context: Context, reserve: Reserve
) -> Registration:
    """Add a candidate, or return what another call has added in the meantime."""
    resources = context.resources
    version = await with_conflicts(candidate.version, tenant=tenant, context=context)
    finish = reserve(candidate.size)
    created = False
    try:
        created = await resources.add(tenant.id, version, candidate.blobs)
    finally:
        finish(created=created)
    if created:
        context.added()
        return Registration(version, created=True)
    winner = await first_version(resources, tenant.id, version.id)
    if winner is None:
        raise StoreUnavailable("a taken key reads as free")
    if is_tombstone(winner):  # erased in the meantime: refused, or to be repeated
        raise StoreUnavailable(f"the next version is {number_after(winner)}")
    return _repetition(winner, candidate)


def _repetition(first: Version, candidate: Candidate) -> Registration:
    same = is_same(first.digest, candidate.digest)
    repeated = candidate.version if same is False else None
    return Registration(first, created=False, same=same, repeated=repeated)


def build_candidate(submission: Submission, tenant: Tenant, context: Context) -> Stages[Candidate]:
    """Build from a valid submission what is to be stored; pure. Raises TooLarge."""
    submission.remove_placeholders()
    resource, resource_type = submission.entry.resource, submission.type
    system, value = submission.known_key
    resource_id = tenant.resource_id(resource_type.name, system, value)
    ids_of_parts, alone, persons = _ids_of_parts(submission, resource_id, tenant, context)
    references.point_references_at(submission, ids_of_parts, resource_id)
    rules.write_narratives_in_characters(submission)
    yield
    now, number = context.clock(), submission.number
    stored = with_server_meta(resource, resource_id, version=number, updated=now)
    parts = {
        name: part.resource
        if name in submission.held
        else with_server_meta(
            part.resource,
            ids_of_parts[name],
            version=statement_id(resource_id, number) if name in persons else 1,
            updated=now,
        )
        for name, part in alone.items()
    }
    yield
    members = first_versions(
        submission, ids_of_parts, parts, number=number, now=now, context=context
    )
    key = {"system": system, "value": value}
    change = Change(
        id=resource_id, version=number, after=stored, before=None, parts=parts, identifier=key
    )
    attached, blobs = attach(to_blobs(submission.documents))
    version = Version(
        id=resource_id,
        version=number,
        type=resource_type.name,
        system=system,
        value=value,
        status=resource["status"],
        created=now,
        updated=now,
        body=dumps(stored),
        documents=tuple(dict.fromkeys(document.sha256 for document in submission.documents)),
        attached=attached,
        response=dumps(response_of(submission, stored, members, context)),
        parts=dumps(parts),
        events=events_of(change, resource_type),
        digest=submission.digest,
        search=context.searched[resource_type.name].values(stored, parts),
        members=members,
    )
    kept_apart = len(version.response) + len(version.events)
    kept_apart += sum(len(blob.data) for blob in attached)
    rules.resource_within_limits(version.size - kept_apart, context)
    return Candidate(version, blobs)


def _ids_of_parts(
    submission: Submission, resource_id: str, tenant: Tenant, context: Context
) -> tuple[dict[str, str], Mapping[str, Entry], Mapping[str, str]]:
    """Return the ids of all parts, those of them without versions, and the persons among them."""
    ids = ids_of_members(submission, tenant, resource_id)
    alone, persons = submission.parts, {}
    if ids:
        alone = {name: part for name, part in alone.items() if name not in ids}
    for name, part in alone.items():
        ids[name] = (
            part.resource["id"] if name in submission.held else tenant.part_id(resource_id, name)
        )
    if systems := context.config.patients.person_systems:
        sent = {name: one.resource for name, one in alone.items() if name not in submission.held}
        persons = persons_of(sent, systems, tenant)
    return ids | persons, alone, persons
