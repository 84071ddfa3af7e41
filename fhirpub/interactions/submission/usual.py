"""Reads Parameters as nearly every sender writes them: one entry for each resource, no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fhirpub.interactions.submission.record import Submission
from fhirpub.plugin_api import Entry, Part, ResourceType

_Declared = tuple[Mapping[str, str], Mapping[str, Part], frozenset[str]]
_declared: dict[int, tuple[ResourceType, _Declared]] = {}
_MEMBERS = 2
"""So many has the body, and each entry."""


def entries_of_type(resource_type: ResourceType) -> _Declared:
    """Return the types and the parts that a type takes by the names of their entries.

    The third are the names of the entries that must be there. They are found once for each
    declaration, which is never changed nor released.
    """
    known = _declared.get(id(resource_type))
    if known is None:
        parts = {part.name: part for part in resource_type.parts}
        types = {resource_type.entry_name: resource_type.name}
        types |= {name: part.type for name, part in parts.items()}
        required = {name for name in types if name not in parts or parts[name].required}
        found = (types, parts, frozenset(required))
        known = _declared[id(resource_type)] = (resource_type, found)
    return known[1]


def read_usual(body: Any, resource_type: ResourceType) -> Submission | None:
    """Return what a body brings, if it has nothing but known entries, and none that repeats.

    None: it may be right all the same, and is to be looked at more closely.
    """
    _types, parts, required = entries_of_type(resource_type)
    try:
        entries = body["parameter"]
        if len(body) != _MEMBERS or body["resourceType"] != "Parameters":
            return None
        found, local = _sort(entries, resource_type)
    except (LookupError, TypeError):  # of another structure
        return None
    if type(entries) is not list or not found.keys() >= required or len(local) != len(found) - 1:
        return None
    return Submission(
        type=resource_type,
        entry=found.pop(resource_type.entry_name),
        parts=found,
        declared=parts,
        local=local,
        remarks=[],
        content=entries,
    )


def _sort(
    entries: Sequence[Any], resource_type: ResourceType
) -> tuple[dict[str, Entry], dict[str, str]]:
    """Return the resources by the names of their entries, and the names by local references.

    Raises LookupError and TypeError for what is not usual.
    """
    types, parts, _required = entries_of_type(resource_type)
    found: dict[str, Entry] = {}
    local: dict[str, str] = {}
    for index, entry in enumerate(entries):
        name, resource = entry["name"], entry["resource"]
        kind = types[name]
        if len(entry) != _MEMBERS or name in found or resource["resourceType"] != kind:
            raise LookupError(name)
        found[name] = Entry(resource, f"Parameters.parameter[{index}].resource")
        if name in parts:
            if parts[name].repeats:
                raise LookupError(name)
            local[kind + "/" + resource["id"]] = name
    return found, local
