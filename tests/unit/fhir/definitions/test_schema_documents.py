"""The documents that engines get: with absolute references, and with those of plugins."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import ConfigurationError
from fhirpub.fhir.definitions.schema_documents import (
    ANY,
    URN,
    Element,
    documents,
    element_at,
    forms_of_choices,
    types_of,
)
from fhirpub.fhir.schema import own_schemas

KNOWN = own_schemas().by_id
OWN: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "properties": {"resourceType": {"const": "Claim"}, "item": {"$ref": "#/$defs/Claim.item"}},
    "$defs": {"Claim.item": {"allOf": [{"$ref": "#/$defs/other"}]}, "other": {}},
}


def element(type_name: str, path: str) -> Element | None:
    return element_at(KNOWN, KNOWN[f"{URN}{type_name}"], path)


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [one for member in node.values() for one in references(member)]
    return [one for member in node for one in references(member)] if isinstance(node, list) else []


def test_no_document_names_a_dialect() -> None:
    assert not any("$schema" in document for document in documents({"Claim": OWN}).values())


def test_each_reference_names_its_document() -> None:
    known = documents({"Claim": OWN})

    assert {one[0] for document in known.values() for one in references(document)} == {"u"}
    assert f"{URN}Claim#/$defs/other" in references(known[f"{URN}Claim"])


def test_a_schema_of_a_plugin_is_reached_from_any_resource_before_the_others() -> None:
    known = documents({"Claim": OWN})

    assert known[ANY]["if"]["properties"]["resourceType"] == {"const": "Claim"}
    assert known[ANY]["then"] == {"$ref": f"{URN}Claim"}
    assert known[ANY]["else"] == {name: KNOWN[ANY][name] for name in ("if", "then", "else")}


def test_a_schema_of_a_plugin_is_not_changed_itself() -> None:
    documents({"Claim": OWN})

    assert OWN["$schema"]
    assert "$id" not in OWN


def test_a_schema_of_a_plugin_gets_its_id() -> None:
    assert documents({"Claim": OWN})[f"{URN}Claim"]["$id"] == f"{URN}Claim"


def test_a_property_with_the_name_of_a_reference_stays() -> None:
    own = {**OWN["properties"], "$ref": {"$ref": "#/$defs/other"}}

    known = documents({"Claim": {**OWN, "properties": own}})[f"{URN}Claim"]

    assert known["properties"]["$ref"] == {"$ref": f"{URN}Claim#/$defs/other"}


def test_a_type_with_a_schema_gets_no_second_one() -> None:
    with pytest.raises(ConfigurationError, match="there is a schema for Patient already"):
        documents({"Patient": {"properties": {"resourceType": {"const": "Patient"}}}})


@pytest.mark.parametrize(
    "changes",
    [
        {"$id": f"{URN}Other"},
        {"properties": {"resourceType": {"const": "Other"}}},
        {"properties": {}},
    ],
)
def test_a_schema_is_that_of_its_type(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"needs the \\$id {URN}Claim"):
        documents({"Claim": {**OWN, **changes}})


def test_only_documents_of_resource_types_are_types() -> None:
    found = types_of(KNOWN)

    assert found["Patient"] == f"{URN}Patient"
    assert not {"datatypes", "Resource", ""} & found.keys()


def test_each_form_of_a_choice_has_its_stem() -> None:
    forms = dict(forms_of_choices(KNOWN[f"{URN}Patient"]))

    assert forms["deceasedBoolean"] == forms["deceasedDateTime"] == "deceased"
    assert forms["_deceasedBoolean"] == "deceased"
    assert "birthDate" not in forms


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("name", ("HumanName", True)),
        ("name.family", ("string", False)),
        ("maritalStatus", ("CodeableConcept", False)),
        ("maritalStatus.coding.system", ("uri", False)),
        ("contact", ("Patient.contact", True)),
        ("contact.name.family", ("string", False)),
        ("gender", ("administrative-gender", False)),
        ("name.given", ("", True)),
    ],
)
def test_a_path_leads_to_an_element(path: str, expected: tuple[str, bool]) -> None:
    found = element("Patient", path)

    assert found is not None
    assert (found.type, found.repeats) == expected


def test_an_element_has_the_codes_of_its_list() -> None:
    found = element("Patient", "gender")

    assert found is not None
    assert found.codes == {"male", "female", "other", "unknown"}


@pytest.mark.parametrize("path", ["nothing", "name.nothing", "gender.nothing", "nothing.family"])
def test_a_path_to_nothing_leads_nowhere(path: str) -> None:
    assert element("Patient", path) is None
