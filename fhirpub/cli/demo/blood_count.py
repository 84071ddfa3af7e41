"""The blood count that the demo publishes: its results, and what is corrected later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from fhirpub.cli.publish.submission import Submission

_UCUM = "http://unitsofmeasure.org"
_HL7 = "http://terminology.hl7.org/CodeSystem"
_SAMPLE = files("fhirpub.cli.demo") / "sample"


@dataclass(frozen=True, slots=True)
class _Value:
    """A result: its local id, what LOINC calls it, and its reference range."""

    id: str
    loinc: str
    text: str
    value: float
    unit: str
    low: float
    high: float

    @property
    def interpretation(self) -> str:
        """``L``, ``H``, or nothing within the range."""
        return "L" if self.value < self.low else "H" if self.value > self.high else ""


_VALUES = (
    _Value("hb", "718-7", "Hemoglobin", 13.8, "g/dL", 12.0, 16.0),
    _Value("hct", "4544-3", "Hematocrit", 41.2, "%", 36.0, 46.0),
    _Value("rbc", "789-8", "Erythrocytes", 4.61, "10*6/uL", 3.8, 5.2),
    _Value("mcv", "787-2", "Mean corpuscular volume", 89.4, "fL", 80.0, 100.0),
    _Value("mch", "785-6", "Mean corpuscular hemoglobin", 29.9, "pg", 27.0, 33.0),
    _Value("mchc", "786-4", "Mean corpuscular hemoglobin concentration", 33.5, "g/dL", 32.0, 36.0),
    _Value("rdw", "788-0", "Erythrocyte distribution width", 13.1, "%", 11.5, 14.5),
    _Value("wbc", "6690-2", "Leukocytes", 11.6, "10*3/uL", 4.0, 11.0),
    _Value("neut", "751-8", "Neutrophils", 8.4, "10*3/uL", 2.0, 7.5),
    _Value("lymph", "731-0", "Lymphocytes", 2.2, "10*3/uL", 1.0, 4.0),
    _Value("plt", "777-3", "Platelets", 48, "10*3/uL", 150, 400),
    _Value("mpv", "32623-1", "Mean platelet volume", 9.8, "fL", 7.5, 12.0),
)
CORRECTED_CODE = "http://loinc.org|777-3"
_CORRECTED = _Value("plt", "777-3", "Platelets", 248, "10*3/uL", 150, 400)
_NOTE = "The platelets had clumped in EDTA, and were counted again in citrate."


def first_submission(folder: Path) -> Submission:
    """Return the registration: the report with its results and its document."""
    return _submission(folder, "report.pdf")


def revised_submission(folder: Path) -> Submission:
    """Return the report as it should be after one result was corrected."""
    submission = _submission(folder, "corrected.pdf")
    submission.entry["resource"] |= {
        "status": "corrected",
        "conclusion": f"Leukocytes and neutrophils slightly raised. {_NOTE}",
    }
    for result in results_in(submission.body):
        if result["id"] == _CORRECTED.id:
            del result["interpretation"]
            result |= {**_measured(_CORRECTED), "status": "corrected", "note": [{"text": _NOTE}]}
    return submission


def results_in(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the results in a body."""
    for parameter in body["parameter"]:
        if parameter["name"] == "observation":
            yield parameter["resource"]


def _submission(folder: Path, document: str) -> Submission:
    with as_file(_SAMPLE / document) as sample:
        (folder / document).write_bytes(sample.read_bytes())
    body = json.loads((_SAMPLE / "register.json").read_bytes())
    entries = {entry["name"]: entry for entry in body["parameter"]}
    report = entries["diagnosticReport"]["resource"]
    results = [_result(value, report) for value in _VALUES]
    report["result"] = [{"reference": f"Observation/{value.id}"} for value in _VALUES]
    body["parameter"] += [{"name": "observation", "resource": result} for result in results]
    submission = Submission(body, entries["diagnosticReport"])
    submission.attach([folder / document])
    return submission


def _result(value: _Value, report: dict[str, Any]) -> dict[str, Any]:
    number = report["identifier"][0]["value"]
    return {
        "resourceType": "Observation",
        "id": value.id,
        "identifier": [
            {
                "system": "https://north-quay.example/results",
                "value": f"{number}-{value.id.upper()}",
            }
        ],
        "status": "final",
        "category": [_concept(f"{_HL7}/observation-category", "laboratory")],
        "code": {**_concept("http://loinc.org", value.loinc), "text": value.text},
        "subject": report["subject"],
        "effectiveDateTime": report["effectiveDateTime"],
        "specimen": report["specimen"][0],
        **_measured(value),
    }


def _measured(value: _Value) -> dict[str, Any]:
    """Return the elements that say what was measured, and how to read it."""
    measured: dict[str, Any] = {
        "valueQuantity": _quantity(value.value, value.unit),
        "referenceRange": [
            {"low": _quantity(value.low, value.unit), "high": _quantity(value.high, value.unit)}
        ],
    }
    if value.interpretation:
        interpretation = _concept(f"{_HL7}/v3-ObservationInterpretation", value.interpretation)
        measured["interpretation"] = [interpretation]
    return measured


def _concept(system: str, code: str) -> dict[str, Any]:
    return {"coding": [{"system": system, "code": code}]}


def _quantity(value: float, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "system": _UCUM, "code": unit}
