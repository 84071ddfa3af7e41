"""What responses leave in the audit trail: names, patients, and under which settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import orjson
import pytest

from fhirpub.config.audit import AuditConfig
from fhirpub.config.settings import Config
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.testing.store_contract import a_version
from fhirpub.web.admission.loop_turns import LoopTurns
from tests.audit_trail import records_of_tenant
from tests.bodies import document, register_body
from tests.log_lines import caught_lines
from tests.unit.web.handlers.asking import REPORTS, asked, running

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
NOWHERE = "00000000-0000-4000-8000-000000000000"
TRACE = f"00-{'a' * 32}-{'b' * 16}-01"


def register(lab: Integrator, value: str = "", **changes: Any) -> dict[str, Any]:
    answer = lab.register(register_body(value or uuid4().hex, **changes))
    assert answer.status == 201, answer.body
    resource: dict[str, Any] = lab.get(answer.headers["location"]).json
    return resource


def test_a_write_is_recorded_once_with_its_version_and_its_patient(lab: Integrator) -> None:
    report = register(lab)

    first = records_of_tenant(lab)[0]

    assert (first["action"], first["status"]) == ("register", 201)
    assert first["what"] == [f"DiagnosticReport/{report['id']}/_history/1"]
    assert first["patients"] == [report["subject"]["reference"]]
    assert [record["action"] for record in records_of_tenant(lab)] == ["register", "vread"]


def test_a_record_names_the_client_its_address_and_the_request(lab: Integrator) -> None:
    answer = lab.get(REPORTS, X_Request_Id="asked-1")

    (record,) = records_of_tenant(lab)

    assert answer.headers["x-request-id"] == record["request"] == "asked-1"
    assert (record["client"], record["address"]) == (lab.client_id, "127.0.0.1")
    assert record["environment"] == "sandbox"


def test_a_repetition_is_recorded_with_the_version_that_it_repeats(lab: Integrator) -> None:
    value = uuid4().hex
    register(lab, value)
    register(lab, value)

    first, _, second, _ = records_of_tenant(lab)

    assert (second["what"], second["patients"]) == (first["what"], first["patients"])


def test_a_refusal_names_what_was_asked_for(lab: Integrator) -> None:
    lab.get(f"{REPORTS}/{NOWHERE}")

    (record,) = records_of_tenant(lab)

    assert (record["status"], record["what"]) == (404, [f"DiagnosticReport/{NOWHERE}"])


@pytest.mark.parametrize("name", ["Ana%20P", "a" * 65, "a_b"])
def test_what_is_no_id_is_not_named(lab: Integrator, name: str) -> None:
    lab.get(f"{REPORTS}/{name}")

    assert "what" not in records_of_tenant(lab)[0]


@pytest.mark.parametrize("name", ["a" * 64, "a.b-C:9"])
def test_what_may_be_an_id_is_named(lab: Integrator, name: str) -> None:
    lab.get(f"{REPORTS}/{name}")

    assert records_of_tenant(lab)[0]["what"] == [f"DiagnosticReport/{name}"]


def test_the_line_of_a_refusal_names_the_resource_in_the_path(lab: Integrator) -> None:
    with caught_lines() as caught:
        name = uuid4().hex
        lab.get(f"{REPORTS}/{NOWHERE}/_history/7", X_Request_Id=name)
        line = caught.of(name)

    assert line["resource"] == f"DiagnosticReport/{NOWHERE}"


def test_an_endpoint_is_named_by_its_kind(lab: Integrator) -> None:
    lab.request("POST", f"/webhooks/v1/endpoints/{NOWHERE}/pause")

    names = [record["what"] for record in records_of_tenant(lab)]

    assert names == [[f"Endpoint/{NOWHERE}"]] * 2


def test_a_patient_that_is_read_comes_first_among_the_patients(lab: Integrator) -> None:
    reference = register(lab)["subject"]["reference"]
    lab.get(f"/fhir/r4/{reference}")

    assert records_of_tenant(lab)[-1]["patients"] == [reference]


def test_a_patient_that_refers_to_another_is_named_before_that_one(lab: Integrator) -> None:
    body = b'{"resourceType":"Patient","link":[{"other":{"reference":"Patient/b"}}]}'
    version = replace(a_version(), type="Patient", id="a", version=2, body=body)

    async def noted() -> tuple[Any, Any]:
        async with asked(lab, "GET", f"{REPORTS}/{NOWHERE}") as one:
            await one.handler.note_version(version)
            return one.handler._what, one.handler._patients

    assert running(lab).call(noted()) == (
        ("Patient/a/_history/2",),
        ("Patient/a", "Patient/b"),
    )


def test_a_search_names_what_it_found_and_each_patient_once(lab: Integrator) -> None:
    found = [register(lab) for _ in range(2)]
    lab.get(f"{REPORTS}?_include=DiagnosticReport:subject")

    record = records_of_tenant(lab)[-1]

    patients = {report["subject"]["reference"] for report in found}
    assert {f"DiagnosticReport/{report['id']}" for report in found} <= {*record["what"]}
    assert sorted(record["patients"]) == sorted(patients)


def test_a_search_for_patients_names_them_as_patients(lab: Integrator) -> None:
    reference = register(lab)["subject"]["reference"]
    lab.get("/fhir/r4/Patient")

    record = records_of_tenant(lab)[-1]

    assert record["what"] == record["patients"] == [reference]


def test_patients_of_what_was_found_are_named_beside_those_that_were_found(
    lab: Integrator,
) -> None:
    found = [
        b'{"resourceType":"Patient","id":"a"}',
        b'{"resourceType":"DiagnosticReport","id":"r","subject":{"reference":"Patient/b"}}',
    ]

    async def noted() -> tuple[Any, Any]:
        async with asked(lab, "GET", REPORTS) as one:
            await one.handler.note_stored(found)
            return one.handler._what, one.handler._patients

    assert running(lab).call(noted()) == (
        ("Patient/a", "DiagnosticReport/r"),
        ("Patient/a", "Patient/b"),
    )


def test_a_change_that_was_announced_waits_for_a_turn_of_its_tenant(lab: Integrator) -> None:
    owners: list[str] = []

    class Noting(LoopTurns):
        async def turn(self, owner: str) -> None:
            owners.append(owner)

    async def status() -> int:
        services = replace(running(lab).services, loop_turns=Noting())
        path = f"/webhooks/v1/endpoints/{NOWHERE}"
        async with asked(lab, "DELETE", path, services=services) as one:
            one.handler.run()
            await one.exchange.wait_ended()
            return one.exchange.status

    assert running(lab).call(status()) == 404
    assert owners == [lab.tenant.id]


def test_a_search_is_recorded_with_its_query_and_its_form(lab: Integrator) -> None:
    lab.get(f"{REPORTS}?status=final")
    lab.request("POST", f"{REPORTS}/_search?status=final", b"_count=2", FORM)
    lab.request("POST", f"{REPORTS}/_search", b"_count=2", FORM)

    queries = [record["query"] for record in records_of_tenant(lab)]

    assert queries == ["status=final", "status=final&_count=2", "_count=2"]


def test_patients_are_found_in_a_large_resource_too(lab: Integrator) -> None:
    report = register(lab, conclusion="x " * 140_000)

    assert [record["patients"] for record in records_of_tenant(lab)] == [
        [report["subject"]["reference"]]
    ] * 2


def test_a_document_is_recorded_with_its_report_and_its_patient(lab: Integrator) -> None:
    report = register(lab, presentedForm=[document()])
    found = lab.get(f"{REPORTS}?_id={report['id']}").json["entry"][0]["resource"]
    url = found["presentedForm"][0]["url"]
    lab.get(url)

    record = records_of_tenant(lab)[-1]

    assert record["what"][0] == f"Binary/{url.rpartition('/')[2]}"
    assert record["what"][1] == f"DiagnosticReport/{report['id']}/_history/1"
    assert record["patients"] == [report["subject"]["reference"]]


def test_a_batch_leaves_the_records_of_its_entries_only(lab: Integrator) -> None:
    entries = [{"request": {"method": "GET", "url": f"DiagnosticReport/{NOWHERE}"}}]
    lab.request("POST", "/fhir/r4", {"resourceType": "Bundle", "type": "batch", "entry": entries})

    assert [record["action"] for record in records_of_tenant(lab)] == ["read"]


def test_a_batch_that_is_refused_as_a_whole_is_recorded(lab: Integrator) -> None:
    answer = lab.request("POST", "/fhir/r4", b"{")

    assert answer.status == 400
    assert [(one["action"], one["status"]) for one in records_of_tenant(lab)] == [("batch", 400)]


def test_a_change_of_an_endpoint_is_announced_and_recorded(lab: Integrator) -> None:
    added = lab.request(
        "POST", "/webhooks/v1/endpoints", {"url": "pull:a"}, {"Content-Type": "application/json"}
    )
    path = f"/webhooks/v1/endpoints/{added.json['id']}"
    lab.request("DELETE", path)
    name = f"Endpoint/{added.json['id']}"

    assert [(one["action"], one["status"], one.get("what")) for one in records_of_tenant(lab)] == [
        ("endpoint.create", 102, None),
        ("endpoint.create", 201, [name]),
        ("endpoint.delete", 102, [name]),
        ("endpoint.delete", 204, [name]),
    ]


def test_what_names_no_action_leaves_no_record(lab: Integrator) -> None:
    lab.get("/fhir/r4/metadata")
    lab.get("/fhir/r4/nowhere")

    assert records_of_tenant(lab) == []


def test_requests_without_a_token_are_counted_and_other_refusals_are_not(lab: Integrator) -> None:
    before = len(records_of_tenant(lab, ""))
    for _ in range(2):
        lab.service.request("GET", f"{REPORTS}/{NOWHERE}")
    lab.service.request("GET", "/fhir/r4/nowhere")

    (record,) = records_of_tenant(lab, "")[before:]

    assert (record["action"], record["status"], record["count"]) == ("unauthenticated", 401, 2)
    assert record["address"] == "127.0.0.1"


@pytest.mark.parametrize(("headers", "traced"), [({"Traceparent": TRACE}, True), ({}, False)])
def test_the_events_of_a_write_have_the_trace_of_its_request(
    lab: Integrator, headers: dict[str, str], *, traced: bool
) -> None:
    made = replace(a_version(), events=b'[{"type":"created"}]')

    async def events() -> Any:
        async with asked(lab, "POST", f"{REPORTS}/$register", headers) as one:
            return orjson.loads((await one.handler.audited(made)).events)

    wanted = {"type": "created", "traceparent": TRACE} if traced else {"type": "created"}
    assert running(lab).call(events()) == [wanted]


@pytest.mark.parametrize("headers", [{}, {"Traceparent": TRACE}], ids=["no trace", "a trace"])
@pytest.mark.parametrize("status", [200, 201])
def test_the_record_of_a_write_is_part_of_its_version(
    lab: Integrator, status: int, headers: dict[str, str]
) -> None:
    async def audit() -> Any:
        async with asked(lab, "POST", f"{REPORTS}/$register", headers) as one:
            return orjson.loads((await one.handler.audited(a_version(), status=status)).audit)

    record = running(lab).call(audit())
    assert (record["action"], record["status"]) == ("register", status)
    assert record["client"] == lab.client_id


# Settings.


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that records no reads."""
    config = Config(audit=AuditConfig(reads="off"))
    with RunningService(tmp_path_factory.mktemp("silent"), config=config) as service:
        yield service


def test_without_records_of_reads_writes_and_changes_are_recorded(silent: RunningService) -> None:
    lab = silent.integrator()
    register(lab)
    lab.request(
        "POST", "/webhooks/v1/endpoints", {"url": "pull:a"}, {"Content-Type": "application/json"}
    )

    found = [(record["action"], record["status"]) for record in records_of_tenant(lab)]

    assert found == [("register", 201), ("endpoint.create", 102), ("endpoint.create", 201)]


def test_without_a_trail_everything_is_answered(tmp_path_factory: pytest.TempPathFactory) -> None:
    config = Config(audit=AuditConfig(enabled=False))
    with RunningService(tmp_path_factory.mktemp("untrailed"), config=config) as service:
        lab = service.integrator()
        report = register(lab)

        found = [
            lab.get(REPORTS).status,
            lab.get(f"/fhir/r4/{report['subject']['reference']}").status,
            lab.service.request("GET", REPORTS).status,
            lab.request(
                *("POST", "/webhooks/v1/endpoints", {"url": "pull:a"}),
                {"Content-Type": "application/json"},
            ).status,
        ]

    assert found == [200, 200, 401, 201]
