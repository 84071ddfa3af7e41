"""A registration that refers to a patient instead of bringing it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import register_body
from tests.erasing import Operator
from tests.unit.web.handlers.asking import id_of

UNKNOWN = "Patient/00000000-0000-4000-8000-000000000000"


def registered(lab: Integrator) -> str:
    """Register a report; return the reference to its patient."""
    location = lab.register(register_body(uuid4().hex)).headers["location"]
    reference: str = lab.get(location).json["subject"]["reference"]
    return reference


def refer(lab: Integrator, reference: str, **changes: Any) -> Answer:
    """Register a report that refers to a patient."""
    body = register_body(uuid4().hex, subject={"reference": reference}, **changes)
    del body["parameter"][0]
    return lab.register(body)


@pytest.mark.parametrize("changes", [{}, {"conclusion": "x y " * 20_000}], ids=["small", "large"])
def test_a_report_may_refer_to_a_patient_of_the_tenant(
    lab: Integrator, changes: dict[str, Any]
) -> None:
    reference = registered(lab)

    answer = refer(lab, reference, **changes)

    assert answer.status == 201
    assert lab.get(answer.headers["location"]).json["subject"]["reference"] == reference


@pytest.mark.parametrize("changes", [{}, {"conclusion": "x y " * 20_000}], ids=["small", "large"])
def test_an_unknown_patient_is_refused(lab: Integrator, changes: dict[str, Any]) -> None:
    answer = refer(lab, UNKNOWN, **changes)

    assert (answer.status, answer.problems) == (400, ["entry-missing", "reference-unresolved"])


def test_a_patient_of_another_tenant_is_unknown(service: RunningService, lab: Integrator) -> None:
    reference = registered(lab)

    known, unknown = (refer(service.integrator("Other"), one) for one in (reference, UNKNOWN))

    assert (known.status, known.problems) == (unknown.status, unknown.problems)


@pytest.mark.parametrize(
    ("scopes", "status"),
    [
        (("system/DiagnosticReport.cr",), 201),
        (("system/DiagnosticReport.c", "system/Patient.r"), 201),
        (("system/DiagnosticReport.c",), 400),
        (("system/DiagnosticReport.cs", "system/Observation.r"), 400),
    ],
)
def test_a_patient_that_may_not_be_read_is_unknown(
    strict_service: RunningService, scopes: tuple[str, ...], status: int
) -> None:
    owner = strict_service.integrator(scopes=("system/*.cruds",))
    reference = registered(owner)

    answer = refer(strict_service.another_client(owner.tenant, scopes=scopes), reference)

    assert answer.status == status


def test_a_patient_that_was_erased_is_unknown(service: RunningService, lab: Integrator) -> None:
    made = lab.register(register_body(uuid4().hex))
    reference = lab.get(made.headers["location"]).json["subject"]["reference"]
    Operator(service, lab).erase(f"DiagnosticReport/{id_of(made)}")

    answer = refer(lab, reference)

    assert (answer.status, answer.problems) == (400, ["entry-missing", "reference-unresolved"])
