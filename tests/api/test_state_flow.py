"""The order of statuses, where the operator has it enforced (D-114, D-115)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.config.settings import Config, TypeConfig
from fhirpub.errors import ConfigurationError
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT
from tests.bodies import PDF, document, register_body

CLINICAL = replace(Config(), by_type={"diagnosticreport": TypeConfig(state_flow="clinical")})
FLOW = DIAGNOSTIC_REPORT.state_flow


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Integrator]:
    """A client of a service that enforces the order of statuses."""
    with RunningService(tmp_path_factory.mktemp("clinic"), config=CLINICAL) as running:
        yield running.integrator()


def report(clinic: Integrator, number: str, status: str) -> str:
    """Return the path of a new report with a status, which may have to be set by an update."""
    first = status if status in DIAGNOSTIC_REPORT.create_statuses else "unknown"
    location = clinic.register(register_body(number, status=first)).headers["location"]
    path = location.removeprefix(clinic.service.base_url).removesuffix("/_history/1")
    if first != status:
        assert update(clinic, path, status=status).status == 204
    return path


def update(clinic: Integrator, path: str, **fields: object) -> Answer:
    return clinic.patch(path, {"resourceType": "DiagnosticReport", **fields})


@pytest.mark.parametrize("old", sorted(FLOW))
def test_exactly_the_statuses_of_the_flow_may_follow(clinic: Integrator, old: str) -> None:
    path = report(clinic, f"F-{old}", old)
    refused = DIAGNOSTIC_REPORT.update_statuses - FLOW[old]

    forbidden = {new: update(clinic, path, status=new).status for new in sorted(refused)}
    allowed = {
        new: update(clinic, report(clinic, f"F-{old}-{new}", old), status=new).status
        for new in sorted(FLOW[old])
    }

    assert set(forbidden.values()) <= {422}
    assert set(allowed.values()) <= {204}


def test_a_refusal_names_what_is_allowed(clinic: Integrator) -> None:
    answer = update(clinic, report(clinic, "N-1", "final"), status="preliminary")

    (issue,) = answer.issues
    assert (issue["code"], answer.issue_expressions) == (
        "business-rule",
        {"DiagnosticReport.status"},
    )
    assert "amended, appended, corrected, entered-in-error" in issue["diagnostics"]


def test_documents_of_a_final_report_need_a_new_status(clinic: Integrator) -> None:
    path, other = report(clinic, "D-1", "final"), [document(PDF + b"other")]

    answers = [
        update(clinic, path, presentedForm=other),
        update(clinic, path, presentedForm=other, status="corrected"),
    ]

    assert [answer.status for answer in answers] == [422, 204]


def test_a_status_that_is_none_stays_a_400(clinic: Integrator) -> None:
    answer = update(clinic, report(clinic, "S-1", "final"), status="registered")

    assert answer.status == 400


def test_without_the_setting_every_status_may_follow(lab: Integrator) -> None:
    answer = update(lab, report(lab, "O-1", "final"), status="preliminary")

    assert answer.status == 204


def test_the_flow_knows_every_status() -> None:
    known = DIAGNOSTIC_REPORT.create_statuses | DIAGNOSTIC_REPORT.update_statuses

    assert FLOW.keys() == known
    assert all(item <= DIAGNOSTIC_REPORT.update_statuses for item in FLOW.values())


def test_a_type_that_declares_no_flow_cannot_have_it_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "fhirpub_diagnosticreport.DIAGNOSTIC_REPORT", replace(DIAGNOSTIC_REPORT, state_flow={})
    )

    with pytest.raises(ConfigurationError, match="declares none"):
        RunningService(tmp_path, config=CLINICAL).__enter__()
