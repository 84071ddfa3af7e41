"""Further elements that an update may name, where the operator has set it (D-106)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.config.settings import Config, TypeConfig
from fhirpub.errors import ConfigurationError
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import register_body

FURTHER = ["issued", "conclusionCode", "media"]


def with_updatable(*elements: str) -> Config:
    return replace(Config(), by_type={"diagnosticreport": TypeConfig(updatable=[*elements])})


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Integrator]:
    """A client of a service that lets more be updated."""
    home = tmp_path_factory.mktemp("clinic")
    with RunningService(home, config=with_updatable(*FURTHER)) as running:
        yield running.integrator()


@pytest.fixture
def path(clinic: Integrator) -> str:
    """The path of a new report."""
    location = clinic.register(register_body("x")).headers["location"]
    return location.removeprefix(clinic.service.base_url).removesuffix("/_history/1")


def test_the_elements_of_the_setting_are_replaced(clinic: Integrator, path: str) -> None:
    fields = {
        "issued": "2026-11-21T12:00:00+02:00",
        "conclusionCode": [{"text": "Anemia"}],
        "media": [{"link": {"reference": "https://lab.example/fhir/Media/1"}}],
    }

    answer = clinic.patch(path, {"resourceType": "DiagnosticReport", **fields})

    assert answer.status == 204, answer.body
    after = clinic.get(path).json
    assert {name: after[name] for name in fields} == {**fields, "issued": "2026-11-21T10:00:00Z"}
    found = clinic.get("/fhir/r4/DiagnosticReport?issued=2026-11-21T10:00:00Z").json
    assert found["total"] == 1


def test_they_are_updated_by_a_json_patch_as_well(clinic: Integrator, path: str) -> None:
    operations = [{"op": "replace", "path": "/issued", "value": "2026-11-21T10:00:00Z"}]
    media_type = {"Content-Type": "application/json-patch+json"}

    assert clinic.request("PATCH", path, operations, media_type).status == 204


def test_other_elements_stay_as_they_are(clinic: Integrator, path: str) -> None:
    fields = {"issued": "2026-11-21T10:00:00Z", "code": {"text": "x"}}

    answer = clinic.patch(path, {"resourceType": "DiagnosticReport", **fields})

    assert (answer.status, answer.issue_expressions) == (422, {"DiagnosticReport.code"})
    assert "conclusion, conclusionCode, issued, media" in answer.issues[0]["diagnostics"]


def test_the_statement_and_the_description_list_them(clinic: Integrator) -> None:
    resources = clinic.get("/metadata").json["rest"][0]["resource"]
    (report,) = (one for one in resources if one["type"] == "DiagnosticReport")
    (patch,) = (one for one in report["interaction"] if one["code"] == "patch")
    schemas = clinic.service.request("GET", "/openapi.json").json["components"]["schemas"]

    assert "conclusionCode, issued, media" in patch["documentation"]
    (update,) = (schema for name, schema in schemas.items() if name == "UpdateDiagnosticReport")
    assert {*FURTHER} <= {*update["properties"]}


@pytest.mark.parametrize("element", FURTHER)
def test_by_default_they_cannot_be_updated(service: RunningService, element: str) -> None:
    lab = service.integrator()
    location = lab.register(register_body("x")).headers["location"]
    path = location.removeprefix(service.base_url).removesuffix("/_history/1")

    answer = lab.patch(path, {"resourceType": "DiagnosticReport", element: []})

    assert (answer.status, answer.issue_expressions) == (422, {f"DiagnosticReport.{element}"})


@pytest.mark.parametrize(
    ("element", "problem"),
    [
        ("isued", "there is no element isued; did you mean issued"),
        ("subject", r"\[diagnosticreport\] updatable: subject can never be updatable"),
        ("identifier", r"\[diagnosticreport\] updatable: identifier can never be updatable"),
        ("Issued at", r"\[diagnosticreport\] updatable: updatable holds 'Issued at'"),
    ],
)
def test_an_element_that_cannot_be_updated_prevents_the_start(
    tmp_path: Path, element: str, problem: str
) -> None:
    with (
        pytest.raises(ConfigurationError, match=problem),
        RunningService(tmp_path, config=with_updatable(element)),
    ):
        pass
