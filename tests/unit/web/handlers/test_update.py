"""Updates over HTTP: forms, conditions, members, preferences, and what they need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.settings import Config
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.audit_trail import records_of_tenant
from tests.bodies import SYSTEM, register_body
from tests.panels import panel, result
from tests.unit.web.handlers.asking import REPORTS, path_of

JSON_PATCH = {"Content-Type": "application/json-patch+json"}
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
UNKNOWN = f"{REPORTS}/00000000-0000-4000-8000-000000000000"


def register(lab: Integrator, value: str = "", **changes: Any) -> str:
    """Register a report; return its path."""
    answer = lab.register(register_body(value or uuid4().hex, **changes))
    assert answer.status == 201, answer.body
    return path_of(answer).removeprefix(lab.service.base_url)


@pytest.fixture
def path(lab: Integrator) -> str:
    return register(lab)


def update(lab: Integrator, path: str, **headers: str) -> Answer:
    body = {"resourceType": "DiagnosticReport", "conclusion": "Corrected"}
    return lab.patch(path, body, **headers)


def test_an_update_is_answered_with_the_address_of_the_next_version(
    lab: Integrator, path: str
) -> None:
    answer = update(lab, path)

    assert (answer.status, answer.body, answer.headers["etag"]) == (204, b"", 'W/"2"')
    assert answer.headers["location"] == f"{lab.service.base_url}{path}/_history/2"
    assert answer.headers["last-modified"].endswith(" GMT")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON_PATCH, [{"op": "add", "path": "/conclusion", "value": "Corrected"}]),
        (MERGE_PATCH, {"conclusion": "Corrected"}),
        ({}, {"resourceType": "DiagnosticReport", "conclusion": "Corrected"}),
    ],
    ids=["json-patch", "merge-patch", "fhir"],
)
def test_each_form_changes_the_report(
    lab: Integrator, path: str, kind: dict[str, str], body: Any
) -> None:
    answer = lab.request("PATCH", path, body, kind)

    assert (answer.status, lab.get(path).json["conclusion"]) == (204, "Corrected")


def test_an_update_in_xml_changes_the_report(lab: Integrator, path: str) -> None:
    inside = b'<conclusion value="New"/>'
    body = b'<DiagnosticReport xmlns="http://hl7.org/fhir">%b</DiagnosticReport>' % inside

    answer = lab.request("PATCH", path, body, {"Content-Type": "application/fhir+xml"})

    assert (answer.status, lab.get(path).json["conclusion"]) == (204, "New")


@pytest.mark.parametrize("form", [JSON_PATCH, {}], ids=["json-patch", "fhir"])
def test_a_large_update_changes_the_report(
    lab: Integrator, path: str, form: dict[str, str]
) -> None:
    text = "x y " * 20_000
    body: Any = {"resourceType": "DiagnosticReport", "conclusion": text}
    if form:
        body = [{"op": "add", "path": "/conclusion", "value": text}]

    assert lab.request("PATCH", path, body, form).status == 204
    assert lab.get(path).json["conclusion"] == text


@pytest.mark.parametrize(
    ("name", "tag", "status"),
    [
        ("If-Match", 'W/"1"', 204),
        ("If-Match", 'W/"2"', 412),
        ("If-None-Match", 'W/"1"', 412),
        ("If-None-Match", 'W/"2"', 204),
    ],
)
def test_an_update_of_another_version_is_refused(
    lab: Integrator, path: str, name: str, tag: str, status: int
) -> None:
    assert update(lab, path, **{name.replace("-", "_"): tag}).status == status


def test_what_is_not_there_is_not_found_whatever_the_body_is(lab: Integrator) -> None:
    assert lab.patch(UNKNOWN, b"{").status == 404


def test_a_report_of_another_tenant_is_not_found(service: RunningService, path: str) -> None:
    assert update(service.integrator("Other"), path).status == 404


def test_a_refused_update_makes_no_version(lab: Integrator, path: str) -> None:
    answer = lab.patch(path, {"resourceType": "DiagnosticReport", "status": "nonsense"})

    assert (answer.status, lab.get(path).headers["etag"]) == (400, 'W/"1"')


# Preferences.


def test_a_representation_is_the_version_that_was_made(lab: Integrator, path: str) -> None:
    answer = update(lab, path, Prefer="return=representation")

    assert (answer.status, answer.json["conclusion"]) == (200, "Corrected")
    assert answer.headers["preference-applied"] == "return=representation"
    assert answer.headers["etag"] == 'W/"2"'


def test_an_outcome_reports_the_update(lab: Integrator, path: str) -> None:
    answer = update(lab, path, Prefer="return=OperationOutcome")

    assert (answer.status, answer.problems[0]) == (200, "accepted")
    assert answer.issues[0]["diagnostics"] == "DiagnosticReport was updated"
    assert answer.headers["preference-applied"] == "return=OperationOutcome"


@pytest.mark.parametrize("wanted", ["minimal", "everything"])
def test_another_preference_is_answered_without_a_body(
    lab: Integrator, path: str, wanted: str
) -> None:
    answer = update(lab, path, Prefer=f"return={wanted}")

    assert (answer.status, "preference-applied" in answer.headers) == (204, False)


@pytest.mark.parametrize(("scope", "status"), [("u", 204), ("ru", 200)])
def test_the_version_is_shown_only_to_a_client_that_may_read_it(
    strict_service: RunningService, scope: str, status: int
) -> None:
    owner = strict_service.integrator(scopes=("system/*.cruds",))
    lab = strict_service.another_client(owner.tenant, scopes=(f"system/DiagnosticReport.{scope}",))

    answer = update(lab, register(owner), Prefer="return=representation")

    assert answer.status == status


@pytest.mark.parametrize(("letters", "status"), [("u", 403), ("s", 403), ("us", 404)])
def test_a_condition_needs_the_right_to_search_too(
    strict_service: RunningService, letters: str, status: int
) -> None:
    lab = strict_service.integrator(scopes=(f"system/DiagnosticReport.{letters}",))

    assert update(lab, f"{REPORTS}?identifier={SYSTEM}|none").status == status


# Conditional updates.


def test_the_one_report_that_matches_is_updated(lab: Integrator) -> None:
    value = uuid4().hex
    path = register(lab, value)

    answer = update(lab, f"{REPORTS}?identifier={SYSTEM}|{value}")

    assert (answer.status, lab.get(path).json["conclusion"]) == (204, "Corrected")


def test_a_condition_without_a_match_is_refused(lab: Integrator) -> None:
    answer = update(lab, f"{REPORTS}?identifier={SYSTEM}|none")

    assert (answer.status, answer.problems) == (404, ["no-match"])
    assert answer.issues[0]["diagnostics"] == "no DiagnosticReport matches the condition"


def test_a_condition_with_several_matches_is_refused(lab: Integrator) -> None:
    paths = [register(lab) for _ in range(2)]

    answer = update(lab, f"{REPORTS}?status=final")

    assert (answer.status, answer.problems) == (412, ["several-matches"])
    assert {lab.get(path).headers["etag"] for path in paths} == {'W/"1"'}


def test_a_condition_finds_nothing_of_another_tenant(service: RunningService) -> None:
    value = uuid4().hex
    register(service.integrator(), value)

    answer = update(service.integrator("Other"), f"{REPORTS}?identifier={SYSTEM}|{value}")

    assert answer.status == 404


# Members, and quotas.


def test_a_result_is_not_corrected_alone(lab: Integrator) -> None:
    lab.register(panel(uuid4().hex, result("r1")))
    member = lab.get("/fhir/r4/Observation").json["entry"][0]["resource"]["id"]

    answer = lab.patch(f"/fhir/r4/Observation/{member}", {"resourceType": "Observation"})

    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose tenants may store little."""
    config = Config(quotas=QuotasConfig(tenant_stored_bytes=8_000))
    with RunningService(tmp_path_factory.mktemp("narrow"), config=config) as service:
        yield service


