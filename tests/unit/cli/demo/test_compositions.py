"""The other resources of the demo: one of each type, with the author and the report's patient."""

from __future__ import annotations

from typing import Any

from fhirpub.cli.demo.compositions import PLUGINS, bodies, steps

PATIENT = {"name": "patient", "resource": {"resourceType": "Patient", "id": "p"}}
ORGANIZATION = {"name": "organization", "resource": {"resourceType": "Organization", "id": "o"}}
REPORT: dict[str, Any] = {
    "parameter": [
        {"name": "diagnosticReport", "resource": {"resourceType": "DiagnosticReport"}},
        PATIENT,
        {"name": "specimen", "resource": {"resourceType": "Specimen"}},
        ORGANIZATION,
    ]
}


def test_each_body_has_the_patient_the_author_and_one_resource() -> None:
    found = bodies(REPORT)

    assert len(found) == 5
    for file, body in found.items():
        patient, organization, author, own = body["parameter"]
        assert body["resourceType"] == "Parameters"
        assert (patient, organization) == (PATIENT, ORGANIZATION)
        assert author["resource"]["resourceType"] in ("Practitioner", "PractitionerRole")
        assert file == f"{own['name']}.json"
        assert own["resource"]["resourceType"].lower() == own["name"].lower()


def test_each_body_is_sent_by_one_step_to_its_type() -> None:
    found = [step for step, _ in steps()]

    assert [step.file for step in found] == list(bodies(REPORT))
    for step in found:
        name = step.file.removesuffix(".json")
        assert step.path == f"/fhir/r4/{name[0].upper()}{name[1:]}/$register"
        assert (step.method, step.expected, step.prefer) == ("POST", 201, "return=minimal")


def test_the_plugins_serve_all_these_types() -> None:
    types = [step.path.split("/")[3].lower() for step, _ in steps()]

    assert sorted(types) == sorted(PLUGINS)


def test_each_step_names_the_event_that_it_causes() -> None:
    assert [event for _, event in steps()] == [
        "encounter_outpatient.created",
        "medication_request.created",
        "service_request.created",
        "device_request.created",
        "observation.created",
    ]
