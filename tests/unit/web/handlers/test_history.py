"""Versions of a report, and of all reports, over HTTP."""

from __future__ import annotations

from uuid import uuid4

import pytest

from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import register_body
from tests.panels import panel, result
from tests.unit.web.handlers.asking import REPORTS, path_of

AMENDED = {"resourceType": "DiagnosticReport", "status": "amended"}


@pytest.fixture
def path(lab: Integrator) -> str:
    """The path of a report that has two versions."""
    path = path_of(lab.register(register_body(uuid4().hex)))
    assert lab.patch(path, AMENDED).status == 204
    return path


def versions(lab: Integrator, path: str) -> list[str]:
    entries = lab.get(path).json.get("entry", [])
    return [entry["resource"]["meta"]["versionId"] for entry in entries]


def test_versions_are_listed_newest_first(lab: Integrator, path: str) -> None:
    assert versions(lab, f"{path}/_history") == ["2", "1"]
    assert lab.get(f"{path}/_history").json["type"] == "history"


def test_a_page_leads_to_the_next(lab: Integrator, path: str) -> None:
    first = lab.get(f"{path}/_history?_count=1").json
    (following,) = [one["url"] for one in first["link"] if one["relation"] == "next"]

    assert versions(lab, following) == ["1"]


def test_a_version_is_listed_since_a_time(lab: Integrator, path: str) -> None:
    assert versions(lab, f"{path}/_history?_since=2999-01-01T00:00:00Z") == []


@pytest.mark.usefixtures("path")
def test_all_reports_are_listed_too(lab: Integrator) -> None:
    lab.register(register_body(uuid4().hex))

    assert versions(lab, f"{REPORTS}/_history") == ["1", "2", "1"]


@pytest.mark.parametrize("suffix", ["", "?_count=1"])
def test_the_history_of_another_tenant_is_not_seen(
    service: RunningService, path: str, suffix: str
) -> None:
    other = service.integrator("Other")

    assert other.get(f"{path}/_history{suffix}").status == 404
    assert versions(other, f"{REPORTS}/_history{suffix}") == []


@pytest.mark.parametrize(
    ("scope", "one", "every"), [("r", 404, 403), ("s", 403, 200), ("cu", 403, 403)]
)
def test_one_history_needs_the_right_to_read_and_all_that_to_search(
    strict_service: RunningService, scope: str, one: int, every: int
) -> None:
    lab = strict_service.integrator(scopes=(f"system/DiagnosticReport.{scope}",))

    found = [lab.get(f"{path}/_history").status for path in (f"{REPORTS}/x", REPORTS)]

    assert found == [one, every]


def test_what_came_with_a_report_has_a_history_of_its_own(lab: Integrator) -> None:
    lab.register(panel(uuid4().hex, result("r1", 1.0)))
    name = lab.get("/fhir/r4/Observation").json["entry"][0]["resource"]["id"]

    found = [lab.get(f"/fhir/r4/Observation{path}/_history").json for path in (f"/{name}", "")]

    for history in found:
        assert [entry["resource"]["id"] for entry in history["entry"]] == [name]
