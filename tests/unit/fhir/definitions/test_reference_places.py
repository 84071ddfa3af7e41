"""Where references are found in resources, and where none are looked for."""

from __future__ import annotations

from functools import cache
from typing import Any

from fhirpub.fhir.definitions.reference_places import Places, reference_places, references_in
from fhirpub.fhir.schema import own_schemas


@cache
def places() -> dict[str, Places]:
    return reference_places(own_schemas().by_id)


def literals(resource: dict[str, Any]) -> list[str]:
    found = references_in(resource, places()[resource["resourceType"]])
    return [one["reference"] for one in found]


def test_a_reference_of_the_resource_is_found() -> None:
    subject = {"reference": "Patient/p"}

    assert literals({"resourceType": "Observation", "subject": subject}) == ["Patient/p"]


def test_each_reference_of_an_array_is_found() -> None:
    performers = [{"reference": "Practitioner/a"}, {"reference": "Practitioner/b"}]

    found = literals({"resourceType": "Observation", "performer": performers})

    assert found == ["Practitioner/a", "Practitioner/b"]


def test_a_reference_in_a_nested_element_is_found() -> None:
    contact = {"organization": {"reference": "Organization/o"}}

    assert literals({"resourceType": "Patient", "contact": [contact]}) == ["Organization/o"]


def test_a_reference_in_a_data_type_is_found() -> None:
    identifier = {"value": "1", "assigner": {"reference": "Organization/o"}}

    assert literals({"resourceType": "Patient", "identifier": [identifier]}) == ["Organization/o"]


def test_a_reference_below_a_reference_is_found() -> None:
    assigner = {"reference": "Organization/o"}
    subject = {"reference": "Patient/p", "identifier": {"value": "1", "assigner": assigner}}

    found = literals({"resourceType": "Observation", "subject": subject})

    assert found == ["Patient/p", "Organization/o"]


def test_a_reference_without_a_literal_is_not_found_but_what_is_below_it_is() -> None:
    assigner = {"reference": "Organization/o"}
    subject = {"identifier": {"value": "1", "assigner": assigner}}

    found = literals({"resourceType": "Observation", "subject": subject})

    assert found == ["Organization/o"]


def test_a_resource_without_references_has_none() -> None:
    assert literals({"resourceType": "Patient", "name": [{"family": "A"}]}) == []


def test_an_element_that_leads_to_no_reference_is_no_place() -> None:
    assert not {"gender", "birthDate", "active"} & places()["Patient"].keys()


def test_each_resource_type_has_its_own_places() -> None:
    assert {"subject", "performer"} <= places()["Observation"].keys()
    assert "subject" not in places()["Patient"]


def test_a_property_of_any_content_is_no_place() -> None:
    subject = {"$ref": "urn:x#/$defs/Reference"}
    properties: dict[str, Any] = {
        "resourceType": {"const": "X"},
        "open": True,
        "list": {"type": "array", "items": True},
        "subject": {"type": "array", "items": subject},
    }
    defined = {"Reference": {"properties": {"reference": {"type": "string"}}}}

    found = reference_places({"urn:x": {"properties": properties, "$defs": defined}})

    assert found == {"X": {"subject": {}}}


def test_references_are_found_however_many_types_lead_to_them() -> None:
    def to(name: str) -> dict[str, Any]:
        return {"properties": {"next": {"$ref": f"urn:x#/$defs/{name}"}}}

    properties: dict[str, Any] = {"resourceType": {"const": "X"}, **to("A")["properties"]}
    reference = {"properties": {"reference": {"type": "string"}}}
    defined = {"A": to("B"), "B": to("C"), "C": to("D"), "D": to("Reference")}

    found = reference_places(
        {"urn:x": {"properties": properties, "$defs": {**defined, "Reference": reference}}}
    )

    assert found == {"X": {"next": {"next": {"next": {"next": {"next": {}}}}}}}
