"""The schemas of R4 in short, for people and for generators of clients.

Left out is what would hide the rest: extensions, the siblings of primitives (``_status``),
contained resources, patterns. A resource that the service takes fits; one that fits may still be
refused by the whole schemas (`schemas/r4/`) and by the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fhirpub.fhir.definitions.schema_documents import URN
from fhirpub.fhir.strict_json import JsonObject

PLACE = "#/components/schemas/"
ANY_RESOURCE = "Resource"
_R4 = "http://hl7.org/fhir/R4"
_LEFT_OUT = frozenset({"contained", "extension", "modifierExtension"})
_PLAIN = ("title", "description", "type", "const", "enum", "minimum", "maximum", "minLength")


def components(known: Mapping[str, JsonObject], roots: Iterable[str]) -> dict[str, JsonObject]:
    """Return schemas by name: those of the resource types ``roots``, and all that they lead to.

    ``known`` are the documents by their ``$id``, as the service checks against them.
    """
    sources = _sources(known)
    found: dict[str, JsonObject] = {ANY_RESOURCE: _any_resource()}
    waiting = [*roots]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _shorten(sources[name], resource=URN + name in known)
            waiting += _references(found[name])
    return {name: found[name] for name in sorted(found)}


def ref(name: str) -> JsonObject:
    """Return a reference to a schema."""
    return {"$ref": PLACE + name}


def _any_resource() -> JsonObject:
    return {
        "description": "A FHIR R4 resource of any type.",
        "externalDocs": {"url": f"{_R4}/resourcelist.html"},
        "type": "object",
        "required": ["resourceType"],
        "properties": {"resourceType": {"type": "string"}},
    }


def _sources(known: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
    own = {key.removeprefix(URN): document for key, document in known.items()}
    inner = (document.get("$defs", {}) for document in known.values())
    return {**own, **{name: schema for item in inner for name, schema in item.items()}}


def _shorten(schema: JsonObject, *, resource: bool) -> JsonObject:
    """Return one schema; of a resource with its id, and where R4 defines it."""
    properties = {
        name: _property(name, property_, schema)
        for name, property_ in schema.get("properties", {}).items()
        if not name.startswith("_") and name not in _LEFT_OUT and (resource or name != "id")
    }
    short = {keyword: schema[keyword] for keyword in _PLAIN if keyword in schema}
    if not properties:
        return short
    if resource:
        name = properties["resourceType"]["const"]
        short["externalDocs"] = {"url": f"{_R4}/{name.lower()}.html"}
    required = [name for name in schema.get("required", ()) if name in properties]
    return {**short, **({"required": required} if required else {}), "properties": properties}


def _property(name: str, schema: Any, whole: JsonObject) -> JsonObject:
    if schema is True:  # a primitive that repeats; it may be null where its sibling has something
        (items,) = _repeat(name, whole)
        return {"type": "array", "items": {"anyOf": [_property(name, items, whole), _NULL]}}
    if "$ref" in schema:
        return ref(_name_of(schema["$ref"]))
    if "items" in schema:
        return {"type": "array", "minItems": 1, "items": _property(name, schema["items"], whole)}
    return _shorten(schema, resource=False)


_NULL = {"type": "null"}


def _repeat(name: str, whole: JsonObject) -> Iterator[JsonObject]:
    for item in whole["allOf"]:
        alone = item.get("else", {}).get("properties", {})
        if name in alone:
            yield alone[name]["items"]


def _name_of(reference: str) -> str:
    document, _, inner = reference.partition("#/$defs/")
    return inner or document.removeprefix(URN)


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"].removeprefix(PLACE)
        for item in node.values():
            yield from _references(item)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)
