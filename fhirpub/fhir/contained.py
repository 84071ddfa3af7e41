"""Contained resources, and which of them a resource leads to."""

from __future__ import annotations

from fhirpub.fhir.invariants import local_in
from fhirpub.fhir.strict_json import JsonObject

Contained = dict[str, JsonObject]
"""Contained resources by the literals that lead to them, such as ``#p1``."""


def reachable(resource: JsonObject, among: Contained) -> Contained:
    """Return the contained resources reachable from a resource, transitively."""
    found: Contained = {}
    waiting = [resource]
    for element in waiting:  # grows while it is read
        for literal in local_in(element):
            if literal in among and literal not in found:
                found[literal] = among[literal]
                waiting.append(among[literal])
    return found


def with_contained(part: JsonObject, whole: JsonObject) -> JsonObject:
    """Return a part of a resource with what it leads to of that it contains (ref-1)."""
    if "contained" in part or "contained" not in whole:
        return part
    found = reachable(
        part,
        {
            f"#{contained_resource.get('id')}": contained_resource
            for contained_resource in whole["contained"]
        },
    )
    return {**part, "contained": [*found.values()]} if found else part
