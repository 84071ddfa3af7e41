"""The SMART client for Python, whose models refuse elements that R4 does not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fhirclient.client import FHIRClient
from fhirclient.models.bundle import Bundle
from fhirclient.models.capabilitystatement import CapabilityStatement
from fhirclient.models.diagnosticreport import DiagnosticReport
from fhirclient.models.operationoutcome import OperationOutcome
from fhirclient.models.parameters import Parameters
from fhirclient.models.patient import Patient
from fhirclient.server import (
    FHIRNotFoundException,
    FHIRServer,
    FHIRUnauthorizedException,
)
from requests import HTTPError

from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import SYSTEM, document, register_body, self_contained

TYPE = "DiagnosticReport"


@contextmanager
def server_for(service: RunningService, token: str) -> Iterator[FHIRServer]:
    """Open the client's server with a token; by default it logs in users, or uses a key."""
    auth = {"app_id": "tests", "access_token": token}
    kept = {"base_uri": f"{service.base_url}/fhir/r4/", "auth_type": "oauth2", "auth": auth}
    server = FHIRClient(state={"app_id": "tests", "server": kept}).server
    with server.session:
        yield server


@pytest.fixture
def server(service: RunningService, lab: Integrator) -> Iterator[FHIRServer]:
    with server_for(service, lab.token) as opened:
        yield opened


def register(server: FHIRServer, value: str, **changes: Any) -> DiagnosticReport:
    """Register with the client's models; return the report from the response."""
    body = Parameters(register_body(value, **changes)).as_json()
    answer = Parameters(server.post_json(f"{TYPE}/$register", body).json())
    return answer.parameter[0].resource


def test_it_is_ready_with_a_token(server: FHIRServer) -> None:
    assert server.ready


def test_it_understands_the_statement(server: FHIRServer) -> None:
    statement = CapabilityStatement.read_from("metadata", server)

    declared = {item.type: item for item in statement.rest[0].resource}
    assert {"create", "patch", "search-type"} <= {item.code for item in declared[TYPE].interaction}


def test_it_registers_and_reads(server: FHIRServer) -> None:
    registered = register(server, "smart")

    read = DiagnosticReport.read(registered.id, server)
    of = Patient.read_from(read.subject.reference, server)

    assert read.presentedForm[0].as_json() == document()
    assert (of.name[0].family, of.birthDate.isostring) == ("López", "1980-02-29")


def test_it_creates(server: FHIRServer) -> None:
    created = DiagnosticReport(DiagnosticReport(self_contained("created")).create(server))

    assert DiagnosticReport.read(created.id, server).identifier[0].value == "created"


def test_it_reads_versions_and_their_history(server: FHIRServer) -> None:
    registered = register(server, "versions")

    first = DiagnosticReport.read_from(f"{registered.relativePath()}/_history/1", server)
    history = Bundle.read_from(f"{registered.relativePath()}/_history", server)

    assert (first.status, history.type, history.total) == ("final", "history", 1)


def test_it_finds_by_several_parameters(server: FHIRServer) -> None:
    wanted = register(server, "wanted")
    register(server, "older", effectiveDateTime="2025-11-20T10:00:00Z", status="unknown")

    search = DiagnosticReport.where(
        {
            "status": {"$or": ["amended", "final"]},
            "date": {"$and": ["ge2026-11-20", "lt2026-11-21"]},
            "patient.identifier": "AAB123456",
            "performer": {"$missing": "false"},
            "identifier": f"{SYSTEM}|wanted",
        }
    )

    assert [item.id for item in search.perform_resources_iter(server)] == [wanted.id]


def test_it_gets_the_patients_with_the_reports(server: FHIRServer) -> None:
    register(server, "included")

    found = list(DiagnosticReport.where({}).include("subject").perform_resources_iter(server))

    assert [item.resource_type for item in found] == [TYPE, "Patient"]


def test_it_follows_the_pages(server: FHIRServer) -> None:
    registered = {register(server, f"page-{number}").id for number in range(7)}

    pages = list(DiagnosticReport.where({"_count": "3"}).perform_iter(server))

    assert [len(page.entry) for page in pages] == [3, 3, 1]
    assert {item.resource.id for page in pages for item in page.entry} == registered


def test_its_update_by_put_is_refused_with_the_methods_there_are(server: FHIRServer) -> None:
    whole = DiagnosticReport.read(register(server, "put").id, server)

    with pytest.raises(HTTPError) as refused:
        whole.update()

    assert refused.value.response is not None
    assert refused.value.response.status_code == 405
    assert "PATCH" in refused.value.response.headers["Allow"]


def test_it_understands_refusals(server: FHIRServer, service: RunningService) -> None:
    with pytest.raises(FHIRNotFoundException):
        DiagnosticReport.read("00000000-0000-4000-8000-000000000000", server)
    with server_for(service, "nobody") as stranger, pytest.raises(FHIRUnauthorizedException):
        DiagnosticReport.read("00000000-0000-4000-8000-000000000000", stranger)
    with pytest.raises(HTTPError) as refused:
        register(server, "refused", status="amended")
    assert refused.value.response is not None
    outcome = OperationOutcome(refused.value.response.json())
    assert outcome.issue[0].expression == ["Parameters.parameter[2].resource.status"]
