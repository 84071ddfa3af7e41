"""What the element tables of R4 have of types, elements and codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fhirpub.fhir.definitions.element_tables import Tables, json_names
from tests.element_tables import tables


def test_types_without_a_schema_are_there_and_not_held() -> None:
    assert "Claim" in tables().types
    assert "Claim" not in tables().held
    assert "Patient" in tables().held


def test_the_held_types_of_a_kind_have_the_order_of_their_names() -> None:
    found = tables().names("resource")

    assert found == sorted(found)
    assert {"Patient", "Observation"} <= {*found}
    assert not {"Resource", "DomainResource", "HumanName", "Claim"} & {*found}
    assert "HumanName" in tables().names("complex-type")


def test_the_resource_types_of_r4_are_there_whether_they_are_held_or_not() -> None:
    found = tables().resource_types()

    assert found == sorted(found)
    assert {"Claim", "Patient"} <= {*found}
    assert not {"Resource", "DomainResource", "HumanName"} & {*found}


def test_a_code_of_a_required_binding_has_its_value_set() -> None:
    elements = dict(tables().children("Patient"))

    assert tables().required_set(elements["gender"]) == (
        "http://hl7.org/fhir/ValueSet/administrative-gender"
    )


@pytest.mark.parametrize(
    ("strength", "url", "types", "bound"),
    [
        ("required", "known", ["code"], "known"),
        ("extensible", "known", ["code"], ""),
        ("required", "unknown", ["code"], ""),
        ("required", "known", ["CodeableConcept"], ""),
        ("required", "known", [], ""),
    ],
)
def test_only_a_required_binding_to_a_known_value_set_binds_a_code(
    strength: str, url: str, types: list[str], bound: str
) -> None:
    found = Tables({}, {"known": []}, {}, frozenset(), {}, {}, {}, {}, {}, {}, {})

    assert found.required_set({"binding": (strength, url), "types": types}) == bound


def test_an_element_without_a_binding_binds_no_code() -> None:
    assert tables().required_set({"types": ["code"]}) == ""


def test_the_value_sets_of_held_types_are_named_once_in_order() -> None:
    found = tables().held_sets

    assert found == sorted(set(found))
    assert "http://hl7.org/fhir/ValueSet/administrative-gender" in found
    assert "" not in found


def test_the_children_of_a_path_are_those_right_below_it() -> None:
    assert [name for name, _ in tables().children("Patient.communication")] == [
        *("id", "extension", "modifierExtension"),
        *("language", "preferred"),
    ]
    assert "contact" in dict(tables().children("Patient"))
    assert "relationship" not in dict(tables().children("Patient"))


def test_marked_elements_have_the_names_of_all_their_forms() -> None:
    summary = tables().paths_marked("Patient", "summary")

    assert {"identifier", "deceasedBoolean", "deceasedDateTime"} <= {*summary}
    assert "contact" not in summary


@pytest.mark.parametrize(
    ("name", "types", "expected"),
    [
        ("value[x]", ["string", "Quantity"], ["valueString", "valueQuantity"]),
        ("value", ["string"], ["value"]),
        ("given", [], ["given"]),
    ],
)
def test_an_element_has_a_name_for_each_form(
    name: str, types: list[str], expected: list[str]
) -> None:
    assert json_names(name, {"types": types}) == expected


def test_a_held_type_goes_before_another_of_its_name(tmp_path: Path) -> None:
    rules: dict[str, Any] = {
        name: {}
        for name in ("needed", "any_of", "excluded", "distinct", "barred", "limited", "simple")
    }
    parts: dict[str, Any] = {
        "fhir_r4_elements": {"types": {"A": "held"}, "codes": {"u": [["s", "held"]]}},
        "fhir_r4_more_elements": {
            "types": {"A": "more", "B": "more"},
            "codes": {"u": [["s", "more"]], "v": []},
        },
        "displays": {"u": {"c": "shown"}},
        "beside": rules,
    }
    for name, part in parts.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(part))

    found = Tables.read(tmp_path)

    assert found.types == {"A": "held", "B": "more"}
    assert found.codes == {"u": [["s", "held"]], "v": []}
    assert found.held == {"A"}
    assert found.displays == {"u": {"c": "shown"}}
