"""Patients and organizations of which a message states little."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.hl7v2.messages import SETTINGS, message, obr, obx, pid, resources


def patient_of(fields: dict[int, str]) -> dict[str, Any]:
    (made,) = resources(message(pid(fields), obr(), obx()), "patient")
    return made


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("Ashdown", {"family": "Ashdown"}),
        ("^Juniper", {"given": ["Juniper"]}),
        ("Ashdown^^May", {"family": "Ashdown", "given": ["May"]}),
        ("Ashdown^^^Jr", {"family": "Ashdown", "suffix": ["Jr"]}),
        ("Ashdown^^^^Dr", {"family": "Ashdown", "prefix": ["Dr"]}),
        ("Ashdown&van&Ashdown", {"family": "Ashdown"}),
    ],
)
def test_a_name_has_the_parts_that_were_sent(sent: str, name: dict[str, Any]) -> None:
    assert patient_of({5: sent})["name"] == [name]


@pytest.mark.parametrize("sent", ["", "^^^Jr", "^^May"])
def test_a_name_without_a_family_and_a_first_name_is_none(sent: str) -> None:
    assert "name" not in patient_of({5: sent})


def test_an_identifier_without_a_type_has_none() -> None:
    assert patient_of({3: "4^^^REG"})["identifier"] == [
        {"system": "https://registry.example/persons", "value": "4"}
    ]


def test_each_identifier_has_the_system_of_its_authority() -> None:
    systems = [one["system"] for one in patient_of({3: "4^^^REG~5^^^HIS"})["identifier"]]

    assert systems == ["https://registry.example/persons", "https://hospital.example/orders"]


@pytest.mark.parametrize("gender", ["", "U", "X", "FEM"])
def test_an_unknown_gender_is_left_out(gender: str) -> None:
    assert "gender" not in patient_of({8: gender})


@pytest.mark.parametrize(
    ("fields", "identifiers"),
    [
        (
            {"organization_system": "urn:x", "organization_value": "1"},
            [{"system": "urn:x", "value": "1"}],
        ),
        ({"organization_system": "urn:x"}, []),
        ({"organization_value": "1"}, []),
    ],
)
@pytest.mark.parametrize("name", ["", "NQ"])
def test_an_organization_has_an_identifier_if_system_and_value_are_set(
    fields: dict[str, str], identifiers: list[dict[str, str]], name: str
) -> None:
    settings = replace(SETTINGS, organization_name=name, **fields)  # type: ignore[arg-type]

    (made,) = resources(message(), "organization", settings)

    assert made.get("identifier", []) == identifiers


def test_an_organization_of_the_settings_may_have_a_number_alone() -> None:
    settings = replace(SETTINGS, organization_system="urn:x", organization_value="1")

    (made,) = resources(message(msh={3: "", 4: ""}), "organization", settings)

    assert made == {
        "resourceType": "Organization",
        "id": "organization",
        "identifier": [{"system": "urn:x", "value": "1"}],
    }


def test_the_oid_of_a_facility_goes_before_the_number_that_is_set() -> None:
    settings = replace(SETTINGS, organization_system="urn:x", organization_value="1")

    (made,) = resources(message(msh={4: "NQ^1.2.3^ISO"}), "organization", settings)

    assert made["identifier"] == [{"system": "urn:ietf:rfc:3986", "value": "urn:oid:1.2.3"}]
