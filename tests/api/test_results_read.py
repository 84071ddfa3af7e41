"""Results, specimens and orders of a report as resources that are read (ADR 24)."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.fhir.xml.reader import read_xml
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.message.content_negotiation import FHIR_XML
from tests.compositions import encounter, register_body
from tests.panels import addresses, panel, result, specimen

BASE = "/fhir/r4"
UNKNOWN = "00000000-0000-8000-8000-000000000000"


def practitioner(local_id: str = "dr", **changes: Any) -> dict[str, Any]:
    resource = {
        "resourceType": "Practitioner",
        "id": local_id,
        "identifier": [{"system": "https://registry.example/practitioners", "value": "5177"}],
        "name": [{"family": "Tillery", "given": ["Rowan"]}],
    }
    return resource | changes


@pytest.fixture
def members(lab: Integrator) -> list[str]:
    """The addresses of a result, a specimen and a practitioner of one report."""
    body = panel(
        "R-1",
        result("hb"),
        specimen(),
        practitioner(),
        resultsInterpreter=[{"reference": "Practitioner/dr"}],
    )
    return addresses(lab.register(body))


def test_each_is_read_by_its_address(lab: Integrator, members: list[str]) -> None:
    read = [lab.get(f"{BASE}/{address}") for address in members]

    assert [answer.status for answer in read] == [200, 200, 200]
    assert [f"{one.json['resourceType']}/{one.json['id']}" for one in read] == members
    assert {answer.headers["etag"] for answer in read} == {'W/"1"'}


def test_what_is_read_has_the_content_that_was_sent(lab: Integrator, members: list[str]) -> None:
    read = lab.get(f"{BASE}/{members[0]}").json

    assert read["valueQuantity"] == result("hb")["valueQuantity"]
    assert lab.get(f"{BASE}/{read['subject']['reference']}").json["resourceType"] == "Patient"


def test_a_version_is_read(lab: Integrator, members: list[str]) -> None:
    for address in members:
        latest = lab.get(f"{BASE}/{address}")

        assert lab.get(f"{BASE}/{address}/_history/1").body == latest.body
        assert lab.get(f"{BASE}/{address}/_history/2").status == 404


def test_one_that_is_unknown_is_not_found(lab: Integrator, members: list[str]) -> None:
    for name in ("Observation", "Specimen", "ServiceRequest", "Practitioner"):
        assert lab.get(f"{BASE}/{name}/{UNKNOWN}").status == 404
    assert lab.get(f"{BASE}/Specimen/{members[0].partition('/')[2]}").status == 404


def test_another_tenant_does_not_find_it(
    service: RunningService, lab: Integrator, members: list[str]
) -> None:
    other = service.integrator()

    for address in members:
        assert other.get(f"{BASE}/{address}").status == 404
        assert other.get(f"{BASE}/{address}/_history").status == 404


def test_it_is_read_in_xml(lab: Integrator, members: list[str]) -> None:
    for address in members:
        in_json = lab.get(f"{BASE}/{address}").json

        assert read_xml(lab.get(f"{BASE}/{address}", Accept=FHIR_XML).body) == in_json


def test_a_part_of_it_is_read(lab: Integrator, members: list[str]) -> None:
    found = lab.get(f"{BASE}/{members[0]}?_elements=valueQuantity").json
    short = lab.get(f"{BASE}/{members[0]}?_summary=true").json

    assert {"status", "code", "valueQuantity"} <= found.keys()
    assert "subject" not in found
    assert "SUBSETTED" in {tag["code"] for tag in short["meta"]["tag"]}


def test_who_has_the_version_gets_304(lab: Integrator, members: list[str]) -> None:
    for address in members:
        assert lab.get(f"{BASE}/{address}", If_None_Match='W/"1"').status == 304


def test_its_history_has_its_creation(lab: Integrator, members: list[str]) -> None:
    for address in members:
        history = lab.get(f"{BASE}/{address}/_history").json

        (entry,) = history["entry"]
        assert (history["total"], entry["fullUrl"][-len(address) :]) == (1, address)
        assert entry["request"] == {"method": "POST", "url": address.partition("/")[0]}
        assert entry["response"]["status"] == "201"


def test_the_history_of_its_type_has_it(lab: Integrator, members: list[str]) -> None:
    for address in members:
        history = lab.get(f"{BASE}/{address.partition('/')[0]}/_history").json

        assert [entry["fullUrl"][-len(address) :] for entry in history["entry"]] == [address]


def test_a_practitioner_is_read_whether_it_has_versions_or_not(tmp_path: Any) -> None:
    plugins = PluginsConfig(enabled=["diagnosticreport", "encounter"])
    with RunningService(tmp_path, config=Config(plugins=plugins)) as service:
        lab = service.integrator()
        interpreter = [{"reference": "Practitioner/dr"}]
        body = panel("R-1", practitioner(), resultsInterpreter=interpreter)
        (member,) = addresses(lab.register(body))
        location = lab.register(register_body(encounter("E-1")), type_name="Encounter")
        stored = lab.get(location.headers["location"]).json
        part = stored["participant"][1]["individual"]["reference"]

        for address in (member, part):
            assert lab.get(f"{BASE}/{address}").status == 200
            assert lab.get(f"{BASE}/{address}/_history/1").status == 200
        found = lab.get(f"{BASE}/Practitioner").json
        assert [entry["fullUrl"][-len(member) :] for entry in found["entry"]] == [member]


@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE"])
def test_it_is_not_changed_by_itself(lab: Integrator, members: list[str], method: str) -> None:
    for address in members:
        answer = lab.request(method, f"{BASE}/{address}", b"{}")

        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize("path", ["Specimen", "Specimen/$register", "Specimen/$validate"])
def test_it_is_not_registered_alone(lab: Integrator, path: str) -> None:
    assert lab.request("POST", f"{BASE}/{path}", b"{}").status in (404, 405)
