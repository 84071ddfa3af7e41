"""A resource has a limited number of search values; what is stored with more stays usable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.settings import Config, LimitsConfig
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.indexing import limits
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import register_body


def codings(number: int) -> dict[str, Any]:
    return {
        "code": {
            "text": "x",
            "coding": [{"system": "urn:x", "code": f"c{n}"} for n in range(number)],
        }
    }


def check_too_costly(answer: Answer) -> None:
    assert answer.status == 413
    (issue,) = answer.issues
    assert issue["code"] == "too-costly"
    assert "2000" in issue["diagnostics"].replace(",", "")


def test_a_registration_with_too_many_search_values_is_refused(lab: Integrator) -> None:
    check_too_costly(lab.register(dumps(register_body("A", **codings(2_100)))))


def test_a_registration_with_many_search_values_is_accepted(lab: Integrator) -> None:
    assert lab.register(dumps(register_body("A", **codings(1_900)))).status == 201


def test_validation_reports_too_many_search_values(lab: Integrator) -> None:
    path = "/fhir/r4/DiagnosticReport/$validate"

    answer = lab.request("POST", path, dumps(register_body("A", **codings(2_100))))

    assert answer.status == 200
    assert [issue["code"] for issue in answer.issues if issue["severity"] == "error"] == [
        "too-costly"
    ]


def test_a_resource_that_was_stored_with_more_is_indexed_again_and_open_to_corrections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_SEARCH_VALUES", 10_000)
    config = replace(Config(), limits=replace(LimitsConfig(), compute_processes=0))
    with RunningService(tmp_path, config=config) as earlier:
        lab = earlier.integrator()
        location = lab.register(dumps(register_body("A", **codings(2_100)))).headers["location"]
        earlier.call(earlier.services.store.put_search_rules("{}"))
    path = location[location.index("/fhir/") :].partition("/_history")[0]
    monkeypatch.undo()

    with RunningService(tmp_path, config=config) as service:
        same = replace(lab, service=service)
        same.log_in()
        found = same.get("/fhir/r4/DiagnosticReport?code=c2099").json["entry"]
        body = {"resourceType": "DiagnosticReport", "conclusion": "corrected"}

        assert [entry["search"]["mode"] for entry in found] == ["match"]
        assert same.patch(path, body).status == 204
