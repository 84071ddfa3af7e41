"""The body of ``create``: a resource with its parts contained in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.contained import Contained, reachable
from fhirpub.fhir.elements import items_of, literals_of, objects_in
from fhirpub.fhir.explanation.envelope import refuse_kind
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.xml.tables import tables
from fhirpub.interactions.submission.record import ANY_RESOURCE, Submission
from fhirpub.plugin_api import Entry, Part, ResourceType
from fhirpub.problems import ContentProblem


def from_contained(body: Any, resource_type: ResourceType) -> Submission:
    """Read the body of ``create``: the resource, its parts contained in it (D-5)."""
    name = resource_type.name
    if not isinstance(body, dict) or body.get("resourceType") != name:
        advice = {"Parameters": f"send it to {name}/$register"}
        raise refuse_kind(body, tables().resources, f"a {name}", advice=advice, expression=name)
    contained = body.get("contained", [])
    if not isinstance(contained, list):
        raise InvalidContent.because(
            "must be a list",
            expression=f"{name}.contained",
            details=ContentProblem.ELEMENT_MALFORMED,
        )
    alone = [part for part in resource_type.parts if not part.repeats]
    parts: dict[str, Entry] = {}
    local: dict[str, str] = {}
    places = {
        f"#{item['id']}": place
        for place, item in enumerate(contained)
        if isinstance(item, dict) and isinstance(item.get("id"), str)
    }
    for part in alone:
        # The one that is referred to first: the author of a visit, and not a nurse.
        for literal in filter(places.__contains__, _literals(body, part)):
            place = places[literal]
            if contained[place].get("resourceType") == part.type:
                parts[part.name] = Entry(contained[place], f"{name}.contained[{place}]")
                local[literal] = part.name
                break
    missing = [
        Issue.error(
            ContentProblem.ENTRY_MISSING,
            f"a contained {part.type} that {part.referred_by} refers to is required",
            name,
        )
        for part in alone
        if part.required and part.name not in parts
    ]
    others = {item: contained[place] for item, place in places.items() if item not in local}
    contained_of_parts = {
        name: found
        for name, entry in parts.items()
        if "contained" not in entry.resource and (found := reachable(entry.resource, others))
    }
    placeholders = {
        id(entry.resource): _placeholder(entry.resource["id"], contained_of_parts.get(name, ()))
        for name, entry in parts.items()
    }
    kept = _kept(body, parts, contained_of_parts) if parts else contained
    if placeholders:
        body["contained"] = [placeholders.get(id(item), item) for item in contained]
    return Submission(
        type=resource_type,
        entry=Entry(body, name),
        parts=parts,
        declared={part.name: part for part in alone},
        local=local,
        remarks=[],
        placeholders=tuple(placeholders.values()),
        contained_of_parts=contained_of_parts,
        kept=kept,
        content=[
            _as_entry(resource_type.entry_name, body, kept),
            *(
                _as_entry(name, part.resource, contained_of_parts.get(name, {}).values())
                for name, part in parts.items()
            ),
        ],
        wrong=missing,
    )


def _as_entry(name: str, resource: JsonObject, contained: Collection[JsonObject]) -> JsonObject:
    """Return a resource of create as the entry of Parameters that would register the same."""
    others = {key: value for key, value in resource.items() if key != "contained"}
    if contained:
        others["contained"] = [*contained]
    return {"name": name, "resource": others}


def _kept(
    body: JsonObject, parts: Mapping[str, Entry], contained_of_parts: Mapping[str, Contained]
) -> list[JsonObject]:
    """Return the contained resources that are no part, and that not only parts need."""
    brought: Contained = {}
    for found in contained_of_parts.values():
        brought |= found
    taken = {id(part.resource) for part in parts.values()} | set(map(id, brought.values()))
    rest = [one for one in body["contained"] if id(one) not in taken]
    return [*rest, *reachable({**body, "contained": rest}, brought).values()]


def _placeholder(resource_id: str, leading: Collection[str]) -> JsonObject:
    """Return what stands for a contained part, and leads to where that does."""
    extensions = [{"url": "urn:fhirpub:leads-to", "valueUri": name} for name in leading]
    more = {"extension": extensions} if extensions else {}
    return {**ANY_RESOURCE, "id": resource_id, **more}


def _literals(body: JsonObject, part: Part) -> Iterator[str]:
    """Yield the literals of the references that may lead to a part, in their order."""
    by_element = [one for _place, one in items_of(body, part.referred_by)]
    return literals_of(by_element if part.referred_by else objects_in(body))
