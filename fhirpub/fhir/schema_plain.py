"""Schemas that accept only plain resources, to which most of FHIR's other rules cannot apply.

A plain resource has no extension, narrative, contained resource or sibling of a primitive, no id
below its own, no reference into itself or with white space, no end of a Period, no high of a
Range, no definition that it instantiates, and only web addresses as systems and profiles. What a
plain schema accepts, the whole schema accepts, and the rules about these elements have nothing to
say. What it does not accept may be right all the same: it is validated in full (ADR 13).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import jsonschema_rs

from fhirpub.fhir.definitions.reference_places import reference_places, references_in
from fhirpub.fhir.definitions.schema_documents import ANY, URN, types_of
from fhirpub.fhir.schema_fast import accepts, fast_validator
from fhirpub.fhir.strict_json import JsonObject

_UNUSUAL = frozenset({"end", "implicitRules", "instantiatesCanonical"})
"""Beside the properties whose type is unusual."""
_DATATYPES = f"{URN}datatypes#/$defs/"
_UNUSUAL_TYPES = frozenset({ANY, *(f"{_DATATYPES}{name}" for name in ("Extension", "Narrative"))})
_STRING = {"$ref": f"{_DATATYPES}string"}
_URI = {"$ref": f"{_DATATYPES}uri"}
_CANONICAL = {"$ref": f"{_DATATYPES}canonical"}
_NOT_NARROWED = frozenset({"if", "not"})
"""A narrower schema below these accepts more."""
_WEB_ADDRESS = {"pattern": "^https?://"}
_PLAIN_REFERENCE = {"pattern": r"^(?:https?://|[A-Z])[^\u0000-\u0020]*$"}


class PlainSchemas:
    """The plain schemas of all resource types, except for those ``without`` one, compiled."""

    def __init__(self, known: Mapping[str, JsonObject], *, without: Collection[str]) -> None:
        documents = plain_documents(known)
        registry = jsonschema_rs.Registry([*documents.items()])
        self._engines = {
            name: fast_validator({"$ref": key}, registry)
            for name, key in types_of(known).items()
            if name not in without
        }
        self._places = reference_places(documents)

    def accepts(self, type_name: str, resource: JsonObject) -> bool:
        """Return whether a resource is valid and plain."""
        engine = self._engines.get(type_name)
        return engine is not None and accepts(engine, resource)

    def references_in(self, resource: JsonObject) -> list[JsonObject]:
        """Return the objects of a plain resource that have a reference."""
        return references_in(resource, self._places[resource["resourceType"]])


def plain_documents(known: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
    """Return documents by ``$id`` that accept what is plain of what the known ones accept."""
    plain: dict[str, JsonObject] = {key: _narrow(document) for key, document in known.items()}
    definitions = plain[f"{URN}datatypes"]["$defs"]
    del definitions["Reference"]["properties"]["type"]
    del definitions["Range"]["properties"]["high"]
    definitions["Attachment"]["dependentRequired"] = {"data": ["contentType"]}
    return plain


def _narrow(node: Any) -> Any:
    if isinstance(node, list):
        return [_narrow(one) for one in node]
    if not isinstance(node, dict):
        return node
    narrow = {
        name: member if name in _NOT_NARROWED else _narrow(member) for name, member in node.items()
    }
    if node.get("additionalProperties") is False:
        narrow["properties"] = _plain_properties(node["properties"])
    return narrow


def _plain_properties(properties: JsonObject) -> JsonObject:
    plain = {}
    for name, schema in properties.items():
        if name[0] == "_" or name in _UNUSUAL or _type_of(schema) in _UNUSUAL_TYPES:
            continue
        if name == "id" and schema == _STRING:  # that of an element, not of a resource
            continue
        if name == "reference" and schema in (_STRING, _URI):
            plain[name] = {**_PLAIN_REFERENCE, **schema}
        elif (name, schema) in (("system", _URI), ("profile", _CANONICAL)):
            plain[name] = {**_WEB_ADDRESS, **schema}
        elif name == "profile" and schema is True:
            plain[name] = {"items": _WEB_ADDRESS}
        else:
            plain[name] = schema
    return plain


def _type_of(schema: Any) -> str:
    """Return what a property, or each of its items, refers to."""
    if not isinstance(schema, dict):
        return ""
    return str(schema.get("items", schema).get("$ref", ""))
