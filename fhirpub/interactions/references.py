"""References between the entries of a submission: checks, and the ids they are given (ADR 15)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fhirpub.config.settings import ABSOLUTE_URI
from fhirpub.errors import Issue
from fhirpub.fhir.elements import items_of
from fhirpub.fhir.human_name import given_names, name_to_use
from fhirpub.fhir.invariants import RELATIVE_REFERENCE
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.interactions.context import Context
from fhirpub.interactions.submission.record import Submission, resources_in
from fhirpub.plugin_api import Part
from fhirpub.problems import ContentProblem
from fhirpub.tenant import is_resource_id


def references_to_parts(submission: Submission) -> Iterator[Issue]:
    """Each part is referred to by the element that must (D-33 to D-35)."""
    resource = submission.entry.resource
    for part in submission.type.parts:
        if part.name not in submission.parts or not part.referred_by:
            continue  # no reference need lead to parts that repeat, which have other keys
        places = [(at, item.get("reference")) for at, item in items_of(resource, part.referred_by)]
        if "id" not in submission.parts[part.name].resource:
            continue  # that alone is wrong
        if not places:
            yield Issue.error(ContentProblem.ELEMENT_REQUIRED, "is required", part.referred_by)
        elif all(submission.local.get(literal or "") != part.name for _at, literal in places):
            rule = _how_to_refer(part, submission)
            yield Issue.error(ContentProblem.REFERENCE_WRONG, rule, f"{places[0][0]}.reference")


def _how_to_refer(part: Part, submission: Submission) -> str:
    """Return how the element must refer to a part, without its id."""
    if submission.placeholders:
        return f"must refer to the contained {part.type}, by # and its id"
    rule = f"must refer to the {part.type} of the entry {part.name}"
    return f"{rule}, by {part.type}/ and the id of that resource"


def references_to_untaken(submission: Submission) -> Iterator[Issue]:
    """No reference may lead to an entry that is not taken: its target would be lost (D-35)."""
    places = {
        f"{one.resource.get('resourceType')}/{one.resource['id']}": one.at
        for entry in submission.untaken
        for one in resources_in(entry)
        if "id" in one.resource
    }
    if submission.wrong or not places:  # the entry may be one that is misnamed
        return
    for entry in (submission.entry, *submission.parts.values()):
        for element in entry.rule_targets:
            literal = element.get("reference")
            if not isinstance(literal, str) or literal in submission.local:
                continue
            target = places.get(literal.partition("/_history/")[0])
            if target is not None:
                rule = f"refers to {target}, which is not taken: contain it and refer to its #id"
                at = f"{entry.place_of(element)}.reference"
                yield Issue.error(ContentProblem.REFERENCE_TO_IGNORED, rule, at).below(entry.at)


def other_references(submission: Submission, context: Context) -> Iterator[Issue]:
    """Keep other relative references, with a warning to the sender (D-35, D-36)."""
    for element in submission.entry.rule_targets:
        literal = element.get("reference")
        if not isinstance(literal, str) or literal in submission.local:
            continue
        if not literal.startswith("#") and not ABSOLUTE_URI.fullmatch(literal):
            at = f"{submission.entry.place_of(element)}.reference"
            if _may_be_held(literal, context):
                rule = "is kept as it is: whether it is held here is not looked up"
                yield Issue.information(ContentProblem.REFERENCE_NOT_CHECKED, rule, at)
            else:
                rule = f"refers to nothing that is held here: {_advice_on(literal)}"
                yield Issue.warning(ContentProblem.REFERENCE_UNRESOLVED, rule, at)


def _advice_on(literal: str) -> str:
    """Return what to write in place of a reference that leads nowhere."""
    if RELATIVE_REFERENCE.fullmatch(literal):
        return "contain it, or give an absolute URL"
    if "?" in literal:
        return "a search is a reference in transactions only; send Reference.identifier"
    return "a reference is Type/id, #id or an absolute URL"


def _may_be_held(literal: str, context: Context) -> bool:
    """Return whether a relative reference has the form of those that we give."""
    if not RELATIVE_REFERENCE.fullmatch(literal):
        return False
    type_name, resource_id, *_version = literal.split("/")
    known = type_name in context.searched or type_name in context.part_types
    return known and is_resource_id(resource_id)


def point_references_at(
    submission: Submission, part_ids: Mapping[str, str], resource_id: str
) -> None:
    """Rewrite every reference to a part, wherever it stands, to the part's own id (ADR 15, 24)."""
    if submission.placeholders:
        _point_out(submission, f"{submission.type.name}/{resource_id}")
    declared = submission.declared
    targets = {
        literal: f"{declared[name].type}/{part_ids[name]}"
        for literal, name in submission.local.items()
    }
    if submission.members:  # only they can refer to the resource, by the id that it was sent with
        own = submission.entry.resource
        targets[f"{own['resourceType']}/{own.get('id')}"] = f"{own['resourceType']}/{resource_id}"
    for entry in (submission.entry, *submission.parts.values()):
        for element in entry.references:
            literal = element["reference"]
            if isinstance(literal, str) and literal in targets:
                element["reference"] = targets[literal]
    _describe_parts(submission, part_ids)


def _describe_parts(submission: Submission, part_ids: Mapping[str, str]) -> None:
    """Add what a reader wants to see of a part to the reference that must lead to it."""
    resource, parts = submission.entry.resource, submission.parts
    for name in part_ids:
        part = submission.declared[name]
        if part.repeats:
            continue
        literal = f"{part.type}/{part_ids[name]}"
        for _at, reference in items_of(resource, part.referred_by):
            if reference.get("reference") == literal:
                describe(reference, parts[name].resource)


def _point_out(submission: Submission, container: str) -> None:
    """Rewrite what leads from a part to its container, in which it is no longer."""
    for entry in submission.parts.values():
        for element in entry.references:
            if element["reference"] == "#":
                element["reference"] = container


def describe(reference: JsonObject, part: Mapping[str, Any]) -> None:
    """Add identifier and display of the referenced part, unless the sender gave them."""
    for one in part.get("identifier", ()):
        if "system" in one and "value" in one:
            reference.setdefault("identifier", {"system": one["system"], "value": one["value"]})
            break
    display = _display(part.get("name"))
    if display:
        reference.setdefault("display", display)


def _display(name: Any) -> str:
    if isinstance(name, list):
        one = name_to_use(name)
        return str(one.get("text") or f"{given_names(one)} {one.get('family', '')}".strip())
    return name if isinstance(name, str) else ""
