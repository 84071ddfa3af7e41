"""A registration that is tried: what it reports, and that it stores nothing."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import SYSTEM, document, register_body
from tests.unit.web.handlers.asking import REPORTS, id_of


def validate(lab: Integrator, body: Any, query: str = "") -> Answer:
    return lab.request("POST", f"{REPORTS}/$validate{query}", body)


def test_a_good_body_would_be_registered_and_is_not(lab: Integrator) -> None:
    value = uuid4().hex

    answer = validate(lab, register_body(value))

    assert (answer.status, [one["severity"] for one in answer.issues]) == (200, ["information"])
    found = lab.get(f"{REPORTS}?identifier={SYSTEM}|{value}")
    assert found.json["total"] == 0


def test_a_wrong_body_is_reported_with_its_place(lab: Integrator) -> None:
    answer = validate(lab, register_body(uuid4().hex, status="wrong"))

    assert (answer.status, answer.issues[0]["severity"]) == (200, "error")
    assert answer.issue_expressions == {"Parameters.parameter[2].resource.status"}


def test_a_large_body_is_tried(lab: Integrator) -> None:
    form = document(b"%PDF-" + b"x" * 100_000)

    answer = validate(lab, register_body(uuid4().hex, presentedForm=[form]))

    assert [one["severity"] for one in answer.issues] == ["information"]


@pytest.mark.parametrize(("conclusion", "same"), [("One", True), ("Two", False)])
def test_a_taken_identifier_is_reported_with_what_differs(
    lab: Integrator, conclusion: str, *, same: bool
) -> None:
    value = uuid4().hex
    made = lab.register(register_body(value, conclusion="One"))

    said = str(validate(lab, register_body(value, conclusion=conclusion)).issues)

    assert id_of(made) in said
    assert ("conclusion" in said) is not same


@pytest.mark.parametrize(("mode", "is_refused"), [("create", False), ("delete", True)])
def test_what_is_tried_counts_also_where_the_patient_is_not_in_the_body(
    lab: Integrator, mode: str, *, is_refused: bool
) -> None:
    first = lab.get(lab.register(register_body(uuid4().hex)).headers["location"]).json
    body = register_body(uuid4().hex, subject=first["subject"])
    del body["parameter"][0]

    answer = validate(lab, body, f"?mode={mode}")

    assert ("error" in [one["severity"] for one in answer.issues]) is is_refused


def test_an_identifier_of_another_tenant_is_free(service: RunningService) -> None:
    value = uuid4().hex
    made = service.integrator().register(register_body(value))

    said = str(validate(service.integrator("Other"), register_body(value)).issues)

    assert id_of(made) not in said


def test_an_outcome_names_the_request(lab: Integrator) -> None:
    answer = lab.request("POST", f"{REPORTS}/$validate", b"{", {"X-Request-Id": "tried-1"})

    assert "tried-1" in answer.body.decode()


@pytest.mark.parametrize(("scope", "status"), [("c", 200), ("rus", 403)])
def test_a_trial_needs_the_right_to_create(
    strict_service: RunningService, scope: str, status: int
) -> None:
    lab = strict_service.integrator(scopes=(f"system/DiagnosticReport.{scope}",))

    assert validate(lab, register_body(uuid4().hex)).status == status
