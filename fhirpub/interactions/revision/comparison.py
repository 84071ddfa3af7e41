"""A revision: a registration sent again as it should be now, compared with what is stored.

It is prepared as a registration is, by the same rules. What differs becomes the next version of
the resource, together with the next versions of its members (ADR 25). Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fhirpub.errors import BrokenRule, Issue
from fhirpub.fhir.elements import element_of, items_of, literals_of, objects_in
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored
from fhirpub.interactions import rules
from fhirpub.interactions.checks.narrative_truth import WITHDRAWN
from fhirpub.interactions.context import Context
from fhirpub.interactions.register import Prepared, prepare_registration
from fhirpub.interactions.repetition.canonical import canonical
from fhirpub.interactions.repetition.difference import differing_names
from fhirpub.interactions.revision.patients import is_held, keep_patients
from fhirpub.interactions.submission.held import ReadBody
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.versions import events_of, key_of, with_server_meta
from fhirpub.plugin_api import Change, ResourceType
from fhirpub.problems import ContentProblem, OperationProblem
from fhirpub.runtime.stages import Stages
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.tombstones import is_erased
from fhirpub.tenant import Tenant, is_member_id

_OF_EACH_VERSION = frozenset({"issued", "text"})
"""When a version was made available, and the narrative of it: a revision states both."""

_DESCRIBING = frozenset({"display", "identifier"})
"""What a reference states of its target, beside where it is."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a revision is compared with.

    Attributes:
        latest: The newest version of the resource.
        parts: The parts that came with it, as JSON; version 1 has them.
        current: The same, but the patient as it was stated last, when it was moved to another one.
        tenant: The tenant of all of them.
        members: The newest versions of the members that the revision names, and of those that
            the resource refers to, by id. What is not stored yet is missing.
    """

    latest: Version
    parts: bytes
    current: bytes
    tenant: Tenant
    members: Mapping[str, Version]


@dataclass(frozen=True, slots=True)
class Revision:
    """What a revision leads to: the next version, or None if nothing differs.

    Attributes:
        version: The next version, with the next versions of its members.
        response: The response to it, as JSON.
    """

    version: Version | None
    response: bytes


def prepare_revision(
    context: Context,
    body: bytes,
    *,
    is_xml: bool,
    type_name: str,
    tenant: Tenant,
    read_body: ReadBody = from_parameters,
) -> Stages[Prepared]:
    """Validate a revision and build what a registration of it would store.

    Raises InvalidContent, TooLarge or BrokenRule, or returns them, as a registration does.
    """
    types = {**context.types, type_name: context.revisable[type_name]}
    return (
        yield from prepare_registration(
            replace(context, types=types),
            body,
            is_xml=is_xml,
            read_body=read_body,
            type_name=type_name,
            tenant=tenant,
        )
    )


def revisable(resource_type: ResourceType) -> ResourceType:
    """Return a type with the statuses that a revision may have: also that something is withdrawn.

    Whether a status may follow the stored one is checked when they are compared.
    """
    parts = tuple(
        replace(part, statuses=part.statuses | {WITHDRAWN}) if part.statuses else part
        for part in resource_type.parts
    )
    statuses = resource_type.create_statuses | resource_type.update_statuses
    return replace(resource_type, create_statuses=statuses, parts=parts)


def members_of(candidate: Version, latest: Version) -> frozenset[str]:
    """Return the ids of the members that are compared: those sent, and those referred to."""
    sent = {member.id for member in candidate.members}
    return frozenset(sent | _members_referred_to(loads_stored(latest.body)))


def compare(context: Context, candidate: Version, stored: Stored) -> Revision:
    """Return what a revision leads to. Raises BrokenRule for what a revision must not change."""
    latest, number = stored.latest, stored.latest.version + 1
    current = loads_stored(stored.current)
    candidate = keep_patients(candidate, latest, current, context)
    before, after = loads_stored(latest.body), loads_stored(candidate.body)
    resource_type = context.types[latest.type]
    updated = max(context.clock(), latest.updated + 1)
    members = tuple(_next_members(candidate, stored, updated))
    names = {*differing_names(before, after)}
    parts = list(_changed_parts(candidate, stored))
    changed = {issue.expression for issue in parts}
    problems = [
        *_unlike_identity(candidate, latest, resource_type),
        *_fixed_elements(
            names - _redescribed(before, after, changed, resource_type), resource_type
        ),
        *parts,
        *_status(before, after, names, resource_type, context, differs=bool(names or members)),
        *_lost_members(before, after, members, stored, resource_type),
    ]
    if problems:
        raise BrokenRule(problems)
    if not names and not members:
        return Revision(None, _response(candidate, latest, (), context, changed=False))
    revised = with_server_meta(after, latest.id, version=number, updated=updated)
    change = Change(
        id=latest.id,
        version=number,
        after=revised,
        before=before,
        parts=current,
        added=tuple(_address(member) for member in members if member.is_first),
        changed=tuple(_address(member) for member in members if not member.is_first),
        identifier=key_of(latest),
    )
    version = replace(
        candidate,
        version=number,
        created=latest.created,
        updated=updated,
        body=dumps(revised),
        response=b"",
        parts=b"",
        events=events_of(change, resource_type),
        search=context.searched[latest.type].next_values(revised, latest.search, stored.tenant),
        members=members,
    )
    return Revision(version, _response(candidate, version, members, context, changed=True))


def _next_members(candidate: Version, stored: Stored, updated: int) -> Iterator[Version]:
    """Yield the members that are new or differ, each in its next version."""
    for member in candidate.members:
        known = stored.members.get(member.id)
        resource = loads_stored(member.body)
        number = 1 if known is None else known.version + 1
        if known is None or is_erased(known):
            created = updated
        elif any(differing_names(loads_stored(known.body), resource)):
            created = known.created
        else:
            continue
        revised = with_server_meta(resource, member.id, version=number, updated=updated)
        yield replace(
            member, version=number, created=created, updated=updated, body=dumps(revised)
        )


def _unlike_identity(
    candidate: Version, latest: Version, resource_type: ResourceType
) -> Iterator[Issue]:
    if candidate.id != latest.id:
        rule = "is not the identifier of this resource"
        problem = OperationProblem.ELEMENT_NOT_UPDATABLE
        elements = resource_type.identifier.elements[:1]
        at = "identifier[0]" if elements == ("identifier",) else "".join(elements)
        yield Issue.error(problem, rule, ".".join(filter(None, (latest.type, at))))


def _fixed_elements(names: set[str], resource_type: ResourceType) -> Iterator[Issue]:
    """Report elements that differ and must not."""
    references = {part.referred_by for part in resource_type.repeating}
    elements = resource_type.updatable | references | _OF_EACH_VERSION
    changeable = ", ".join(sorted(elements - {""}))
    for name in sorted(names - {"identifier", *resource_type.identifier.elements}):
        if element_of(name, elements) not in elements:
            rule = f"differs from what is stored; what can be revised: {changeable}"
            at = f"{resource_type.name}.{name}"
            yield Issue.error(OperationProblem.ELEMENT_NOT_UPDATABLE, rule, at)


def _redescribed(
    before: JsonObject, after: JsonObject, changed: set[str], resource_type: ResourceType
) -> set[str]:
    """Return the elements that differ only in how they describe parts that differ.

    The service adds the name of a part to the reference that leads to it.
    """
    elements = {part.referred_by for part in resource_type.parts if part.name in changed}
    return {
        element
        for element in elements
        if canonical(_targets(before, element)) == canonical(_targets(after, element))
    }


def _targets(resource: JsonObject, element: str) -> list[JsonObject]:
    return [
        {name: value for name, value in reference.items() if name not in _DESCRIBING}
        for _at, reference in items_of(resource, element)
    ]


def _changed_parts(candidate: Version, stored: Stored) -> Iterator[Issue]:
    """Report parts without versions that differ: they stay as they came (ADR 15)."""
    before, after = loads_stored(stored.parts), loads_stored(candidate.parts)
    current = loads_stored(stored.current)
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            continue  # left out where it is not required
        found = sorted(differing_names(before[name], after[name])) if name in before else [""]
        if found and name in current and not any(differing_names(current[name], after[name])):
            continue  # as it was corrected
        if name in before and (
            is_held(before[name], candidate) or is_held(after[name], candidate)
        ):
            continue  # nothing is stated about it, and the reference must be as it was
        if found:
            said = f"differs in {', '.join(found)}" if name in before else "was not registered"
            rule = f"the entry {name} {said}: it stays as it was registered"
            yield Issue.error(OperationProblem.ELEMENT_NOT_UPDATABLE, rule, name)


def _status(
    before: JsonObject,
    after: JsonObject,
    names: set[str],
    resource_type: ResourceType,
    context: Context,
    *,
    differs: bool,
) -> Iterator[Issue]:
    """Report a status that must not follow, also the same one if anything differs (D-115)."""
    found: list[Issue] = []
    if "status" in names:
        found += rules.status(after, resource_type.update_statuses)
    is_clinical = context.config.of_type(resource_type.name).state_flow == "clinical"
    if differs and is_clinical and not found:
        found += rules.state_flow(before, after, resource_type)
    for issue in found:
        yield replace(issue.below(resource_type.name), code="business-rule")


def _lost_members(
    before: JsonObject,
    after: JsonObject,
    members: tuple[Version, ...],
    stored: Stored,
    resource_type: ResourceType,
) -> Iterator[Issue]:
    """Report what the resource no longer refers to, unless it is withdrawn."""
    newest = {**stored.members, **{member.id: member for member in members}}
    for part in resource_type.repeating:
        if not part.referred_by:
            continue
        kept = set(_literals_at(after, part.referred_by))
        for literal in _literals_at(before, part.referred_by):
            member = newest.get(literal.rpartition("/")[2])
            if literal not in kept and member is not None and member.status != WITHDRAWN:
                rule = (
                    f"no longer refers to {literal}: keep the reference, or send the resource as "
                    f"{WITHDRAWN}"
                )
                at = f"{resource_type.name}.{part.referred_by}"
                yield Issue.error(ContentProblem.REFERENCE_WRONG, rule, at)


def _literals_at(resource: JsonObject, element: str) -> Iterator[str]:
    return literals_of(reference for _at, reference in items_of(resource, element))


def _members_referred_to(resource: JsonObject) -> set[str]:
    ids = {one.rpartition("/")[2] for one in literals_of(objects_in(resource))}
    return {one for one in ids if is_member_id(one)}


def _response(
    candidate: Version,
    version: Version,
    members: tuple[Version, ...],
    context: Context,
    *,
    changed: bool,
) -> bytes:
    """Return the answer of a registration, with what the revision led to in its place."""
    answer: JsonObject = loads_stored(candidate.response)
    written = {_address(member) for member in members}
    said = f"{version.type} was revised" if changed else "nothing differs: nothing was stored"
    parameters: list[Any] = []
    for parameter in answer["parameter"]:
        if "valueReference" in parameter and parameter["valueReference"]["reference"] in written:
            parameters.append(parameter)
        elif parameter["name"] == "issues":
            _created, *remarks = parameter["resource"]["issue"]
            accepted = Issue.information(ContentProblem.ACCEPTED, said)
            first = outcome_of([accepted], fhir_url=context.fhir_url)["issue"]
            parameters.append(
                {**parameter, "resource": {**parameter["resource"], "issue": [*first, *remarks]}}
            )
        elif "resource" in parameter:
            short = parameter["resource"]
            ours = loads_stored(version.body)["meta"]
            meta = {**short["meta"], **{name: ours[name] for name in ("versionId", "lastUpdated")}}
            parameters.append({**parameter, "resource": {**short, "meta": meta}})
    return dumps({**answer, "parameter": parameters})


def _address(member: Version) -> str:
    return f"{member.type}/{member.id}"
