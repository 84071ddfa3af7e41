"""Update: named fields replaced whole, under optimistic locking (D-105 to D-123)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, TypeVar

from fhirpub.errors import MAX_ISSUES, InvalidContent, Issue, StoreUnavailable
from fhirpub.fhir.document import Document, documents_in, extract_attachments
from fhirpub.fhir.identity import identity_problems, repeated_element_ids
from fhirpub.fhir.invariants import broken_invariants, mistyped_references, types_of_contained
from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored, refuse_excess
from fhirpub.interactions import rules
from fhirpub.interactions.checks.all_problems import all_problems
from fhirpub.interactions.checks.narrative_truth import is_contradicted, refuse_untrue
from fhirpub.interactions.context import Context
from fhirpub.interactions.identity.problems import has_usual_identifier, refuse_other_key
from fhirpub.interactions.patch_formats import Fields, Form, fields_of
from fhirpub.interactions.patients.parts import current_parts
from fhirpub.interactions.submission.cut import refuse_misplaced
from fhirpub.interactions.submission.record import parse
from fhirpub.interactions.validation.usual import mark_if_plain
from fhirpub.interactions.versions import (
    attach,
    events_of,
    key_of,
    still_attached,
    to_blobs,
    with_server_meta,
)
from fhirpub.plugin_api import Change, Entry, ResourceType
from fhirpub.runtime.stages import Stages
from fhirpub.storage.contract import Blob, Version
from fhirpub.tenant import Tenant

_FIRST = re.compile(r"[.\[]")
"""What ends the first name of a place."""
_RACES = 300
"""How often an update without If-Match starts again because another one was quicker."""


T = TypeVar("T")
Prepare = Callable[[Version], Awaitable["Update"]]


@dataclass(frozen=True, slots=True)
class Update:
    """The next version, the documents that it brings, and the remarks on its content."""

    version: Version
    blobs: tuple[Blob, ...]
    remarks: tuple[Issue, ...] = ()

    @property
    def size(self) -> int:
        """How many bytes are stored if its documents are new."""
        return self.version.size + sum(len(blob.data) for blob in self.blobs)


def prepare(
    context: Context, body: bytes, *, form: Form, is_xml: bool, latest: Version, tenant: Tenant
) -> Stages[Update]:
    """Validate an update against the latest version and build the next.

    Pure, for any thread or process. Raises, in this order: InvalidContent for what cannot be
    parsed and for the envelope, BrokenRule if no field that is named can be updated, TooLarge,
    InvalidContent and BrokenRule for the values together with fields that cannot be updated,
    TooLarge and InvalidContent for what the resource would become.
    """
    content = parse(body, is_xml=is_xml)
    yield
    return (yield from _prepare(form, content, latest, tenant, context, cut={}))


def prepare_cut(
    context: Context,
    rest: bytes,
    documents: Mapping[str, bytes],
    *,
    form: Form,
    latest: Version,
    tenant: Tenant,
) -> Stages[Update]:
    """Do the same with JSON whose large documents were cut out (ADR 32). Raises MisplacedCut."""
    content = parse(rest, is_xml=False)
    yield
    return (yield from _prepare(form, content, latest, tenant, context, cut=documents))


def _prepare(
    form: Form,
    content: Any,
    latest: Version,
    tenant: Tenant,
    context: Context,
    *,
    cut: Mapping[str, bytes],
) -> Stages[Update]:
    resource_type, limits = context.types[latest.type], context.config.limits
    before: JsonObject = loads_stored(latest.body)
    fields = fields_of(form, content, before, resource_type, most=limits.resource_bytes)
    zones = list(rules.times_as_utc(fields.values, resource_type.times, context))
    documents, undecodable = extract_attachments(fields.values, resource_type.attachments, cut)
    refuse_misplaced(cut, documents)
    rules.check_limits(documents, most=limits.attachment_bytes, at=resource_type.name)
    after = fields.merge(before)
    yield
    entry = _entry_of(after, resource_type, context)
    news = _NewIssues(before, fields, context)
    structural = [*news.structural(entry, resource_type), *undecodable]
    checks = chain(
        [[zone.below(entry.at) for zone in zones]],
        _status_checks(before, entry, fields, resource_type, context),
        rules.check_resource(
            entry, resource_type, documents, context, context.rules_for(tenant.id)
        ),
        [refuse_untrue(before, after, resource_type.name)],
        [refuse_other_key(before, after, resource_type)],
    )
    if structural:
        problems = yield from all_problems(
            [issue.below(entry.at) for issue in structural],
            [entry],
            between_elements=news.wrong_by_fhir(entry),
            rules=checks,
            fhirpath=context.schemas.fhirpath,
        )
        raise InvalidContent([*problems, *fields.refused])
    found = [*fields.refused, *news.wrong_by_fhir(entry), *chain.from_iterable(checks)]
    remarks = rules.refuse(found, context)
    yield
    if is_contradicted(before, after, fields.names, resource_type.attachments):
        after = {name: value for name, value in after.items() if name != "text"}
    version = _next_version(latest, before, after, resource_type, context, tenant)
    return _with_documents(version, documents, remarks)


def _entry_of(after: JsonObject, resource_type: ResourceType, context: Context) -> Entry:
    """Return what is validated, marked if rules have nothing to say about it (ADR 31)."""
    entry = Entry(after, resource_type.name)
    if context.accepts_fast:
        mark_if_plain(entry, context)
    return entry


def _with_documents(
    version: Version, documents: Sequence[Document], remarks: Iterable[Issue]
) -> Update:
    """Return an update whose version holds the documents that are new and small, too."""
    if not documents:
        return Update(version, (), tuple(remarks))
    known = {blob.sha256 for blob in version.attached}
    new = [blob for blob in to_blobs(documents) if blob.sha256 not in known]
    attached, blobs = attach([*version.attached, *new])
    return Update(replace(version, attached=attached), blobs, tuple(remarks))


async def update(
    *,
    newest_of: Callable[[], Awaitable[Version]],
    check: Callable[[Version], None],
    resource_type: ResourceType,
    tenant: Tenant,
    context: Context,
    prepared: Prepare,
) -> Update:
    """Insert the next version and return it, with the remarks on it.

    ``newest_of`` reads the version to update, again after each lost race, and ``check`` raises
    VersionConflict unless it is one that the client wants to replace: the condition must hold for
    the very version that the new one follows. ``prepared`` runs :func:`prepare` against it, in a
    thread if the body is large. Without a condition the last writer wins: an overtaken update
    starts again (D-118).
    Raises what ``newest_of`` raises, then what ``check`` raises, then the problems of the body
    (D-119).
    """

    async def make(newest: Version) -> tuple[Version, Collection[Blob], Update]:
        check(newest)
        candidate = await prepared(await _with_parts(newest, resource_type, tenant, context))
        return candidate.version, candidate.blobs, candidate

    return await add_next(newest_of=newest_of, make=make, tenant=tenant, context=context)


async def add_next(
    *,
    newest_of: Callable[[], Awaitable[Version]],
    make: Callable[[Version], Awaitable[tuple[Version | None, Collection[Blob], T]]],
    tenant: Tenant,
    context: Context,
) -> T:
    """Insert the version that ``make`` makes of the newest one; return what it makes besides.

    If another call is quicker, everything begins again with the version that it added. Nothing is
    inserted if ``make`` returns no version. Raises what the functions raise, StoreUnavailable.
    """
    for _race in range(_RACES):
        version, blobs, made = await make(await newest_of())
        if version is None:
            return made
        if await context.resources.add(tenant.id, version, blobs):
            context.added()
            return made
    raise StoreUnavailable(f"lost {_RACES} races for the next version")


async def _with_parts(
    latest: Version, resource_type: ResourceType, tenant: Tenant, context: Context
) -> Version:
    """Return the version with the parts that events include; few later ones store any."""
    if latest.is_first:
        return latest
    if not any(part.include_in_events for part in resource_type.parts):
        return replace(latest, parts=b"")
    parts = await current_parts(latest, tenant=tenant, context=context)
    return replace(latest, parts=dumps(parts))


@dataclass(frozen=True, slots=True)
class _NewIssues:
    """Finds what is wrong with a resource, but for old wrongs in fields not named (D-119).

    Rules have come since it was stored, and it must stay open to corrections.
    """

    before: JsonObject
    fields: Fields
    context: Context

    def structural(self, entry: Entry, resource_type: ResourceType) -> list[Issue]:
        """Return what is wrong by the schema; what it contained before is not looked at."""
        if entry.is_plain and has_usual_identifier(entry.resource, resource_type):
            return []
        kept = {"contained"} - self.fields.names

        def problems_of(resource: JsonObject) -> Iterator[Issue]:
            new = {name: value for name, value in resource.items() if name not in kept}
            statuses = resource_type.update_statuses
            checks = rules.check_structure(new, resource_type, self.context, statuses)
            return islice(chain.from_iterable(checks), MAX_ISSUES)

        return self._new(list(problems_of(entry.resource)), lambda: problems_of(self.before))

    def wrong_by_fhir(self, entry: Entry) -> Iterator[Issue]:
        """Yield what breaks FHIR's own rules between elements: nothing in a plain resource."""
        if entry.is_plain:
            return
        found, leading = list(_broken_rules(entry)), types_of_contained(entry.resource)
        changed = Entry(self.fields.values, entry.at)
        for issue in (
            *self._new(found, lambda: _broken_rules(Entry(self.before, entry.at))),
            *mistyped_references(changed.rule_targets, changed.place_of, leading),
            *identity_problems(changed.identified, changed.rule_targets, changed.place_of),
        ):
            yield issue.below(entry.at)

    def _new(self, found: list[Issue], older: Callable[[], Iterable[Issue]]) -> list[Issue]:
        if not found:
            return found
        known, path_of = set(older()), self.context.schemas.fhirpath
        named = {path_of(name.removeprefix("_")) for name in self.fields.names}
        return [
            issue
            for issue in found
            if issue not in known or path_of(_FIRST.split(issue.expression)[0]) in named
        ]


