"""Update: named fields replaced whole, under optimistic locking (D-105 to D-123)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fhirpub.errors import BrokenRule, InvalidContent, Issue, StoreUnavailable, VersionConflict
from fhirpub.fhir.document import detach, documents_in
from fhirpub.fhir.invariants import broken_invariants
from fhirpub.fhir.strict_json import JsonObject, dumps, loads
from fhirpub.interactions import rules
from fhirpub.interactions.context import Context
from fhirpub.interactions.read import read
from fhirpub.interactions.records import blobs_of, events_of, loads_stored, stamped
from fhirpub.plugin_api import Change, Entry, ResourceType
from fhirpub.storage.contract import Blob, Version
from fhirpub.tenant import Tenant

_TAG = re.compile(r'(?:W/)?"([^"]*)"')
_RACES = 100
"""How often an update without If-Match starts again because another one was quicker."""


Prepare = Callable[[Version], Awaitable["Update"]]


@dataclass(frozen=True, slots=True)
class Update:
    """The next version, and the documents that it brings."""

    version: Version
    blobs: tuple[Blob, ...]


def check_precondition(if_match: str, latest: Version) -> None:
    """Raise VersionConflict unless the latest version is among those named (D-116, D-117).

    ``if_match`` is the header's value: ``W/"3"``, ``"3"``, a list of them, ``*``, or empty.
    """
    if not if_match or if_match.strip() == "*":
        return
    tags = _TAG.findall(if_match)
    leftover = _TAG.sub("", if_match).strip(" \t,")
    if str(latest.version) in tags and not leftover:
        return
    target = tags[0] if tags and not leftover else if_match
    plain = target if target.isascii() and target.isdecimal() else repr(target[:64])
    raise VersionConflict(target=plain, current=latest.version)


def prepare(
    body: bytes,
    latest: Version,
    *,
    resource_type: ResourceType,
    tenant: Tenant,
    context: Context,
) -> Update:
    """Judge an update against the latest version and make the next of it; pure, for any thread.

    Raises, in this order: InvalidContent for the envelope, BrokenRule for fields that cannot be
    updated, TooLarge, InvalidContent and BrokenRule for the values (D-106, D-107).
    """
    patch = loads(body)
    _refuse_other_fields(patch, resource_type)
    before: JsonObject = loads_stored(latest.body)
    zones = list(rules.times_as_utc(patch, resource_type, context))
    documents, undecodable = detach(patch, resource_type.attachments)
    most = context.config.limits.attachment_bytes
    rules.within_limits(documents, most=most, at=resource_type.name)
    after = _merged(before, patch)
    entry = Entry(after, resource_type.name)
    structural = [*rules.of_structure(after, resource_type, context), *undecodable]
    if structural:
        raise InvalidContent(each.below(entry.at) for each in structural)
    found = [
        each.below(entry.at)
        for each in (*zones, *broken_invariants(after, entry.telling, entry.place_of))
    ]
    if "status" in patch:
        found += [
            each.below(entry.at) for each in rules.status(after, resource_type.update_statuses)
        ]
    found += rules.of_resource(
        entry, resource_type, documents, context, context.rules_for(tenant.id)
    )
    found += _narrative(before, resource_type)
    rules.refuse(found, context)
    next_one = _next(latest, before, after, resource_type, context, tenant)
    return Update(next_one, blobs_of(documents))


async def update(
    resource_id: str,
    *,
    if_match: str,
    resource_type: ResourceType,
    tenant: Tenant,
    context: Context,
    prepared: Prepare,
) -> Version:
    """Insert the next version and return it.

    ``prepared`` runs :func:`prepare` against the latest version, in a thread if the body is
    large. Without If-Match the last writer wins: whoever was overtaken starts again (D-118).
    Raises NoSuchResource before VersionConflict before whatever is wrong with the body (D-119).
    """
    for _race in range(_RACES):
        latest = await read(resource_type.name, resource_id, tenant=tenant, context=context)
        check_precondition(if_match, latest)
        candidate = await prepared(latest)
        if await context.resources.add(tenant.id, candidate.version, candidate.blobs):
            return candidate.version
    raise StoreUnavailable(f"lost {_RACES} races for the next version")


def _refuse_other_fields(patch: Any, resource_type: ResourceType) -> None:
    name = resource_type.name
    if not isinstance(patch, dict) or patch.get("resourceType") != name:
        raise InvalidContent.because(
            f"the body must be a {name} with the fields to update", expression=name
        )
    allowed = {"resourceType"} | resource_type.updatable
    primitives = resource_type.updatable.difference(resource_type.attachments)
    allowed |= {f"_{each}" for each in primitives}
    others = [each for each in patch if each not in allowed]
    if others:
        fields = ", ".join(sorted(resource_type.updatable))
        raise BrokenRule(
            Issue(
                "error",
                "business-rule",
                f"{each} cannot be updated; fields that can: {fields}",
                f"{name}.{each}",
            )
            for each in map(_speakable, others[: rules.MOST_ISSUES])
        )
    if len(patch) == 1:
        raise InvalidContent.because("names no field to update", expression=name)
    alone = [each[1:] for each in patch if each.startswith("_") and each[1:] not in patch]
    if alone:
        rule = "needs a value beside its extensions: a field is replaced whole"
        raise InvalidContent(Issue("error", "exception", rule, f"{name}.{each}") for each in alone)


def _speakable(name: str) -> str:
    """Return the name of a property if it can be shown, which a name of FHIR always can."""
    return name if name.isidentifier() and name.isascii() and len(name) <= 64 else "(unknown)"


def _merged(before: JsonObject, patch: JsonObject) -> JsonObject:
    """Replace each named field whole, with its extensions (D-105)."""
    names = {each.lstrip("_") for each in patch} - {"resourceType"}
    kept = {name: value for name, value in before.items() if name.lstrip("_") not in names}
    return {**kept, **patch}


def _narrative(before: JsonObject, resource_type: ResourceType) -> list[Issue]:
    """A text that people wrote might no longer be true after an update (D-123)."""
    if before.get("text", {}).get("status") != "additional":
        return []
    rule = "holds more than the data, so that an update could make it untrue"
    return [Issue("error", "business-rule", rule, f"{resource_type.name}.text")]


def _next(
    latest: Version,
    before: JsonObject,
    after: JsonObject,
    resource_type: ResourceType,
    context: Context,
    tenant: Tenant,
) -> Version:
    number, now = latest.version + 1, max(context.clock(), latest.updated + 1)
    if after.get("text", {}).get("status") in ("generated", "extensions"):
        after = {name: value for name, value in after.items() if name != "text"}
    stored = stamped(after, latest.id, version=number, updated=now)
    change = Change(id=latest.id, version=number, after=stored, before=before, parts={})
    body = dumps(stored)
    rules.resource_within_limits(len(body), context)
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
        documents=documents_in(body),
        events=events_of(change, resource_type),
        search=context.searched[resource_type.name].next_values(stored, latest.search, tenant),
    )
