"""Results are found by new search parameters after a restart (ADR 19)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fhirpub.testing.service import Integrator, RunningService
from tests.panels import panel, result, specimen

BASE = "/fhir/r4"
PERSON = {"resourceType": "Practitioner", "id": "d1", "name": [{"family": "Ashdown"}]}
QUERIES = (
    "Observation?code=718-7",
    "Observation?patient.identifier=AAB123456",
    "Observation?value-quantity=13.2||g/dL",
    "Specimen?collected=2026-11-20",
    "Practitioner?name=ash",
    "DiagnosticReport?result:missing=false",
)


def totals(lab: Integrator) -> list[int]:
    return [lab.get(f"{BASE}/{query}").json["total"] for query in QUERIES]


def test_values_of_members_are_taken_again(
    tmp_path: Path, store_url: Callable[[str], str]
) -> None:
    url = store_url("reindexed")
    with RunningService(tmp_path, store_url=url) as service:
        lab = service.integrator()
        led_to = [{"reference": "Practitioner/d1"}]
        body = panel("R-1", result("hb"), specimen(), PERSON, resultsInterpreter=led_to)
        assert lab.register(body).status == 201
        store = service.services.store
        for tenant, version in service.call(store.scan()):
            for one in (version, *version.members):
                service.call(store.replace_search(tenant, one.id, one.version, b"[]"))
        service.call(store.put_search_rules(""))
        assert totals(lab) == [0] * len(QUERIES)

    with RunningService(tmp_path, store_url=url) as service:
        assert totals(service.another_client(lab.tenant)) == [1] * len(QUERIES)
