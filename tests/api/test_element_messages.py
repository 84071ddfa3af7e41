"""What is answered to wrong values in a body, and to several mistakes at once."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.testing.service import Answer, Integrator
from tests.bodies import document, organization, parameters, patient, register_body, report

REPORT = "Parameters.parameter[2].resource"
PATIENT = "Parameters.parameter[0].resource"


def said_about(answer: Answer, place: str) -> str:
    """Return what the only issue at a place says."""
    [issue] = [one for one in answer.issues if one.get("expression") == [place]]
    return str(issue["diagnostics"])


@pytest.mark.parametrize(
    ("status", "end"),
    [
        ("Final", "; did you mean final?"),
        ("prelim", "; did you mean preliminary?"),
        ("amended", "preliminary, registered, unknown"),
        ({"coding": []}, "preliminary, registered, unknown"),
        (5, "preliminary, registered, unknown"),
    ],
)
def test_only_statuses_that_can_be_sent_are_listed(lab: Integrator, status: Any, end: str) -> None:
    refused = lab.register(register_body("M-1", status=status))

    assert refused.problems == ["status-not-allowed"]
    said = said_about(refused, f"{REPORT}.status")
    assert said.startswith("must be one of final, partial, preliminary, registered, unknown")
    assert said.endswith(end)


@pytest.mark.parametrize(
    ("gender", "end"),
    [("F", "; did you mean female?"), ("unknown", "other"), ("Unknown", "other")],
)
def test_a_gender_that_is_refused_is_not_listed(lab: Integrator, gender: str, end: str) -> None:
    refused = lab.register(with_patient(gender=gender))

    said = said_about(refused, f"{PATIENT}.gender")
    assert said.startswith("must be one of male, female, other")
    assert said.endswith(end)
    assert refused.problems == ["code-not-allowed"]


@pytest.mark.parametrize("system", ["Email", "mail", "fax"])
def test_only_the_telecoms_of_patients_that_can_be_sent_are_listed(
    lab: Integrator, system: str
) -> None:
    refused = lab.register(with_patient(telecom=[{"system": system, "value": "x"}], gender=5))

    said = said_about(refused, f"{PATIENT}.telecom[0].system")
    assert said.startswith("must be one of email, phone")


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"data": "data:application/pdf;base64,AAAA"}, "leave out data:...;base64, before it"),
        ({"data": "-_-_"}, "the URL-safe alphabet"),
        ({"contentType": "pdf"}, "such as application/pdf"),
        ({"hash": None}, "data needs a hash: the SHA-256"),
    ],
)
def test_a_wrong_attachment_is_answered_with_what_to_write(
    lab: Integrator, changes: dict[str, Any], advice: str
) -> None:
    changed = document() | changes
    attachment = {name: value for name, value in changed.items() if value is not None}

    refused = lab.register(register_body("M-2", presentedForm=[attachment]))

    assert refused.status == 400
    assert advice in " ".join(issue["diagnostics"] for issue in refused.issues)


@pytest.mark.parametrize("reference", ["3fa85f64-5717-4562-b3fc-2c963f66afa6", "Patient/other"])
def test_a_reference_that_misses_the_patient_is_answered_with_the_form(
    lab: Integrator, reference: str
) -> None:
    refused = lab.register(register_body("M-3", subject={"reference": reference}))

    said = said_about(refused, f"{REPORT}.subject.reference")
    assert said.endswith("by Patient/ and the id of that resource")


@pytest.mark.parametrize(
    ("reference", "advice"),
    [
        ("o9", "a reference is Type/id, #id or an absolute URL"),
        ("Observation?identifier=https://lab.example|9", "send Reference.identifier"),
        ("Specimen/9", "contain it, or give an absolute URL"),
    ],
)
def test_a_reference_that_leads_nowhere_is_stored_with_a_warning_that_states_what_to_send(
    lab: Integrator, reference: str, advice: str
) -> None:
    registered = lab.register(register_body(f"M-4 {advice}", result=[{"reference": reference}]))

    [issues] = [one for one in registered.json["parameter"] if one["name"] == "issues"]
    said = [issue["diagnostics"] for issue in issues["resource"]["issue"]]
    assert any(advice in one for one in said)


def test_a_missing_entry_does_not_hide_other_problems(lab: Integrator) -> None:
    body = parameters(patient=patient(gender=1), diagnosticReport=report("M-5", conclusion=5))

    refused = lab.register(body)

    assert refused.problems == ["entry-missing", "value-invalid", "code-not-allowed"]


def test_an_entry_of_another_type_does_not_hide_other_problems(lab: Integrator) -> None:
    body = parameters(
        patient=organization(),
        organization=organization(),
        diagnosticReport=report("M-6", conclusion=5),
    )

    refused = lab.register(body)

    assert refused.problems == ["entry-invalid", "value-invalid"]


def test_a_missing_contained_part_does_not_hide_other_problems(lab: Integrator) -> None:
    body = report("M-7", conclusion=5, contained=[patient()], subject={"reference": "#p1"})

    refused = lab.request("POST", "/fhir/r4/DiagnosticReport", body)

    assert {"entry-missing", "value-invalid"} <= set(refused.problems)


def with_patient(**changes: Any) -> dict[str, Any]:
    """Return a body whose patient has changes."""
    body = register_body("M-8")
    body["parameter"][0]["resource"] |= changes
    return body
