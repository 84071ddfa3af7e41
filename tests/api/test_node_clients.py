"""FHIR clients in JavaScript: fhir-kit-client and @medplum/core, each run once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import SYSTEM, document, patient, register_body, report, self_contained
from tests.node.packages import LOCK, Scripts
from tests.panels import panel, result, specimen

REPORTS = 12
FIRST = f"{SYSTEM}|node-0"
BLOOD = {"reference": "Specimen/blood"}


def given(lab: Integrator) -> dict[str, Any]:
    """The input of a script: the addresses, the credentials, and the bodies to send."""
    return {
        "base": lab.service.base_url,
        "audience": lab.service.config.auth.audience,
        "clientId": lab.client_id,
        "clientSecret": lab.client_secret,
        "toRegister": [register_body(f"node-{number}") for number in range(REPORTS)],
        "toCreate": self_contained("node-created"),
        "toRefuse": register_body("node-refused", status="amended", category=None),
        "first": FIRST,
    }


@pytest.fixture(scope="module")
def kit(node: Scripts, service: RunningService) -> dict[str, Any]:
    """The facts that fhir-kit-client found."""
    facts: dict[str, Any] = json.loads(node.run("fhir_kit.mjs", given=given(service.integrator())))
    return facts


@pytest.fixture(scope="module")
def medplum(node: Scripts, service: RunningService) -> dict[str, Any]:
    """The facts that @medplum/core found."""
    facts: dict[str, Any] = json.loads(node.run("medplum.mjs", given=given(service.integrator())))
    return facts


@pytest.fixture(params=["kit", "medplum"])
def facts(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The facts that both clients found."""
    found: dict[str, Any] = request.getfixturevalue(request.param)
    return found


def places(outcome: dict[str, Any]) -> list[str]:
    """Return the place that an OperationOutcome points to."""
    assert outcome["resourceType"] == "OperationOutcome"
    return [place for issue in outcome["issue"] for place in issue.get("expression", ())]


def test_the_lock_file_has_a_sum_for_each_package_and_no_address() -> None:
    packages = json.loads(LOCK.read_text(encoding="utf-8"))["packages"]
    fetched = [package for name, package in packages.items() if name]

    assert fetched
    assert all(item["integrity"].startswith("sha512-") for item in fetched)
    assert "://" not in LOCK.read_text(encoding="utf-8")


def test_fhir_kit_finds_the_statements_interactions(kit: dict[str, Any]) -> None:
    wanted = {"read", "vread", "create", "patch", "search-type", "history-instance"}

    assert wanted <= set(kit["offered"])


def test_fhir_kit_registers(kit: dict[str, Any]) -> None:
    registered = kit["registered"]

    assert registered["status"] == 201
    assert registered["location"].endswith(f"/DiagnosticReport/{registered['id']}/_history/1")


def test_fhir_kit_gets_the_same_answer_again(kit: dict[str, Any]) -> None:
    assert kit["again"] is True


def test_fhir_kit_creates_and_gets_what_is_there_if_it_asks_for_none(kit: dict[str, Any]) -> None:
    made, found = kit["created"]

    assert (made["status"], found["status"]) == (201, 200)
    assert made["id"] == found["id"]


def test_medplum_logs_in_both_ways(medplum: dict[str, Any]) -> None:
    assert medplum["loggedIn"] == [True, True]


def test_medplum_creates_and_gets_what_is_there_if_it_asks_for_none(
    medplum: dict[str, Any],
) -> None:
    made, found = medplum["created"]

    assert made == found


def test_what_was_registered_is_read_with_its_document(facts: dict[str, Any]) -> None:
    assert facts["read"]["identifier"] == [{"system": SYSTEM, "value": "node-0"}]
    assert facts["read"]["presentedForm"] == [document()]


def test_the_reports_patient_is_found_by_its_reference(facts: dict[str, Any]) -> None:
    assert facts["patient"]["name"] == patient()["name"]


def test_fhir_kit_patches(kit: dict[str, Any]) -> None:
    assert kit["patched"] == 204
    assert (kit["latest"]["status"], kit["latest"]["conclusion"]) == ("amended", "otherwise")


def test_medplum_patches_and_gets_the_report_if_it_prefers_to(medplum: dict[str, Any]) -> None:
    assert medplum["patched"] is None
    assert medplum["represented"]["status"] == "corrected"


