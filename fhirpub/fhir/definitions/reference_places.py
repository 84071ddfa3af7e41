"""Where references can stand in a plain resource, by the definition of its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fhirpub.fhir.definitions.schema_documents import types_of
from fhirpub.fhir.strict_json import JsonObject

Places = dict[str, "Places"]
"""The properties of an object that are references or have some below them, with their own places.

Data types lead back to themselves: a Reference has an Identifier, which has a Reference.
"""


def reference_places(documents: Mapping[str, JsonObject]) -> dict[str, Places]:
    """Return the places in each resource type, by its name; ``documents`` are plain schemas."""
    below = {key: _types_below(schema) for key, schema in _definitions(documents).items()}
    leading = {key for key, properties in below.items() if "reference" in properties}
    while more := {key for key, to in below.items() if leading & {*to.values()}} - leading:
        leading |= more
    places: dict[str, Places] = {key: {} for key in below}
    for key in leading:
        places[key] |= {name: places[to] for name, to in below[key].items() if to in leading}
    return {name: places[key] for name, key in types_of(documents).items()}


def references_in(resource: JsonObject, places: Places) -> list[JsonObject]:
    """Return the objects of a valid resource that have a reference."""
    found: list[JsonObject] = []
    waiting = [(resource, places)]
    for holder, below in waiting:  # grows while it is read
        for name in below.keys() & holder.keys():
            member, further = holder[name], below[name]
            for one in member if type(member) is list else (member,):
                if "reference" in one:
                    found.append(one)
                if not further.keys().isdisjoint(one):
                    waiting.append((one, further))
    return found


def _definitions(documents: Mapping[str, JsonObject]) -> dict[str, Any]:
    """Return every object that is defined, by what references of schemas call it."""
    found: dict[str, Any] = {}
    for key, document in documents.items():
        found[key] = document
        for name, schema in document.get("$defs", {}).items():
            found[f"{key}#/$defs/{name}"] = schema
    return found


def _types_below(schema: Any) -> dict[str, str]:
    """Return the types of the properties of an object, or of the items in them."""
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    return {
        name: str(one.get("items", one).get("$ref", ""))
        for name, one in properties.items()
        if isinstance(one, Mapping) and isinstance(one.get("items", one), Mapping)
    }
