"""What the generator makes of element tables, on tables of a few elements and on those of R4."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest

from fhirpub.fhir.definitions.element_tables import Tables
from fhirpub.fhir.definitions.schema_documents import SAID
from fhirpub.fhir.definitions.schema_generator import (
    DATATYPES,
    HERE,
    MANY_CODES,
    MANY_TYPES,
    Shape,
    array_of,
    array_with_gaps,
    codes_schema,
    objects,
    reference,
    requires,
    resource,
    short_name,
)
from tests.element_tables import tables

TEXT = reference("string")


def schema_of(shape: Shape) -> dict[str, Any]:
    return shape.schema(root=True, sibling=False)


def test_a_type_that_is_not_held_brings_the_types_and_codes_that_it_needs() -> None:
    made = resource("Claim", tables())

    assert "Claim.item" in made["$defs"]
    assert made["$id"] == "urn:fhirpub:schemas:r4:Claim"
    assert made["required"][0] == "resourceType"
    assert made["properties"]["resourceType"]["const"] == "Claim"


def references_in(schema: Any) -> set[str]:
    """Return where the references of a schema lead."""
    if isinstance(schema, list):
        return set().union(*map(references_in, schema))
    if not isinstance(schema, dict):
        return set()
    here = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
    return here.union(*map(references_in, schema.values()))


def test_a_type_brings_the_codes_of_its_data_types_as_well() -> None:
    made = resource("StructureDefinition", tables())

    wanted = {one.removeprefix(HERE) for one in references_in(made) if one.startswith(HERE)}
    assert "property-representation" in wanted  # of ElementDefinition
    assert wanted - made["$defs"].keys() == set()


@pytest.mark.parametrize(
    ("name", "here", "expected"),
    [
        ("Resource", False, "urn:fhirpub:schemas:r4:Resource"),
        ("Resource", True, "urn:fhirpub:schemas:r4:Resource"),
        ("HumanName", False, f"{DATATYPES}HumanName"),
        ("HumanName", True, f"{HERE}HumanName"),
    ],
)
def test_a_reference_leads_to_its_document(name: str, *, here: bool, expected: str) -> None:
    assert reference(name, here=here) == {"$ref": expected}


def test_an_array_is_never_empty() -> None:
    assert array_of(TEXT) == {"type": "array", "minItems": 1, "items": TEXT}


def test_an_array_with_gaps_has_something_that_is_none() -> None:
    made = array_with_gaps(TEXT)

    assert made["items"] == {"if": {"type": "null"}, "else": TEXT}
    assert made["contains"] == {"not": {"type": "null"}}


def test_a_primitive_may_be_there_by_its_sibling_alone() -> None:
    assert requires("status", primitive=True) == {
        "anyOf": [{"required": ["status"]}, {"required": ["_status"]}]
    }
    assert requires("code", primitive=False) == {"required": ["code"]}


def test_a_primitive_has_a_sibling_with_something_at_its_position() -> None:
    shape = Shape()
    shape.add_primitive("status", TEXT)

    made = schema_of(shape)

    assert made["properties"] == {"status": TEXT, "_status": reference("Element")}
    assert made["dependentSchemas"] == {"_status": {"fhirPaired": "status"}}
    assert made["additionalProperties"] is False


def test_the_root_of_a_resource_may_have_an_id_alone() -> None:
    shape = Shape()
    shape.add("id", TEXT)

    assert "minProperties" not in shape.schema(root=True, sibling=False)
    assert "dependentSchemas" not in shape.schema(root=True, sibling=False)


def test_an_element_needs_more_than_an_id() -> None:
    shape = Shape()
    shape.add("id", TEXT)

    made = shape.schema(root=False, sibling=False)

    assert made["minProperties"] == 1
    assert made["dependentSchemas"] == {"id": {"minProperties": 2}}


def test_the_sibling_of_a_primitive_may_have_an_id_alone() -> None:
    made = Shape().schema(root=False, sibling=True)

    assert made == {"type": "object", "minProperties": 1, "additionalProperties": False}


@pytest.mark.parametrize(("count", "gated"), [(MANY_TYPES, False), (MANY_TYPES + 1, True)])
def test_a_choice_of_many_types_is_asked_for_first(count: int, *, gated: bool) -> None:
    shape = Shape()
    shape.add_choice("value", {f"T{each}": TEXT for each in range(count)}, required=False)

    (rule,) = shape.rules

    assert ("if" in rule) is gated


def test_a_required_choice_of_many_types_is_not_gated() -> None:
    shape = Shape()
    shape.add_choice("value", {f"T{each}": TEXT for each in range(20)}, required=True)

    (rule,) = shape.rules

    assert (rule["title"], len(rule["oneOf"])) == ("value[x]", 20)


def test_a_choice_that_is_not_required_has_none_as_a_form() -> None:
    shape = Shape()
    shape.add_choice("value", {"Quantity": TEXT}, required=False)

    (rule,) = shape.rules

    assert rule["oneOf"] == [
        {"required": ["valueQuantity"]},
        {"not": {"anyOf": [{"required": ["valueQuantity"]}]}},
    ]


def test_a_rule_about_any_of_some_elements_names_them_and_its_key() -> None:
    shape = Shape()
    shape.add_any_of("pat-1", ["name", "telecom", "address"])

    assert shape.rules[0][SAID] == "must have name, telecom or address (pat-1)"


def test_what_is_excluded_beside_a_choice_is_so_beside_each_form() -> None:
    shape = Shape()
    shape.add("dataAbsentReason", TEXT)
    shape.add_excluded("obs-6", "dataAbsentReason", "value[x]")

    rule = shape.rules[0]["dependentSchemas"]["dataAbsentReason"]

    assert rule["if"] == {"propertyNames": {"not": {"pattern": "^_?value[A-Z]"}}}
    said = rule["else"]["properties"]["dataAbsentReason"][SAID]
    assert said == "must not stand beside value (obs-6)"


def test_what_is_excluded_may_not_be_there_by_its_sibling() -> None:
    shape = Shape()
    shape.add_primitive("when", TEXT)
    shape.add_excluded("tim-10", "when", "timeOfDay")

    rules = shape.rules[0]["dependentSchemas"]

    assert list(rules) == ["when", "_when"]
    assert rules["when"]["if"] == {"propertyNames": {"not": {"pattern": "^_?timeOfDay$"}}}


def test_few_codes_are_listed_and_many_are_named_by_their_value_set() -> None:
    url = "https://lab.example/ValueSet/many"
    codes = [["https://lab.example", f"c{each}"] for each in range(MANY_CODES + 1)]
    few = Tables({}, {url: codes[:-1]}, {}, frozenset(), {}, {}, {}, {}, {}, {}, {})
    many = Tables({}, {url: codes}, {}, frozenset(), {}, {}, {}, {}, {}, {}, {})

    assert codes_schema(url, few)["description"].startswith("one of c0, c1, ")
    assert codes_schema(url, many)["description"] == f"a code of {url}"
    assert len(codes_schema(url, many)["enum"]) == MANY_CODES + 1


def test_the_name_of_a_value_set_is_the_end_of_its_url() -> None:
    assert short_name("http://hl7.org/fhir/ValueSet/name-use") == "name-use"


def test_a_required_primitive_may_be_there_by_its_sibling_and_an_object_may_not() -> None:
    made = resource("Observation", tables())

    assert made["required"] == ["resourceType", "code"]
    assert {"title": "status", **requires("status", primitive=True)} in made["allOf"]


# What is shipped


def shipped(name: str) -> Any:
    folder = resources.files("fhirpub.schemas") / "r4"
    return json.loads((folder / f"{name}.schema.json").read_bytes())


@pytest.mark.parametrize("name", tables().names("resource"))
def test_the_schema_of_a_resource_is_the_one_that_is_shipped(name: str) -> None:
    assert resource(name, tables()) == shipped(name)


def test_the_schemas_of_data_types_are_those_that_are_shipped() -> None:
    made: dict[str, Any] = {}
    for name in tables().names("complex-type"):
        made |= objects(name, tables())

    defined = shipped("datatypes")["$defs"]
    assert {name: defined[name] for name in made} == made
    assert {"HumanName", "Timing.repeat"} <= made.keys()
