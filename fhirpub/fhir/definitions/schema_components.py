"""The schemas of R4 in short, for people and for generators of clients.

Left out is what would hide the rest: extensions, the siblings of primitives (``_status``),
patterns. A resource that the service takes fits; one that fits may still be refused by the whole
schemas (`schemas/r4/`) and by the rules.

The forms are those of which generators make types (D-261): an object is open, or its client in Go
would refuse an extension; a primitive and a list of codes stand where they are used, or Go would
have the same name for the codes of two lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fhirpub.fhir.definitions.schema_documents import URN
from fhirpub.fhir.strict_json import JsonObject

PLACE = "#/components/schemas/"
ANY_RESOURCE = "Resource"
_ANYTHING = "Anything"
OPEN: JsonObject = {"$ref": PLACE + _ANYTHING}
"""The ``additionalProperties`` of an object that may have others. openapi-generator would log
``true`` as a schema without a name."""
_R4 = "http://hl7.org/fhir/R4"
_LEFT_OUT = frozenset({"extension", "modifierExtension"})
_ENTRY = "Bundle.entry"
_PLAIN = ("type", "const", "enum", "minimum", "maximum", "minLength")


def components(
    known: Mapping[str, JsonObject], roots: Iterable[str], *, entries: Iterable[str] = ()
) -> dict[str, JsonObject]:
    """Return schemas by name: those of the resource types ``roots``, and all that they lead to.

    ``known`` are the documents by their ``$id``, as the service checks against them. ``entries``
    are the types of ``roots`` that a Bundle may have.
    """
    sources = _sources(known)
    found: dict[str, JsonObject] = {
        ANY_RESOURCE: _any_resource(),
        _ANYTHING: {"description": "What the schema does not name, such as an extension."},
    }
    waiting = [*roots]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _shorten(sources[name], sources, resource=URN + name in known)
            waiting += _references(found[name])
    if entries:
        resource = f"{_ENTRY}.resource"
        found[resource] = one_of({name: name for name in entries}, by="resourceType")
        found[_ENTRY]["properties"]["resource"] = ref(resource)
    return {name: found[name] for name in sorted(found)}


def ref(name: str) -> JsonObject:
    """Return a reference to a schema."""
    return {"$ref": PLACE + name}


def constant(value: str) -> JsonObject:
    """Return the schema of one text."""
    return {"type": "string", "const": value}


def one_of(schemas: Mapping[str, str], *, by: str) -> JsonObject:
    """Return the schema of what is one of several objects, which differ in the property ``by``.

    ``schemas`` has their names, by the value of that property.
    """
    return {
        "anyOf": [ref(name) for name in schemas.values()],
        "discriminator": {
            "propertyName": by,
            "mapping": {value: PLACE + name for value, name in schemas.items()},
        },
    }


def _any_resource() -> JsonObject:
    return {
        "description": "A FHIR R4 resource of any type.",
        "externalDocs": {"url": f"{_R4}/resourcelist.html"},
        "type": "object",
        "required": ["resourceType"],
        "properties": {"resourceType": {"type": "string"}},
        "additionalProperties": OPEN,
    }


def _sources(known: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
    own = {key.removeprefix(URN): document for key, document in known.items()}
    inner = (document.get("$defs", {}) for document in known.values())
    return {**own, **{name: schema for item in inner for name, schema in item.items()}}


def _shorten(
    schema: JsonObject, sources: Mapping[str, JsonObject], *, resource: bool
) -> JsonObject:
    """Return one schema; of a resource with its id, and where R4 defines it."""
    properties = {
        name: _property(name, property_, schema, sources)
        for name, property_ in schema.get("properties", {}).items()
        if not name.startswith("_") and name not in _LEFT_OUT and (resource or name != "id")
    }
    if not properties:
        return _plain(schema)
    short = _plain(schema)
    if resource:
        name = properties["resourceType"]["const"]
        short["description"] = schema["description"]
        short["externalDocs"] = {"url": f"{_R4}/{name.lower()}.html"}
    required = [name for name in schema.get("required", ()) if name in properties]
    return {
        **short,
        **({"required": required} if required else {}),
        "properties": properties,
        "additionalProperties": OPEN,
    }


def _plain(schema: JsonObject) -> JsonObject:
    short = {keyword: schema[keyword] for keyword in _PLAIN if keyword in schema}
    if "const" in short or "enum" in short:
        return {"type": "string", **short}
    if short.get("type") == "number":
        return {**short, "format": "double"}  # or Go takes half the digits
    return short


def _property(
    name: str, schema: Any, whole: JsonObject, sources: Mapping[str, JsonObject]
) -> JsonObject:
    if schema is True:  # a primitive that repeats; it may be null where its sibling has something
        (items,) = _repeat(name, whole)
        items = _property(name, items, whole, sources)
        return {"type": "array", "items": {**items, "type": [items["type"], "null"]}}
    if "$ref" in schema:
        return _refer(_name_of(schema["$ref"]), sources)
    if "items" in schema:
        items = _property(name, schema["items"], whole, sources)
        return {"type": "array", "minItems": 1, "items": items}
    return _plain(schema)


def _refer(name: str, sources: Mapping[str, JsonObject]) -> JsonObject:
    """Return a reference to a schema, but the schema itself of a primitive or a list of codes."""
    source = sources[name]
    if name == ANY_RESOURCE or "properties" in source:
        return ref(name)
    if "enum" in source:
        return _plain(source)
    return {**_plain(source), "description": f"{name}: {source['description']}"}


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