def _broken_rules(entry: Entry) -> Iterator[Issue]:
    leading = types_of_contained(entry.resource)
    yield from broken_invariants(entry.resource, entry.rule_targets, entry.place_of, leading)
    yield from repeated_element_ids(entry.resource, entry.identified, entry.place_of)


def _status_checks(
    before: JsonObject,
    entry: Entry,
    fields: Fields,
    resource_type: ResourceType,
    context: Context,
) -> Iterator[Iterable[Issue]]:
    """The status is one of an update and, where that is checked, follows the one before."""
    after, statuses = entry.resource, resource_type.update_statuses
    is_named = "status" in fields.names
    if is_named:
        yield (issue.below(entry.at) for issue in rules.status(after, statuses))
    if context.config.of_type(resource_type.name).state_flow != "clinical":
        return
    if not is_named or after.get("status") in statuses:
        flow = rules.state_flow(before, after, resource_type)
        yield (issue.below(entry.at) for issue in flow)


def _next_version(
    latest: Version,
    before: JsonObject,
    after: JsonObject,
    resource_type: ResourceType,
    context: Context,
    tenant: Tenant,
) -> Version:
    number, now = latest.version + 1, max(context.clock(), latest.updated + 1)
    stored = with_server_meta(after, latest.id, version=number, updated=now)
    parts = loads_stored(latest.parts) if latest.parts else {}
    change = Change(
        id=latest.id,
        version=number,
        after=stored,
        before=before,
        parts=parts,
        identifier=key_of(latest),
    )
    body = dumps(stored)
    documents = documents_in(body)
    rules.resource_within_limits(len(body), context)
    refuse_excess(stored, written=body)  # many fields that are right may be too much together
    return Version(
        id=latest.id,
        version=number,
        type=latest.type,
        system=latest.system,
        value=latest.value,
        status=stored["status"],
        created=latest.created,
        updated=now,
        body=body,
        documents=documents,
        attached=still_attached(latest, documents),
        events=events_of(change, resource_type),
        search=context.searched[resource_type.name].next_values(stored, latest.search, tenant),
    )
