"""What the schemas say of an element at a place: its type, its values, and its FHIRPath."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.fhir.schema import Schemas, own_schemas

SCHEMAS = own_schemas()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("name", ("HumanName", "HumanName")),
        *((f"name.{name}", ("string", "string")) for name in ("family", "given", "prefix")),
        ("name.suffix", ("string", "string")),
        ("address.line", ("string", "string")),
        ("contact.name.suffix", ("string", "string")),
        ("contact.organization.reference", ("string", "string")),
        ("birthDate", ("date", "date")),
        ("deceasedDateTime", ("dateTime", "dateTime")),
        ("gender", ("code", "administrative-gender")),
        ("communication.language.coding.code", ("code", "code")),
        *((path, ("", "")) for path in ("nothing", "name.nothing", "gender.nothing", "deceased")),
    ],
)
def test_an_element_has_a_type_and_a_name_of_its_values(
    path: str, expected: tuple[str, str]
) -> None:
    assert SCHEMAS.type_at("Patient", path) == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("effectiveDateTime", "effective"),
        ("component[0].valueQuantity.code", "component[0].value.code"),
        ("valueQuantity.extension[1].valueString", "value.extension[1].value"),
        ("name.family", "name.family"),
        ("", ""),
    ],
)
def test_each_form_of_a_choice_in_a_place_is_shown_as_the_choice(
    place: str, expected: str
) -> None:
    assert SCHEMAS.fhirpath(place) == expected


def test_types_that_have_a_schema_are_known() -> None:
    assert SCHEMAS.knows("Patient")
    assert not any(map(SCHEMAS.knows, ("Claim", "HumanName", "datatypes", "Resource", "")))


def test_an_element_of_a_type_is_found_by_its_path() -> None:
    found = SCHEMAS.element("Patient", "contact.gender")

    assert found is not None
    assert (found.type, found.repeats) == ("administrative-gender", False)
    assert SCHEMAS.element("Patient", "contact.nothing") is None


def test_what_a_plugin_has_a_schema_of_is_valid_and_never_plain() -> None:
    document: dict[str, Any] = {
        "type": "object",
        "properties": {"resourceType": {"const": "Claim"}, "status": {"type": "string"}},
        "required": ["resourceType", "status"],
    }
    schemas = Schemas({"Claim": document})
    claim, patient = {"resourceType": "Claim", "status": "a"}, {"resourceType": "Patient"}

    assert schemas.accepts("Claim", claim)
    assert not schemas.plain.accepts("Claim", claim)
    assert schemas.plain.accepts("Patient", patient)
