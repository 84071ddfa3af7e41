"""Patients over HTTP: the newest statement, older ones, histories, searches and scopes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

import pytest

from fhirpub.errors import NotPermitted
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import register_body
from tests.unit.web.handlers.asking import Asked, on_request


def register(lab: Integrator) -> str:
    """Register a report; return the path of its patient."""
    location = lab.register(register_body(uuid4().hex)).headers["location"]
    reference = lab.get(location).json["subject"]["reference"]
    return f"/fhir/r4/{reference}"


@pytest.fixture
def path(lab: Integrator) -> str:
    return register(lab)


@pytest.mark.parametrize("suffix", ["", "/_history/1"])
def test_a_patient_is_read_with_its_tag(lab: Integrator, path: str, suffix: str) -> None:
    answer = lab.get(path + suffix)

    assert (answer.status, answer.json["resourceType"]) == (200, "Patient")
    assert answer.json["id"] == path.rpartition("/")[2]
    assert answer.headers["etag"].startswith('W/"')


@pytest.mark.parametrize("suffix", ["/_history/2", "/_history/0"])
def test_a_statement_that_was_not_made_is_not_found(
    lab: Integrator, path: str, suffix: str
) -> None:
    assert lab.get(path + suffix).status == 404


def test_the_statements_are_listed(lab: Integrator, path: str) -> None:
    answer = lab.get(f"{path}/_history")

    assert [entry["resource"]["id"] for entry in answer.json["entry"]] == [path.rpartition("/")[2]]


def test_a_tag_is_enough_to_spare_a_patient_and_a_date_is_not(lab: Integrator, path: str) -> None:
    first = lab.get(path)

    found = [
        lab.get(path, If_None_Match=first.headers["etag"]).status,
        lab.get(path, If_None_Match='W/"x"').status,
        lab.get(path, If_Modified_Since="Fri, 01 Jan 2999 00:00:00 GMT").status,
    ]

    assert found == [304, 200, 200]


@pytest.mark.parametrize("suffix", ["", "/_history/1", "/_history"])
def test_a_patient_of_another_tenant_is_not_found(
    service: RunningService, path: str, suffix: str
) -> None:
    assert service.integrator("Other").get(path + suffix).status == 404


def test_patients_are_found_by_url_and_by_form(lab: Integrator, path: str) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    found = [
        lab.get("/fhir/r4/Patient?family=L%C3%B3pez"),
        lab.request("POST", "/fhir/r4/Patient/_search", b"family=L%C3%B3pez", form),
    ]

    for answer in found:
        (entry,) = answer.json["entry"]
        assert entry["resource"]["id"] == path.rpartition("/")[2]


@pytest.mark.parametrize(
    ("scope", "read", "listed", "searched"),
    [
        ("system/Patient.r", 200, 200, 403),
        ("system/DiagnosticReport.r", 200, 200, 403),
        ("system/Patient.s", 403, 403, 200),
        ("system/DiagnosticReport.s", 403, 403, 200),
        ("system/Observation.rs", 403, 403, 403),
    ],
)
def test_a_patient_is_read_with_the_right_to_it_or_to_what_it_came_with(
    strict_service: RunningService, scope: str, read: int, listed: int, searched: int
) -> None:
    owner = strict_service.integrator(scopes=("system/*.cruds",))
    path = register(owner)
    lab = strict_service.another_client(owner.tenant, scopes=(scope,))

    assert [lab.get(path + suffix).status for suffix in ("", "/_history/1")] == [read] * 2
    assert lab.get(f"{path}/_history").status == listed
    assert lab.get("/fhir/r4/Patient").status == searched


@pytest.mark.parametrize(
    ("scope", "may"),
    [
        ("system/DiagnosticReport.r", True),
        ("system/Patient.r", True),
        ("system/Encounter.r", False),
    ],
)
@pytest.mark.parametrize("suffix", ["", "/_history"])
def test_a_patient_is_shown_only_with_the_right_to_the_type_of_its_statement(
    lab: Integrator, path: str, scope: str, suffix: str, *, may: bool
) -> None:
    async def use(one: Asked) -> int:
        handler = cast("Any", one.handler)
        handler.caller = replace(handler.caller, scopes=(scope,), scopes_count=True)
        await handler.get(path.rpartition("/")[2])
        return one.exchange.status

    with nullcontext() if may else pytest.raises(NotPermitted):
        assert on_request(lab, use, path=path + suffix) == 200


@pytest.mark.parametrize(
    ("query", "count"),
    [("", 1), ("?_since=2020-01-01T00:00:00Z", 1), ("?_since=2999-01-01T00:00:00Z", 0)],
)
def test_the_statements_about_a_patient_are_those_that_are_asked_for(
    lab: Integrator, path: str, query: str, count: int
) -> None:
    assert len(lab.get(f"{path}/_history{query}").json.get("entry", [])) == count
