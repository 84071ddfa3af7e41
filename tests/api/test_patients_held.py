"""Reports that refer to a Patient that the tenant holds, instead of sending it (ADR 26)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fhirpub.testing.service import Integrator, RunningService
from tests.api.test_patients import (
    BASE,
    CONFIG,
    NATIONAL,
    UNKNOWN,
    code_of,
    identified,
    ids_in,
    of,
    subject_of,
)
from tests.bodies import organization, report
from tests.panels import panel, result


@pytest.fixture(scope="module", params=[CONFIG, None], ids=["persons", "patients of reports"])
def service(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    store_url: Callable[[str], str],
) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("held")
    name = f"held-{request.param is None}"
    with RunningService(folder, config=request.param, store_url=store_url(name)) as running:
        yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator()


@pytest.fixture
def subject(lab: Integrator) -> str:
    """The address of a patient of a registered report."""
    return subject_of(lab.register(of("R-1", identified((NATIONAL, "1")))))


def referring(value: str, reference: str, *entries: dict[str, Any]) -> dict[str, Any]:
    """Return a body of ``$register`` without a patient, whose resources refer to one."""
    body = panel(value, *entries)
    for parameter in body["parameter"]:
        if "subject" in parameter["resource"]:
            parameter["resource"]["subject"] = {"reference": reference}
    del body["parameter"][0]
    return body


def test_the_report_has_that_patient(lab: Integrator, subject: str) -> None:
    answer = lab.register(referring("R-2", subject, result("hb")))

    assert subject_of(answer) == subject
    assert len(ids_in(lab.get(f"{BASE}/DiagnosticReport?patient={subject}"))) == 2
    assert len(ids_in(lab.get(f"{BASE}/Observation?patient={subject}"))) == 1
    query = f"DiagnosticReport?patient.identifier={NATIONAL}|1"
    assert len(ids_in(lab.get(f"{BASE}/{query}"))) == 2


def test_an_absolute_address_is_the_same(
    service: RunningService, lab: Integrator, subject: str
) -> None:
    address = f"{service.base_url}{BASE}/{subject}"

    assert subject_of(lab.register(referring("R-2", address))) == subject


def test_create_takes_such_a_reference(lab: Integrator, subject: str) -> None:
    body = report("R-2", subject={"reference": subject}, performer=[{"reference": "#o1"}])
    body["contained"] = [organization()]
    answer = lab.request("POST", f"{BASE}/DiagnosticReport", body)

    assert answer.status == 201
    assert answer.json["subject"]["reference"] == subject


def test_it_is_no_statement_about_the_patient(lab: Integrator, subject: str) -> None:
    before = lab.get(f"{BASE}/{subject}").json
    lab.register(referring("R-2", subject))

    assert lab.get(f"{BASE}/{subject}").json == before
    assert len(lab.get(f"{BASE}/{subject}/_history").json["entry"]) == 1


def test_a_repetition_gets_the_first_response(lab: Integrator, subject: str) -> None:
    first = lab.register(referring("R-2", subject))
    again = lab.register(referring("R-2", subject))

    assert again.body == first.body
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-content" not in again.headers


def test_another_reference_is_other_content(lab: Integrator, subject: str) -> None:
    other = subject_of(lab.register(of("R-3", identified((NATIONAL, "3")))))
    lab.register(referring("R-2", subject))

    answer = lab.register(referring("R-2", other))
    assert answer.headers["idempotent-content"] == "different"


@pytest.mark.parametrize("version", ["4", "8"])
def test_a_patient_that_is_not_held_is_named(lab: Integrator, version: str) -> None:
    reference = f"Patient/{UNKNOWN[:14]}{version}{UNKNOWN[15:]}"
    answer = lab.register(referring("R-2", reference))

    assert answer.status == 400
    assert "reference-unresolved" in [code_of(one) for one in answer.issues]
    assert any(reference in one["diagnostics"] for one in answer.issues)


def test_a_patient_of_another_tenant_is_not_held(
    service: RunningService, lab: Integrator, subject: str
) -> None:
    assert service.integrator().register(referring("R-2", subject)).status == 400


def test_a_trial_finds_the_patient(lab: Integrator, subject: str) -> None:
    body = referring("R-2", subject, result("hb"))
    answer = lab.request("POST", f"{BASE}/DiagnosticReport/$validate", body)

    assert [one["severity"] for one in answer.issues if one["severity"] == "error"] == []
    assert "would be registered" in answer.issues[0]["diagnostics"]


def test_an_update_keeps_the_patient(lab: Integrator, subject: str) -> None:
    answer = lab.register(referring("R-2", subject))
    address = f"{BASE}/DiagnosticReport/{answer.json['parameter'][0]['resource']['id']}"
    body = {"resourceType": "DiagnosticReport", "status": "amended"}

    assert lab.patch(address, body).status == 204
    assert lab.get(address).json["subject"]["reference"] == subject
    assert len(ids_in(lab.get(f"{BASE}/DiagnosticReport?patient={subject}"))) == 2


def test_a_search_includes_the_patient_once(lab: Integrator, subject: str) -> None:
    lab.register(referring("R-2", subject))
    found = lab.get(f"{BASE}/DiagnosticReport?patient={subject}&_include=*").json["entry"]

    patients = [
        entry["resource"]["id"]
        for entry in found
        if entry["resource"]["resourceType"] == "Patient"
    ]
    assert patients == [subject.partition("/")[2]]
