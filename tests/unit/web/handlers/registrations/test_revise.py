"""Revisions over HTTP: their conditions, what they need, and what they answer."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.audit_trail import records_of_tenant
from tests.bodies import register_body
from tests.panels import panel, result
from tests.unit.web.handlers.asking import REPORTS, named, path_of

UNKNOWN = f"{REPORTS}/00000000-0000-4000-8000-000000000000"


def registered(lab: Integrator, value: str, *results: dict[str, Any]) -> str:
    answer = lab.register(panel(value, *results))
    assert answer.status == 201, answer.body
    return path_of(answer)


def revise(lab: Integrator, path: str, body: Any, **headers: str) -> Answer:
    given = {"If-Match": "*"} | named(headers)
    return lab.request("POST", f"{path}/$revise", body, {k: v for k, v in given.items() if v})


@pytest.fixture
def path(lab: Integrator, value: str) -> str:
    return registered(lab, value, result("r1", 1.0))


def test_a_revision_is_the_next_version_of_the_report_and_its_results(
    lab: Integrator, value: str, path: str
) -> None:
    answer = revise(lab, path, panel(value, result("r1", 2.0)))

    assert (answer.status, answer.json["resourceType"]) == (200, "Parameters")
    assert answer.headers["etag"] == 'W/"2"'
    assert answer.headers["location"] == f"{path}/_history/2"
    found = lab.get("/fhir/r4/Observation").json["entry"][0]["resource"]
    assert found["valueQuantity"]["value"] == 2.0


@pytest.mark.parametrize(("prefer", "status"), [("minimal", 204), ("representation", 200)])
def test_a_revision_is_recorded_with_the_status_of_its_answer(
    lab: Integrator, value: str, path: str, prefer: str, status: int
) -> None:
    answer = revise(lab, path, panel(value, result("r1", 2.0)), Prefer=f"return={prefer}")

    record = records_of_tenant(lab)[-1]
    assert (answer.status, record["action"], record["status"]) == (status, "revise", status)


def test_the_same_content_makes_no_version(lab: Integrator, value: str, path: str) -> None:
    answer = revise(lab, path, panel(value, result("r1", 1.0)))

    assert (answer.status, answer.headers["etag"]) == (200, 'W/"1"')
    assert lab.get(path).headers["etag"] == 'W/"1"'


def test_a_revision_must_name_the_version_that_it_replaces(
    lab: Integrator, value: str, path: str
) -> None:
    answer = revise(lab, path, panel(value, result("r1", 2.0)), If_Match="")

    assert (answer.status, answer.problems) == (428, ["precondition-required"])


@pytest.mark.parametrize(("tag", "status"), [('W/"1"', 200), ('W/"2"', 412)])
def test_a_revision_of_another_version_is_refused(
    lab: Integrator, value: str, path: str, tag: str, status: int
) -> None:
    answer = revise(lab, path, panel(value, result("r1", 2.0)), If_Match=tag)

    assert answer.status == status


def test_what_is_not_there_is_not_found_whatever_else_is_wrong(lab: Integrator) -> None:
    assert revise(lab, UNKNOWN, b"{", If_Match="").status == 404


def test_a_report_of_another_tenant_is_not_found(
    service: RunningService, value: str, path: str
) -> None:
    assert revise(service.integrator("Other"), path, panel(value)).status == 404


def test_a_body_that_is_wrong_is_refused(lab: Integrator, value: str, path: str) -> None:
    answer = revise(lab, path, panel(value, result("r1"), status="nonsense"))

    assert (answer.status, lab.get(path).headers["etag"]) == (400, 'W/"1"')


def test_another_identifier_is_refused(lab: Integrator, path: str) -> None:
    assert revise(lab, path, register_body(uuid4().hex)).status == 422


def test_a_large_revision_is_made(lab: Integrator, value: str, path: str) -> None:
    body = panel(value, result("r1", 1.0), conclusion="x y " * 20_000)

    assert (revise(lab, path, body).status, lab.get(path).headers["etag"]) == (200, 'W/"2"')


def test_a_minimal_answer_has_no_body(lab: Integrator, value: str, path: str) -> None:
    answer = revise(lab, path, panel(value, result("r1", 2.0)), Prefer="return=minimal")

    assert (answer.status, answer.body, answer.headers["etag"]) == (204, b"", 'W/"2"')


@pytest.mark.parametrize(("scope", "status"), [("u", 200), ("cr", 403)])
def test_a_revision_needs_the_right_to_update(
    strict_service: RunningService, value: str, scope: str, status: int
) -> None:
    owner = strict_service.integrator(scopes=("system/*.cruds",))
    path = registered(owner, value, result("r1", 1.0))
    lab = strict_service.another_client(owner.tenant, scopes=(f"system/*.{scope}",))

    assert revise(lab, path, panel(value, result("r1", 2.0))).status == status
