from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from fhirpub.fhir.definitions.schema_components import components, ref
from fhirpub.fhir.definitions.schema_documents import URN
from fhirpub.fhir.schema import Schemas, own_schemas

CORPUS = Path(__file__).parents[3] / "corpus"
TYPES = (
    "DeviceRequest DiagnosticReport Encounter MedicationRequest Observation ServiceRequest".split()
)


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return own_schemas()


@pytest.fixture(scope="module")
def short(schemas: Schemas) -> dict[str, Any]:
    return components(schemas.by_id, TYPES)


def corpus(name: str, member: str) -> list[dict[str, Any]]:
    with gzip.open(CORPUS / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line)[member] for line in lines]


def fitting(type_name: str, short: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    document = {**ref(type_name), "components": {"schemas": short}}
    return jsonschema_rs.Draft202012Validator(document)


def test_every_resource_that_is_valid_fits(schemas: Schemas, short: dict[str, Any]) -> None:
    known = {name: fitting(name, short) for name in TYPES}
    others = corpus("compositions.jsonl.gz", "resource")
    valid = [
        other
        for other in [*others, *corpus("reports.jsonl.gz", "report")]
        if schemas.accepts(other["resourceType"], other)
    ]

    assert len(valid) > 100
    assert [
        element for element in valid if not known[element["resourceType"]].is_valid(element)
    ] == []


def test_a_primitive_that_is_absent_for_a_reason_fits(short: dict[str, Any]) -> None:
    name = {"given": [None, "Ana"], "_given": [{"extension": []}, None]}

    assert fitting("HumanName", components(own_schemas().by_id, ["Patient"])).is_valid(name)


@pytest.mark.parametrize(
    "wrong", [{"status": "done"}, {"code": "x"}, {"identifier": {}}, {"identifier": []}]
)
def test_what_has_another_form_does_not_fit(short: dict[str, Any], wrong: dict[str, Any]) -> None:
    report = {"resourceType": "DiagnosticReport", "code": {"text": "Blood count"}}

    assert fitting("DiagnosticReport", short).is_valid(report)
    assert not fitting("DiagnosticReport", short).is_valid({**report, **wrong})


def test_extensions_and_the_siblings_of_primitives_are_left_out(short: dict[str, Any]) -> None:
    named = {name for item in short.values() for name in item.get("properties", {})}

    assert "Extension" not in short
    assert not [name for name in named if name.startswith("_") or "xtension" in name]


def test_a_resource_says_where_r4_defines_it(short: dict[str, Any]) -> None:
    assert short["Observation"]["externalDocs"]["url"].endswith("/R4/observation.html")


def test_only_a_resource_has_an_id(short: dict[str, Any]) -> None:
    assert "id" in short["Observation"]["properties"]
    assert "id" not in short["CodeableConcept"]["properties"]


def test_what_r4_requires_is_required_unless_it_is_left_out(short: dict[str, Any]) -> None:
    assert set(short["Observation"]["required"]) == {"resourceType", "code"}
    assert "required" not in short["CodeableConcept"]


def test_a_decimal_has_the_format_of_which_generators_keep_all_digits(
    short: dict[str, Any],
) -> None:
    value = short["Quantity"]["properties"]["value"]

    assert (value["type"], value["format"]) == ("number", "double")


def test_a_list_of_codes_and_a_constant_are_texts(short: dict[str, Any]) -> None:
    properties = short["Observation"]["properties"]

    assert properties["status"]["type"] == "string"
    assert "final" in properties["status"]["enum"]
    assert properties["resourceType"] == {"type": "string", "const": "Observation"}


@pytest.mark.parametrize(
    ("resource", "fits"),
    [
        ({"resourceType": "Flag", "status": "active"}, True),
        ({"resourceType": 5}, False),
        ({"status": "active"}, False),
        ([], False),
    ],
)
def test_a_resource_of_any_type_has_the_name_of_its_type(
    short: dict[str, Any], resource: Any, *, fits: bool
) -> None:
    assert fitting("Resource", short).is_valid(resource) is fits


def test_objects_may_have_what_is_left_out(short: dict[str, Any]) -> None:
    assert short["Anything"].keys() == {"description"}
    assert short["Observation"]["additionalProperties"] == ref("Anything")


def test_entries_of_a_bundle_differ_by_the_types_of_their_resources() -> None:
    known = components(
        own_schemas().by_id, ["Bundle", "Patient", "Observation"], entries=["Patient"]
    )

    assert known["Bundle.entry"]["properties"]["resource"] == ref("Bundle.entry.resource")
    assert known["Bundle.entry.resource"] == {
        "anyOf": [ref("Patient")],
        "discriminator": {
            "propertyName": "resourceType",
            "mapping": {"Patient": "#/components/schemas/Patient"},
        },
    }


def test_all_that_is_referred_to_is_there(short: dict[str, Any]) -> None:
    text = json.dumps(short)
    named = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}

    assert {"Anything", "Coding"} <= named <= short.keys()


def test_what_is_left_out_is_not_required() -> None:
    kind = {"const": "Goal"}
    document = {
        "description": "A goal.",
        "required": ["resourceType", "extension", "_note", "note"],
        "properties": {
            "resourceType": kind,
            "extension": True,
            "_note": {"type": "object"},
            "note": {"type": "string"},
        },
    }

    found = components({f"{URN}Goal": document}, ["Goal"])["Goal"]

    assert (found["required"], [*found["properties"]]) == (
        ["resourceType", "note"],
        ["resourceType", "note"],
    )
