"""Readers that know only FHIR: a patient's id leads to all of a report (fhirpy, fhirclient)."""

from __future__ import annotations

from typing import Any

import pytest
from fhirclient.models.diagnosticreport import DiagnosticReport
from fhirclient.models.observation import Observation
from fhirclient.models.specimen import Specimen
from fhirpy import SyncFHIRClient

from fhirpub.testing.service import Integrator, RunningService
from tests.api.test_fhirclient import server_for
from tests.panels import panel, result, specimen

PLATELETS = {"text": "plt", "coding": [{"system": "http://loinc.org", "code": "777-3"}]}


@pytest.fixture
def patient(lab: Integrator) -> str:
    """The id of the patient of one of two reports."""
    blood: dict[str, Any] = {"specimen": {"reference": "Specimen/blood"}}
    results = (result("hb", **blood), result("plt", 48, code=PLATELETS, **blood))
    lab.register(panel("other", *results, specimen()))
    answer = lab.register(panel("R-1", *results, specimen()))
    reference: str = answer.json["parameter"][0]["resource"]["subject"]["reference"]
    return reference.partition("/")[2]


def test_fhirpy_finds_all_of_a_report_from_the_id_of_its_patient(
    service: RunningService, lab: Integrator, patient: str
) -> None:
    fhir = SyncFHIRClient(f"{service.base_url}/fhir/r4", authorization=f"Bearer {lab.token}")

    found = fhir.resources("Observation").search(patient=patient).fetch_all()
    (platelets,) = (
        fhir.resources("Observation").search(patient=patient, value_quantity__gt=40).fetch()
    )
    (report,) = fhir.resources("DiagnosticReport").search(result=platelets.to_reference()).fetch()
    (blood,) = fhir.resources("Specimen").search(patient=patient).fetch()
    of_report = [reference.to_resource() for reference in report["result"]]

    assert sorted(one["code"]["text"] for one in found) == ["hb", "plt"]
    assert platelets["code"]["text"] == "plt"
    assert report["identifier"][0]["value"] == "R-1"
    assert [one["code"]["text"] for one in of_report] == ["hb", "plt"]
    assert platelets["specimen"].to_resource() == blood


def test_fhirclient_finds_all_of_a_report_from_the_id_of_its_patient(
    service: RunningService, lab: Integrator, patient: str
) -> None:
    with server_for(service, lab.token) as server:
        search = {"patient": patient, "code": "http://loinc.org|777-3"}
        (platelets,) = Observation.where(search).perform_resources_iter(server)
        of_patient = DiagnosticReport.where({"patient": patient})
        everything = list(of_patient.include("result").perform_resources_iter(server))
        blood = Specimen.read_from(platelets.specimen.reference, server)

    (report,) = [one for one in everything if isinstance(one, DiagnosticReport)]
    results = [one for one in everything if isinstance(one, Observation)]
    assert platelets.valueQuantity.value == 48
    assert {one.reference for one in report.result} == {one.relativePath() for one in results}
    assert platelets.relativePath() in {one.reference for one in report.result}
    assert blood.type.text == "Venous blood"