def test_a_tenant_that_may_store_no_more_cannot_update(narrow: RunningService) -> None:
    lab = narrow.integrator()
    path = register(lab)
    body = {"resourceType": "DiagnosticReport", "conclusion": "x y " * 2_000}

    answer = lab.patch(path, body)

    assert (answer.status, answer.problems) == (403, ["storage-quota-used-up"])
    assert lab.get(path).headers["etag"] == 'W/"1"'


def test_an_update_counts_in_what_a_tenant_stores(narrow: RunningService) -> None:
    lab = narrow.integrator()
    path = register(lab)
    body = {"resourceType": "DiagnosticReport", "conclusion": "x y " * 400}

    found = {lab.patch(path, body | {"status": "amended"}).status for _ in range(6)}

    assert 403 in found


@pytest.mark.parametrize(
    ("prefer", "status"),
    [
        ("return=minimal", 204),
        ("return=nothing", 204),
        ("return=representation", 200),
        ("return=OperationOutcome", 200),
    ],
)
def test_an_update_is_recorded_with_the_status_of_its_answer(
    lab: Integrator, path: str, prefer: str, status: int
) -> None:
    answer = update(lab, path, Prefer=prefer)

    record = records_of_tenant(lab)[-1]
    assert (record["action"], record["status"]) == ("update", status)
    assert answer.status == status


def test_an_update_that_may_show_nothing_is_recorded_as_such(
    strict_service: RunningService,
) -> None:
    owner = strict_service.integrator(scopes=("system/*.cruds",))
    lab = strict_service.another_client(owner.tenant, scopes=("system/*.u",))

    answer = update(lab, register(owner), Prefer="return=representation")

    assert (answer.status, records_of_tenant(owner)[-1]["status"]) == (204, 204)
