"""Results, specimens and orders of a report as resources that are found (ADR 24)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.testing.service import Integrator, RunningService
from tests.compositions import observation, register_body
from tests.panels import LOINC, RESULTS, addresses, panel, result, specimen

BASE = "/fhir/r4"
ALONE = "https://contract.example/observations"


def identified(local_id: str, number: str, **changes: Any) -> dict[str, Any]:
    kind = {"coding": [{"system": "urn:kinds", "code": "FILL"}]}
    return result(
        local_id, identifier=[{"type": kind, "system": RESULTS, "value": number}], **changes
    )


def found(lab: Integrator, query: str) -> list[str]:
    """Return the addresses of what a search finds, with handling=strict."""
    answer = lab.get(f"{BASE}/{query}", Prefer="handling=strict")
    assert answer.status == 200, answer.body
    bundle = answer.json
    assert bundle["total"] == len(bundle.get("entry", ()))
    return [
        f"{entry['resource']['resourceType']}/{entry['resource']['id']}"
        for entry in bundle.get("entry", ())
    ]


@pytest.fixture
def members(lab: Integrator) -> list[str]:
    """The addresses of two results, a specimen and an order of one report."""
    order = {
        "resourceType": "ServiceRequest",
        "id": "order",
        "status": "completed",
        "intent": "order",
        "code": {"coding": [{"system": "urn:orders", "code": "CBC"}]},
        "subject": {"reference": "Patient/p1"},
    }
    hemoglobin = identified(
        "hb",
        "417-HB",
        specimen={"reference": "Specimen/blood"},
        basedOn=[{"reference": "ServiceRequest/order"}],
    )
    other = result(
        "wbc",
        status="preliminary",
        code={"coding": [{"system": LOINC, "code": "6690-2"}]},
        effectiveDateTime="2026-11-19T10:00:00Z",
    )
    body = panel(
        "R-1",
        hemoglobin,
        other,
        specimen(),
        order,
        specimen=[{"reference": "Specimen/blood"}],
        basedOn=[{"reference": "ServiceRequest/order"}],
    )
    return addresses(lab.register(body))


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        (f"Observation?code={LOINC}|718-7", [0]),
        ("Observation?code=718-7,6690-2&_sort=date", [1, 0]),
        ("Observation?status=preliminary", [1]),
        ("Observation?date=2026-11-20", [0]),
        ("Observation?date=lt2026-11-20", [1]),
        (f"Observation?identifier={RESULTS}|417-HB", [0]),
        ("Observation?identifier=417-HB", [0]),
        (f"Observation?identifier={RESULTS}|", [0]),
        ("Observation?identifier=|417-HB", []),
        ("Observation?identifier:of-type=urn:kinds|FILL|417-HB", [0]),
        ("Observation?identifier:missing=true", [1]),
        ("Observation?identifier:not=417-HB", [1]),
        ("Observation?patient.identifier=AAB123456&code=718-7", [0]),
        ("Observation?subject:Patient.identifier=AAB123456&code=6690-2", [1]),
        ("Observation?specimen:missing=false", [0]),
        ("Specimen?collected=2026-11-20", [2]),
        ("Specimen?patient.identifier=AAB123456", [2]),
        ("ServiceRequest?code=CBC&status=completed", [3]),
    ],
)
def test_it_is_found_by_what_it_says(
    lab: Integrator, members: list[str], query: str, numbers: list[int]
) -> None:
    assert found(lab, query) == [members[number] for number in numbers]


def test_it_is_found_by_its_id_and_its_time(lab: Integrator, members: list[str]) -> None:
    for address in members:
        type_name, _, resource_id = address.partition("/")

        assert found(lab, f"{type_name}?_id={resource_id}") == [address]
        assert address in found(lab, f"{type_name}?_lastUpdated=gt2020")
        assert found(lab, f"{type_name}?_lastUpdated=lt2020") == []


def test_it_is_found_by_the_id_of_its_patient(lab: Integrator, members: list[str]) -> None:
    other = addresses(lab.register(panel("R-2", result("hb"))))
    patient = lab.get(f"{BASE}/{members[0]}").json["subject"]["reference"]
    plain = patient.partition("/")[2]

    assert {*found(lab, f"Observation?patient={plain}")} == {*members[:2]}
    assert {*found(lab, f"Observation?subject={patient}")} == {*members[:2]}
    assert found(lab, f"Specimen?patient={patient}") == [members[2]]
    assert other[0] not in found(lab, f"Observation?patient={plain}")


def test_it_is_found_by_what_it_refers_to(lab: Integrator, members: list[str]) -> None:
    assert found(lab, f"Observation?specimen={members[2]}") == [members[0]]
    assert found(lab, f"Observation?based-on={members[3]}") == [members[0]]


def test_its_report_is_found_by_it(lab: Integrator, members: list[str]) -> None:
    lab.register(panel("R-2", result("hb")))

    queries = (f"result={members[1]}", f"specimen={members[2]}", f"based-on={members[3]}")
    by_each = [found(lab, f"DiagnosticReport?{query}") for query in queries]

    assert by_each == [by_each[0]] * 3
    assert len(by_each[0]) == 1


def test_it_is_paged_and_counted(lab: Integrator) -> None:
    lab.register(panel("R-1", *(result(f"r{number}") for number in range(7))))

    first = lab.get(f"{BASE}/Observation?_count=3&_sort=_id").json
    second = lab.get(first["link"][1]["url"]).json
    third = lab.get(second["link"][1]["url"]).json

    ids = [entry["resource"]["id"] for page in (first, second, third) for entry in page["entry"]]
    assert (first["total"], len(ids), ids) == (7, 7, sorted(ids))
    assert lab.get(f"{BASE}/Observation?_summary=count").json["total"] == 7


def test_it_is_sorted_by_its_identifier(lab: Integrator) -> None:
    body = panel("R-1", identified("a", "2"), identified("b", "1"), result("c"))
    sent = addresses(lab.register(body))

    assert found(lab, "Observation?_sort=identifier") == [sent[1], sent[0], sent[2]]


def test_a_form_finds_it(lab: Integrator, members: list[str]) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    bundle = lab.request("POST", f"{BASE}/Observation/_search", b"code=718-7", form).json

    assert [entry["resource"]["id"] for entry in bundle["entry"]] == [members[0][-36:]]


def test_another_tenant_does_not_find_it(
    service: RunningService, lab: Integrator, members: list[str]
) -> None:
    other = service.integrator()

    for name in ("Observation", "Specimen", "ServiceRequest", "Practitioner"):
        assert found(other, name) == []


# Types that are also registered alone.


@pytest.fixture(scope="module")
def of_both(tmp_path_factory: pytest.TempPathFactory, store_url: Any) -> Iterator[RunningService]:
    """A service with observations that are registered alone, too."""
    config = Config(plugins=PluginsConfig(enabled=["diagnosticreport", "observation"]))
    folder = tmp_path_factory.mktemp("both")
    with RunningService(folder, config=config, store_url=store_url("both")) as running:
        yield running


@pytest.fixture
def both(of_both: RunningService) -> Integrator:
    return of_both.integrator()


def alone(lab: Integrator, value: str, **changes: Any) -> str:
    """Register an observation alone, and return its address."""
    body = register_body(observation(value, system=RESULTS, **changes))
    answer = lab.register(body, type_name="Observation")
    assert answer.status == 201, answer.body
    return f"Observation/{answer.json['parameter'][0]['resource']['id']}"


def test_an_identifier_finds_those_alone_and_those_of_reports(both: Integrator) -> None:
    one = alone(both, "417-HB")
    (other,) = addresses(both.register(panel("R-1", identified("hb", "417-HB"))))

    for value in (f"{RESULTS}|417-HB", "417-HB", f"{RESULTS}|"):
        assert {*found(both, f"Observation?identifier={value}")} == {one, other}


def test_a_patient_finds_those_alone_by_its_id(both: Integrator) -> None:
    one = alone(both, "1")
    both.register(panel("R-1", result("hb")))
    patient = both.get(f"{BASE}/{one}").json["subject"]["reference"]

    assert found(both, f"Observation?patient={patient}") == [one]


def test_a_conditional_update_means_the_one_that_was_registered_alone(both: Integrator) -> None:
    one = alone(both, "417-HB")
    (other,) = addresses(both.register(panel("R-1", identified("hb", "417-HB"))))
    change = {"resourceType": "Observation", "status": "amended"}

    answer = both.patch(f"{BASE}/Observation?identifier={RESULTS}|417-HB", change)

    assert answer.status == 204
    assert both.get(f"{BASE}/{one}").json["status"] == "amended"
    assert both.get(f"{BASE}/{other}").json["meta"]["versionId"] == "1"


def test_a_conditional_update_changes_no_member(both: Integrator) -> None:
    (member,) = addresses(both.register(panel("R-1", identified("hb", "417-HB"))))
    change = {"resourceType": "Observation", "status": "amended"}

    by_identifier = both.patch(f"{BASE}/Observation?identifier={RESULTS}|417-HB", change)
    by_code = both.patch(f"{BASE}/Observation?code=718-7", change)

    assert (by_identifier.status, by_code.status) == (404, 405)
    assert by_code.headers["allow"] == "GET, HEAD, OPTIONS"
    assert both.get(f"{BASE}/{member}").json["meta"]["versionId"] == "1"


def test_an_update_of_a_member_is_refused_with_what_to_do(both: Integrator) -> None:
    (member,) = addresses(both.register(panel("R-1", result("hb"))))
    change = {"resourceType": "Observation", "status": "amended"}

    answer = both.patch(f"{BASE}/{member}", change)

    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert "corrected together with" in answer.issues[0]["diagnostics"]


def test_a_conditional_create_does_not_take_a_member_for_it(both: Integrator) -> None:
    both.register(panel("R-1", identified("hb", "417-HB")))
    body = observation("417-HB", system=RESULTS, subject=None, performer=None)
    condition = {"If-None-Exist": f"identifier={RESULTS}|417-HB"}

    answer = both.request("POST", f"{BASE}/Observation", body, condition)

    assert answer.status != 200


def test_one_that_was_registered_alone_is_updated_as_before(both: Integrator) -> None:
    one = alone(both, "1")

    answer = both.patch(f"{BASE}/{one}", {"resourceType": "Observation", "status": "amended"})

    assert answer.status == 204
    methods = [
        entry["request"]["method"] for entry in both.get(f"{BASE}/{one}/_history").json["entry"]
    ]
    assert methods == ["PATCH", "POST"]


# Scopes.


@pytest.mark.parametrize(
    ("scope", "reads", "finds"),
    [
        ("system/Observation.r", 200, 403),
        ("system/Observation.s", 403, 200),
        ("system/DiagnosticReport.cruds", 403, 403),
        ("system/*.rs", 200, 200),
    ],
)
def test_its_type_needs_a_scope_of_its_own(
    strict: RunningService, scope: str, reads: int, finds: int
) -> None:
    publisher = strict.integrator(scopes=("system/DiagnosticReport.c",))
    (member,) = addresses(publisher.register(panel("R-1", result("hb"))))

    reader = strict.another_client(publisher.tenant, scopes=(scope,))

    paths = (member, f"{member}/_history", f"{member}/_history/1")
    assert {reader.get(f"{BASE}/{path}").status for path in paths} == {reads}
    lists = ("Observation", "Observation/_history")
    assert {reader.get(f"{BASE}/{path}").status for path in lists} == {finds}
