"""The blood count that the demo publishes: its results, and what is corrected later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from fhirpub.cli.publish.submission import Submission
from fhirpub.cli.sample.results import Measured, observation

_RESULTS = "https://north-quay.example/results"
_SAMPLE = files("fhirpub.cli.demo") / "sample"

_VALUES = (
    Measured("hb", "718-7", "Hemoglobin", 13.8, "g/dL", 12.0, 16.0),
    Measured("hct", "4544-3", "Hematocrit", 41.2, "%", 36.0, 46.0),
    Measured("rbc", "789-8", "Erythrocytes", 4.61, "10*6/uL", 3.8, 5.2),
    Measured("mcv", "787-2", "Mean corpuscular volume", 89.4, "fL", 80.0, 100.0),
    Measured("mch", "785-6", "Mean corpuscular hemoglobin", 29.9, "pg", 27.0, 33.0),
    Measured(
        "mchc", "786-4", "Mean corpuscular hemoglobin concentration", 33.5, "g/dL", 32.0, 36.0
    ),
    Measured("rdw", "788-0", "Erythrocyte distribution width", 13.1, "%", 11.5, 14.5),
    Measured("wbc", "6690-2", "Leukocytes", 11.6, "10*3/uL", 4.0, 11.0),
    Measured("neut", "751-8", "Neutrophils", 8.4, "10*3/uL", 2.0, 7.5),
    Measured("lymph", "731-0", "Lymphocytes", 2.2, "10*3/uL", 1.0, 4.0),
    Measured("plt", "777-3", "Platelets", 48, "10*3/uL", 150, 400),
    Measured("mpv", "32623-1", "Mean platelet volume", 9.8, "fL", 7.5, 12.0),
)
CORRECTED_CODE = "http://loinc.org|777-3"
_CORRECTED = Measured("plt", "777-3", "Platelets", 248, "10*3/uL", 150, 400)
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
            result |= {**_CORRECTED.elements(), "status": "corrected", "note": [{"text": _NOTE}]}
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


def _result(value: Measured, report: dict[str, Any]) -> dict[str, Any]:
    result = observation(value.id, value.loinc, value.text, report=report, system=_RESULTS)
    return result | value.elements()
