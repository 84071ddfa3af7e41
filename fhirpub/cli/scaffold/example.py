"""The smallest valid example of a resource: only the elements that R4 requires."""

from __future__ import annotations

from typing import Any

from fhirpub.fhir.definitions.element_tables import Element, Tables
from fhirpub.fhir.definitions.schema_generator import NESTED, PRIMITIVES
from fhirpub.fhir.strict_json import JsonObject

EXAMPLE_PARTS: dict[str, JsonObject] = {
    "patient": {
        "resourceType": "Patient",
        "id": "p1",
        "name": [{"family": "Ashdown", "given": ["Juniper"]}],
        "identifier": [{"system": "https://registry.example/persons", "value": "30111222"}],
        "gender": "female",
        "birthDate": "1987-06-05",
    },
    "organization": {
        "resourceType": "Organization",
        "id": "o1",
        "name": "North Quay Clinic",
        "identifier": [{"system": "https://registry.example/clinics", "value": "0042"}],
    },
}

_TEXT = "example"
_VALUES: dict[str, Any] = {
    "base64Binary": "ZXhhbXBsZQ==",
    "boolean": True,
    "canonical": "https://lab.example/fhir/example",
    "date": "2026-03-02",
    "dateTime": "2026-03-02T08:15:00Z",
    "decimal": 1,
    "id": "example",
    "instant": "2026-03-02T08:15:00Z",
    "integer": 1,
    "oid": "urn:oid:1.2.3",
    "positiveInt": 1,
    "time": "08:15:00",
    "unsignedInt": 1,
    "uri": "https://lab.example/fhir/example",
    "url": "https://lab.example/fhir/example",
    "uuid": "urn:uuid:0b5c2f2e-4a0e-4a39-8c36-8d1c0b9d4a11",
}
# The example of a data type without required elements has the first of these elements.
_DESCRIPTIVE = ("text", "display", "value", "url", "start", "low", "numerator", "event", "code")


def example_of(path: str, tables: Tables) -> JsonObject:
    """Return an object with only the required elements below a path of the tables."""
    children = dict(tables.children(path))
    required = {name: child for name, child in children.items() if child["min"] > 0}
    if not required and "." not in path and tables.types[path]["kind"] == "complex-type":
        name = next(rule for rule in (*_DESCRIPTIVE, *children) if rule in children)
        required = {name: children[name]}
    found: JsonObject = {}
    for name, element in required.items():
        type_name = _simplest(element)
        value = _value(type_name, element, tables)
        choice = name.removesuffix("[x]")
        key = name if choice == name else choice + type_name[0].upper() + type_name[1:]
        found[key] = [value] if element["max"] == "*" else value
    return found


def _simplest(element: Element) -> str:
    """Return the simplest of the types of an element: a primitive, if there is one."""
    types: list[str] = element["types"] or [""]
    return next((type_name for type_name in types if type_name in PRIMITIVES), types[0])


def _value(type_name: str, element: Element, tables: Tables) -> Any:
    if "same_as" in element or type_name in NESTED:
        return example_of(element.get("same_as", element["path"]), tables)
    if type_name == "Resource":
        return {"resourceType": "Basic", "code": {"text": _TEXT}}
    if type_name not in PRIMITIVES:
        return example_of(type_name, tables)
    bound = tables.required_set(element)
    return tables.codes[bound][0][1] if bound else _VALUES.get(type_name, _TEXT)
