"""Pages of much content: others have the event loop in the meantime."""

from __future__ import annotations

import pytest

from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import organization, parameters, patient, report
from tests.console.crowd import add_crowd
from tests.console.tabs import Tab
from tests.console.turns import measured

REPORTS = "/console/resources/DiagnosticReport"
MOST_MILLISECONDS = 20
PERSONS = 150
EXTENSIONS = [
    {"url": f"http://x.example/{number}", "valueString": f"<{number}>"} for number in range(6_000)
]


@pytest.fixture
def large(lab: Integrator) -> str:
    """The id of a report with thousands of elements, in two versions."""
    body = parameters(
        patient=patient(),
        organization=organization(),
        diagnosticReport=report("L-1", status="preliminary", extension=EXTENSIONS),
    )
    answer = lab.register(body)
    assert answer.status == 201, answer.body
    id_: str = answer.json["parameter"][0]["resource"]["id"]
    change = {"resourceType": "DiagnosticReport", "status": "final"}
    headers = {"Content-Type": "application/merge-patch+json", "If-Match": 'W/"1"'}
    changed = lab.request("PATCH", f"/fhir/r4/DiagnosticReport/{id_}", change, headers=headers)
    assert changed.status == 204, changed.body
    return id_


@pytest.mark.parametrize(("path", "shown"), [("", "x.example/5999"), ("/history", "preliminary")])
def test_a_large_page_leaves_the_event_loop_to_others(
    path: str, shown: str, large: str, console: RunningService, tab: Tab
) -> None:
    tab.get(f"{REPORTS}/{large}{path}")  # what is read or compiled once

    with measured(console) as turns:
        page = tab.get(f"{REPORTS}/{large}{path}")

    assert page.status == 200
    assert shown in page.body.decode()
    assert turns.longest < MOST_MILLISECONDS


def test_a_list_of_persons_leaves_the_event_loop_to_others(
    console: RunningService, lab: Integrator, operator: Tab
) -> None:
    add_crowd(console, lab.tenant, PERSONS)
    path = f"/console/operations/clients?tenant={lab.tenant.id}"
    operator.get(path)

    with measured(console) as turns:
        page = operator.get(path)

    assert f"{PERSONS + 1} in all" in page.body.decode()
    assert turns.longest < MOST_MILLISECONDS
