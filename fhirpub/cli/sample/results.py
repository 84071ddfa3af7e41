"""Results of measurements as Observations, with ranges and what a value means in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LOINC = "http://loinc.org"
HL7 = "http://terminology.hl7.org/CodeSystem"
_UCUM = "http://unitsofmeasure.org"
Resource = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured value: its local id, what LOINC calls it, and its reference range."""

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

    def elements(self) -> Resource:
        """Return the elements for what was measured, and how to read it."""
        limits = {"low": _quantity(self.low, self.unit), "high": _quantity(self.high, self.unit)}
        elements: Resource = {
            "valueQuantity": _quantity(self.value, self.unit),
            "referenceRange": [limits],
        }
        if self.interpretation:
            elements["interpretation"] = [interpretation(self.interpretation)]
        return elements


def concept(system: str, code: str) -> Resource:
    """Return a concept with one code."""
    return {"coding": [{"system": system, "code": code}]}


def interpretation(code: str) -> Resource:
    """Return the meaning of a value: ``L``, ``H``, ``S``, ``R``."""
    return concept(f"{HL7}/v3-ObservationInterpretation", code)


def observation(
    local_id: str, loinc: str, text: str, *, report: Resource, system: str
) -> Resource:
    """Return a result of a report, final and without a value; ``system`` is of its identifier."""
    number = report["identifier"][0]["value"]
    return {
        "resourceType": "Observation",
        "id": local_id,
        "identifier": [{"system": system, "value": f"{number}-{local_id.upper()}"}],
        "status": "final",
        "category": [concept(f"{HL7}/observation-category", "laboratory")],
        "code": {**concept(LOINC, loinc), "text": text},
        "subject": report["subject"],
        "effectiveDateTime": report["effectiveDateTime"],
        "specimen": report["specimen"][0],
    }


def _quantity(value: float, unit: str) -> Resource:
    return {"value": value, "unit": unit, "system": _UCUM, "code": unit}
