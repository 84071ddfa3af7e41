"""Whose message it is: identifiers and dates that could name another person or time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub_hl7v2.problems import Unusable
from fhirpub_hl7v2.settings import Settings
from tests.hl7v2.messages import (
    SETTINGS,
    mapped,
    message,
    obr,
    observation,
    obx,
    pid,
    resources,
    segment,
)

UUID = "0B9C1F9E-1D55-4B77-9D06-0F1A2B3C4D5E"


def patient_of(field: str, at: int = 3, settings: Settings = SETTINGS) -> dict[str, Any]:
    (made,) = resources(message(pid({at: field}), obr(), obx()), "patient", settings)
    return made


def test_an_authority_that_is_a_uuid_is_the_system() -> None:
    (identifier,) = patient_of(f"123^^^&{UUID}&UUID^MR")["identifier"]

    assert identifier["system"] == f"urn:uuid:{UUID.lower()}"


@pytest.mark.parametrize(
    ("authority", "system"),
    [
        ("REG", "https://registry.example/persons"),
        ("North Quay", "https://all.example/North%20Quay"),
        ("North Quay&54D1801788&CLIA", "https://all.example/CLIA/54D1801788"),
        ("North Quay&1.2.3&ISO", "urn:oid:1.2.3"),
        ("*", "https://all.example/%2A"),
        ("a/b", "https://all.example/a%2Fb"),
    ],
)
def test_all_other_authorities_can_have_systems_below_one(authority: str, system: str) -> None:
    others = {**SETTINGS.authorities, "*": "https://all.example/"}
    settings = replace(SETTINGS, authorities=others)
    raw = message(pid({3: f"4^^^{authority}^MR"}), obr(), obx())

    (patient,) = resources(raw, "patient", settings)

    assert patient["identifier"][0]["system"] == system


def test_an_authority_may_be_written_as_parts_of_one_component() -> None:
    (report,) = mapped(message(pid(), obr({3: "NQ-1^Lab&1.2.3&ISO"}), obx()))

    assert report.identifier["system"] == "urn:oid:1.2.3"


def test_a_name_of_only_a_type_is_none() -> None:
    assert "name" not in patient_of("^^^^^^U", 5)


def test_the_number_of_a_specimen_may_have_no_system() -> None:
    raw = message(pid(), obr(), obx(), segment("SPM", {2: "^S-9&OTHER", 4: "BLD"}))

    (specimen,) = resources(raw, "specimen")

    assert specimen["identifier"] == [{"value": "S-9"}]


def test_an_authority_that_cannot_be_read_is_never_replaced_by_the_default() -> None:
    settings = Settings(patient_system="https://hospital.example/persons")
    raw = message(pid({3: "123^^^&x.y&GUID^MR"}), obr({3: "1^&1.2.3&ISO"}), obx())

    with pytest.raises(Unusable, match=r"PID\[1\]-3: names no assigning authority"):
        mapped(raw, settings)


def test_a_time_before_time_zones_is_a_problem() -> None:
    raw = message(pid(), obr(), obx({14: "18900102030405"}), msh={7: "20260302104500"})

    with pytest.raises(Unusable, match=r"OBX\[1\]-14: must be a time"):
        mapped(raw)


def test_digits_of_other_scripts_are_no_number() -> None:
    assert "valueString" in observation({5: "\u0661\u0662"})
