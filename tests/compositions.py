"""Valid request bodies of a clinic: consultations, prescriptions and observations."""

from __future__ import annotations

from typing import Any

from tests.bodies import organization, parameters, patient, with_changes

SYSTEM = "https://clinic.example/compositions"
V2_0203 = "http://terminology.hl7.org/CodeSystem/v2-0203"
LOINC = "http://loinc.org"
SNOMED = "http://snomed.info/sct"
UCUM = "http://unitsofmeasure.org"


def practitioner(**changes: Any) -> dict[str, Any]:
    """Return an author; a change to None leaves the element out."""
    resource = {
        "resourceType": "Practitioner",
        "id": "d1",
        "name": [
            {"use": "maiden", "family": "Suárez"},
            {"use": "official", "family": "Ferreyra", "given": ["Marta", "Sol"]},
        ],
        "identifier": [
            _identifier("https://registry.example/licences", "MN 81234", "MD"),
            _identifier("https://registry.example/persons", "20333444", "NI"),
            _identifier("https://registry.example/taxes", "27-20333444-5", "TAX"),
        ],
        "gender": "female",
        "birthDate": "1974-11-02",
    }
    return with_changes(resource, changes)


def encounter(value: str, *, system: str = SYSTEM, **changes: Any) -> dict[str, Any]:
    """Return a consultation; a change to None leaves the element out."""
    resource = {
        "resourceType": "Encounter",
        "identifier": [{"system": system, "value": value}],
        "status": "finished",
        "class": {
            "system": "http://terminology.hl7.org/CodeSystem/v3-ActCode",
            "code": "AMB",
            "display": "ambulatory",
        },
        "type": [_concept(SNOMED, "185349003", "Encounter for check up")],
        "serviceType": {"text": "Internal medicine"},
        "subject": {"reference": "Patient/p1"},
        "participant": [
            {"type": [{"text": "Observer"}]},
            {"individual": {"reference": "Practitioner/d1"}},
        ],
        "period": {"start": "2026-11-20T09:00:00-03:00", "end": "2026-11-20T09:20:00-03:00"},
        "reasonCode": [{"text": "Yearly check-up"}],
        "diagnosis": [{"condition": {"display": "Essential hypertension"}, "rank": 1}],
        "serviceProvider": {"reference": "Organization/o1"},
    }
    return with_changes(resource, changes)


def medication_request(value: str, *, system: str = SYSTEM, **changes: Any) -> dict[str, Any]:
    """Return a prescription; a change to None leaves the element out."""
    resource = {
        "resourceType": "MedicationRequest",
        "identifier": [{"system": system, "value": value}],
        "status": "active",
        "intent": "order",
        "priority": "routine",
        "medicationCodeableConcept": _concept(SNOMED, "318956006", "Losartan 50 mg tablet"),
        "subject": {"reference": "Patient/p1"},
        "authoredOn": "2026-11-20T09:15:00-03:00",
        "requester": {"reference": "Practitioner/d1"},
        "reasonCode": [_concept(SNOMED, "59621000", "Essential hypertension")],
        "dosageInstruction": [
            {
                "text": "One tablet every morning",
                "timing": {"repeat": {"frequency": 1, "period": 1, "periodUnit": "d"}},
                "doseAndRate": [{"doseQuantity": _quantity(1, "tablet", "{tbl}")}],
            }
        ],
        "dispenseRequest": {
            "numberOfRepeatsAllowed": 2,
            "quantity": _quantity(30, "tablet", "{tbl}"),
            "performer": {"reference": "Organization/o1"},
        },
        "substitution": {"allowedBoolean": True},
    }
    return with_changes(resource, changes)


def service_request(value: str, *, system: str = SYSTEM, **changes: Any) -> dict[str, Any]:
    """Return an order of a blood count; a change to None leaves the element out."""
    resource = {
        "resourceType": "ServiceRequest",
        "identifier": [{"system": system, "value": value}],
        "status": "active",
        "intent": "order",
        "category": [_concept(SNOMED, "108252007", "Laboratory procedure")],
        "priority": "urgent",
        "code": _concept(LOINC, "58410-2", "Complete blood count panel"),
        "orderDetail": [{"text": "Fasting"}],
        "subject": {"reference": "Patient/p1"},
        "occurrenceDateTime": "2026-11-21T07:30:00-03:00",
        "authoredOn": "2026-11-20T09:16:00-03:00",
        "requester": {"reference": "Practitioner/d1"},
        "performer": [{"reference": "Organization/o1"}],
        "patientInstruction": "Nothing to eat for eight hours before",
    }
    return with_changes(resource, changes)


def device_request(value: str, *, system: str = SYSTEM, **changes: Any) -> dict[str, Any]:
    """Return a prescription of a walking stick; a change to None leaves the element out."""
    resource = {
        "resourceType": "DeviceRequest",
        "identifier": [{"system": system, "value": value}],
        "status": "active",
        "intent": "order",
        "priority": "routine",
        "codeCodeableConcept": _concept(SNOMED, "87405001", "Walking stick"),
        "parameter": [{"code": {"text": "Height"}, "valueQuantity": _quantity(82, "cm", "cm")}],
        "subject": {"reference": "Patient/p1"},
        "authoredOn": "2026-11-20T09:17:00-03:00",
        "requester": {"reference": "Practitioner/d1"},
        "performer": {"reference": "Organization/o1"},
        "reasonCode": [{"text": "Unsteady gait"}],
    }
    return with_changes(resource, changes)


def observation(value: str, *, system: str = SYSTEM, **changes: Any) -> dict[str, Any]:
    """Return a blood pressure; a change to None leaves the element out."""
    resource = {
        "resourceType": "Observation",
        "identifier": [{"system": system, "value": value}],
        "status": "final",
        "category": [
            _concept(
                "http://terminology.hl7.org/CodeSystem/observation-category",
                "vital-signs",
                "Vital Signs",
            )
        ],
        "code": _concept(LOINC, "85354-9", "Blood pressure panel"),
        "subject": {"reference": "Patient/p1"},
        "effectiveDateTime": "2026-11-20T09:05:00-03:00",
        "issued": "2026-11-20T09:06:00-03:00",
        "performer": [{"reference": "Practitioner/d1"}, {"reference": "Organization/o1"}],
        "component": [
            {
                "code": _concept(LOINC, "8480-6", "Systolic blood pressure"),
                "valueQuantity": _quantity(128, "mmHg", "mm[Hg]"),
            },
            {
                "code": _concept(LOINC, "8462-4", "Diastolic blood pressure"),
                "valueQuantity": _quantity(82, "mmHg", "mm[Hg]"),
            },
        ],
    }
    return with_changes(resource, changes)


def register_body(resource: dict[str, Any], **author: Any) -> dict[str, Any]:
    """Return a body of ``$register``; changes go to the author."""
    name = resource["resourceType"]
    own = {f"{name[0].lower()}{name[1:]}": resource}
    return parameters(
        patient=patient(),
        organization=organization(),
        practitioner=practitioner(**author),
        **own,
    )


def _identifier(system: str, value: str, kind: str) -> dict[str, Any]:
    return {
        "type": {"coding": [{"system": V2_0203, "code": kind}]},
        "system": system,
        "value": value,
    }


def _concept(system: str, code: str, display: str) -> dict[str, Any]:
    return {"coding": [{"system": system, "code": code, "display": display}], "text": display}


def _quantity(value: float, unit: str, code: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "system": UCUM, "code": code}
