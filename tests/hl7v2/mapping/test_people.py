"""Patients and organizations of which a message states little."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub_hl7v2.problems import Unusable
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


def organization_of(settings: Any = SETTINGS, **msh: str) -> dict[str, Any]:
    header = {int(name.removeprefix("f")): text for name, text in msh.items()}
    (made,) = resources(message(msh=header), "organization", settings)
    return made


def test_an_organization_that_is_set_has_no_number_of_the_facility() -> None:
    settings = replace(SETTINGS, organization_name="North")

    assert organization_of(settings, f4="Quay^1.2.3^ISO") == {
        "resourceType": "Organization",
        "id": "organization",
        "name": "North",
    }


def test_a_facility_is_known_by_its_number() -> None:
    assert organization_of(f4="Quay^1.2.3^ISO")["identifier"] == [
        {"system": "urn:ietf:rfc:3986", "value": "urn:oid:1.2.3"}
    ]


def test_without_a_facility_the_sending_application_is_the_organization() -> None:
    assert organization_of(f3="LIS", f4="") == {
        "resourceType": "Organization",
        "id": "organization",
        "name": "LIS",
    }


@pytest.mark.parametrize(
    "born", ["19701399", "20260230", "00000101", "1987-02-30", "19870631120000"]
)
def test_a_birth_date_that_does_not_exist_is_a_problem(born: str) -> None:
    with pytest.raises(Unusable, match=r"PID\[1\]-7: must begin with a date such as 19700131"):
        patient_of({7: born})


def test_both_given_names_are_kept() -> None:
    assert patient_of({5: "Ashdown^Juniper^May"})["name"] == [
        {"family": "Ashdown", "given": ["Juniper", "May"]}
    ]


def test_an_identifier_without_a_value_is_none() -> None:
    found = patient_of({3: "^^^REG^MR~4^^^REG^MR~5^^^REG"})["identifier"]

    assert [one["value"] for one in found] == ["4", "5"]


@pytest.mark.parametrize(
    ("sent", "gender"),
    [
        *(("F", "female"), ("f", "female"), ("Female", "female")),
        *(("M", "male"), ("male", "male"), ("Male", "male")),
        *(("A", "other"), ("a", "other"), ("N", "other"), ("O", "other")),
    ],
)
def test_the_gender_is_that_of_pid_8_in_any_case(sent: str, gender: str) -> None:
    assert patient_of({8: sent})["gender"] == gender


@pytest.mark.parametrize(
    ("kind", "use"),
    [
        *(("L", "official"), ("R", "official"), ("D", "usual"), ("BAD", "old")),
        *(("MSK", "anonymous"), ("S", "anonymous"), ("NAV", "temp"), ("TEMP", "temp")),
        *(("M", "maiden"), ("N", "nickname"), ("B", None), ("X", None)),
    ],
)
def test_a_name_has_the_use_of_its_type(kind: str, use: str | None) -> None:
    (name,) = patient_of({5: f"Ashdown^Juniper^^^^^{kind}"})["name"]

    assert name.get("use") == use


def test_each_name_and_each_identifier_is_one_of_the_patient() -> None:
    made = patient_of({3: "4^^^REG^MR~5^^^REG^PPN", 5: "Ashdown^Juniper~Ash"})

    assert [one["value"] for one in made["identifier"]] == ["4", "5"]
    assert [one["type"]["coding"][0]["code"] for one in made["identifier"]] == ["MR", "PPN"]
    assert [one["family"] for one in made["name"]] == ["Ashdown", "Ash"]