def test_a_stale_patch_is_refused_with_both_versions(
    kit: dict[str, Any], medplum: dict[str, Any]
) -> None:
    assert kit["stale"]["status"] == 412
    assert kit["stale"]["data"]["issue"][0]["diagnostics"] == "target version 1, current version 2"
    assert medplum["stale"]["issue"][0]["diagnostics"] == "target version 2, current version 3"


def test_the_first_version_can_still_be_read(facts: dict[str, Any]) -> None:
    assert facts["first"] == facts["read"]


def test_the_history_has_every_version(kit: dict[str, Any], medplum: dict[str, Any]) -> None:
    versions = [
        [entry["resource"]["meta"]["versionId"] for entry in client["history"]["entry"]]
        for client in (kit, medplum)
    ]

    assert versions == [["2", "1"], ["3", "2", "1"]]


def test_fhir_kit_finds_by_several_parameters_in_the_url_and_in_a_form(
    kit: dict[str, Any],
) -> None:
    assert kit["found"] == [[kit["registered"]["id"]]] * 2


def test_medplum_finds_by_several_parameters(medplum: dict[str, Any]) -> None:
    assert (medplum["found"], medplum["one"]) == ([medplum["id"]], medplum["id"])


def test_medplum_downloads_a_document_by_its_address(medplum: dict[str, Any]) -> None:
    assert medplum["document"] == document()["data"]


def test_the_pages_are_followed_to_their_end(facts: dict[str, Any]) -> None:
    ids = {item for page in facts["pages"] for item in page}

    assert [len(page) for page in facts["pages"]] == [5, 5, 3]
    assert len(ids) == REPORTS + 1


def test_medplums_own_page_size_is_no_mistake(medplum: dict[str, Any]) -> None:
    assert medplum["unlimited"] == [REPORTS + 1]


def test_an_absent_resource_is_an_outcome_not_found(
    kit: dict[str, Any], medplum: dict[str, Any]
) -> None:
    assert kit["absent"]["status"] == 404
    for outcome in (kit["absent"]["data"], medplum["absent"]):
        assert outcome["issue"][0]["code"] == "not-found"


def test_all_that_is_wrong_with_a_registration_is_reported(
    kit: dict[str, Any], medplum: dict[str, Any]
) -> None:
    resource = "Parameters.parameter[2].resource"

    assert kit["refused"]["status"] == 400
    for outcome in (kit["refused"]["data"], medplum["refused"]):
        assert set(places(outcome)) == {f"{resource}.status", f"{resource}.category"}


@pytest.fixture(scope="module")
def results(node: Scripts, service: RunningService) -> dict[str, Any]:
    """The facts that @medplum/core found about a report with its results."""
    lab = service.integrator()
    hemoglobin = result("hb", specimen={"reference": "Specimen/blood"})

    def body(platelets: float, status: str) -> dict[str, Any]:
        low = result("plt", platelets, code={"text": "plt"}, status=status)
        return panel("R-1", hemoglobin, low, specimen(), status=status, specimen=[BLOOD])

    given = {
        "base": service.base_url,
        "token": lab.token,
        "panel": body(48, "final"),
        "revision": body(84, "corrected"),
        "other": body(85, "corrected"),
        "patient": "|".join(patient()["identifier"][0][name] for name in ("system", "value")),
    }
    facts: dict[str, Any] = json.loads(node.run("medplum_results.mjs", given=given))
    return facts


def test_medplum_finds_a_report_with_its_results_by_the_patients_identifier(
    results: dict[str, Any],
) -> None:
    assert results["found"] == [
        ["DiagnosticReport", "match"],
        ["Observation", "include"],
        ["Observation", "include"],
        ["Specimen", "include"],
    ]
    assert results["results"] == ["hb", "plt"]
    assert results["specimen"] == "Venous blood"
    assert results["low"] == sorted([report("R-1")["code"]["text"], "hb", "plt"])


def test_medplum_revises_a_report_with_its_results(results: dict[str, Any]) -> None:
    assert results["unconditional"]["issue"][0]["code"] == "required"
    assert results["changed"] == ["observation"]
    assert results["again"] == "2"
    assert results["stale"]["issue"][0]["code"] == "conflict"
    assert (results["values"], results["first"]) == ([84, 48], 48)
    assert results["requests"] == ["POST", "POST"]
