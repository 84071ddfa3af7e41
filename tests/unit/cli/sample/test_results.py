"""Results are Observations with a value, its range, and what the value means in it."""

from __future__ import annotations

import pytest

from fhirpub.cli.sample.results import Measured, concept, interpretation, observation
from tests.unit.cli.sample.report import REPORT

UNIT = {"unit": "g/dL", "system": "http://unitsofmeasure.org", "code": "g/dL"}


def measured(value: float) -> Measured:
    return Measured("hb", "718-7", "Hemoglobin", value, "g/dL", 12.0, 16.0)


@pytest.mark.parametrize(
    ("value", "code"), [(11.9, "L"), (12.0, ""), (14, ""), (16.0, ""), (16.1, "H")]
)
def test_a_value_at_a_limit_is_within_the_range(value: float, code: str) -> None:
    assert measured(value).interpretation == code


def test_a_value_has_its_unit_and_its_range() -> None:
    assert measured(14).elements() == {
        "valueQuantity": {"value": 14, **UNIT},
        "referenceRange": [{"low": {"value": 12.0, **UNIT}, "high": {"value": 16.0, **UNIT}}],
    }


def test_a_value_outside_of_its_range_is_interpreted() -> None:
    assert measured(17).elements()["interpretation"] == [interpretation("H")]


def test_a_meaning_is_a_code_of_hl7() -> None:
    system = "http://terminology.hl7.org/CodeSystem/v3-ObservationInterpretation"

    assert interpretation("L") == concept(system, "L")
    assert concept("s", "c") == {"coding": [{"system": "s", "code": "c"}]}


def test_a_result_belongs_to_the_patient_the_time_and_the_specimen_of_its_report() -> None:
    found = observation("hb", "718-7", "Hemoglobin", report=REPORT, system="https://r")

    category = "http://terminology.hl7.org/CodeSystem/observation-category"
    assert found == {
        "resourceType": "Observation",
        "id": "hb",
        "identifier": [{"system": "https://r", "value": "a-7-HB"}],
        "status": "final",
        "category": [concept(category, "laboratory")],
        "code": {**concept("http://loinc.org", "718-7"), "text": "Hemoglobin"},
        "subject": REPORT["subject"],
        "effectiveDateTime": REPORT["effectiveDateTime"],
        "specimen": REPORT["specimen"][0],
    }
