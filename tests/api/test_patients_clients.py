"""Readers that know only FHIR: an identifier leads to everything of a person (ADR 26)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fhirclient.models.diagnosticreport import DiagnosticReport
from fhirclient.models.observation import Observation
from fhirclient.models.patient import Patient
from fhirpy import SyncFHIRClient

from fhirpub.testing.service import Integrator, RunningService
from tests.api.test_fhirclient import server_for
from tests.api.test_patients import CONFIG, NATIONAL, identified, of
from tests.panels import result, specimen

IDENTIFIER = f"{NATIONAL}|1"


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("clients")
    with RunningService(folder, config=CONFIG, store_url=store_url("clients")) as running:
        yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    """A laboratory with two reports of one person and one of another."""
    lab = service.integrator()
    person = identified((NATIONAL, "1"))
    for value in ("R-1", "R-2"):
        lab.register(of(value, person, result("hb"), result("wbc", 6.1), specimen()))
    lab.register(of("R-3", identified((NATIONAL, "2")), result("hb")))
    return lab


def test_fhirpy_finds_everything_of_a_person(service: RunningService, lab: Integrator) -> None:
    fhir = SyncFHIRClient(f"{service.base_url}/fhir/r4", authorization=f"Bearer {lab.token}")

    (patient,) = fhir.resources("Patient").search(identifier=IDENTIFIER).fetch_all()
    numbers = {
        name: len(fhir.resources(name).search(patient=patient["id"]).fetch_all())
        for name in ("DiagnosticReport", "Observation", "Specimen")
    }
    report, _other = fhir.resources("DiagnosticReport").search(patient=patient["id"]).fetch_all()

    assert numbers == {"DiagnosticReport": 2, "Observation": 4, "Specimen": 2}
    assert report["subject"].to_resource() == patient
    (named,) = fhir.resources("Patient").search(name="lop", identifier=IDENTIFIER).fetch()
    assert named["id"] == patient["id"]


def test_fhirclient_finds_everything_of_a_person(service: RunningService, lab: Integrator) -> None:
    with server_for(service, lab.token) as server:
        (patient,) = Patient.where({"identifier": IDENTIFIER}).perform_resources_iter(server)
        of_patient = {"patient": patient.id}
        reports = [*DiagnosticReport.where(of_patient).perform_resources_iter(server)]
        results = [*Observation.where(of_patient).perform_resources_iter(server)]
        read = Patient.read_from(reports[0].subject.reference, server)

    assert (len(reports), len(results)) == (2, 4)
    assert read.as_json() == patient.as_json()
