"""Each route leaves exactly its records in the audit trail, for each outcome (ADR 35)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from fhirpub.auth.clients import NewClient, add_client
from fhirpub.auth.tenants import add_tenant
from fhirpub.config.audit import AuditConfig
from fhirpub.config.settings import Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import StoreUnavailable
from fhirpub.fhir.times import parse_instant
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.service import Answer, Integrator, RunningService, Service
from tests.audit_trail import read_chain, records_of_tenant
from tests.bodies import register_body
from tests.faults.broken_stores import StoreWrapper, opening

REPORTS = "/fhir/r4/DiagnosticReport"
NOWHERE = f"{REPORTS}/00000000-0000-4000-8000-000000000000"
FORM = "application/x-www-form-urlencoded"
PATCH = {"resourceType": "DiagnosticReport", "status": "amended"}

Record = dict[str, Any]


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("audit")
    keys = folder / "keys"
    keys.write_text("A" * 43 + "=\n")
    webhooks = WebhooksConfig(
        allow_networks=["127.0.0.1/32"], dispatch_in_server=False, keys_file=str(keys)
    )
    config = Config(webhooks=webhooks)
    with RunningService(folder, config=config, store_url=store_url("audit")) as running:
        yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator(scopes=("system/*.cruds", "webhooks.read", "webhooks.write"))


def only_record(lab: Integrator) -> Record:
    (record,) = records_of_tenant(lab)
    return record


def last_records(lab: Integrator, count: int) -> list[Record]:
    """Return the records that came after those of registrations."""
    return records_of_tenant(lab)[-count:]


def register(lab: Integrator) -> dict[str, Any]:
    """Register a report; return it."""
    answer = lab.register(register_body(f"A-{uuid.uuid4()}"))
    assert answer.status == 201
    resources = [each["resource"] for each in answer.json["parameter"]]
    return next(each for each in resources if each["resourceType"] == "DiagnosticReport")


def test_a_registration_leaves_one_record_with_its_report_and_patient(lab: Integrator) -> None:
    report = register(lab)

    record = only_record(lab)

    assert record["action"] == "register"
    assert record["status"] == 201
    assert record["what"] == [f"DiagnosticReport/{report['id']}/_history/1"]
    assert record["patients"] == [report["subject"]["reference"]]
    assert record["client"] == lab.client_id
    assert record["environment"] == "sandbox"
    assert record["address"] == "127.0.0.1"
    assert record["request"]


def test_the_time_of_a_write_is_that_of_its_version(lab: Integrator) -> None:
    report = register(lab)

    assert only_record(lab)["at"] == parse_instant(report["meta"]["lastUpdated"])


def test_a_repeated_registration_leaves_a_record_of_its_own(lab: Integrator) -> None:
    body = register_body(f"A-{uuid.uuid4()}")
    lab.register(body)
    lab.register(body)

    first, second = records_of_tenant(lab)

    assert second["action"] == "register"
    assert second["what"] == first["what"]
    assert second["patients"] == first["patients"]
    assert second["request"] != first["request"]


def test_a_refused_registration_leaves_a_record_without_content(lab: Integrator) -> None:
    lab.register(register_body("A-1", status="wrong"))

    record = only_record(lab)

    assert (record["action"], record["status"]) == ("register", 400)
    assert "what" not in record
    assert "wrong" not in str(record)


@pytest.mark.parametrize(
    ("suffix", "action"),
    [("", "read"), ("/_history/1", "vread"), ("/_history", "history")],
)
def test_a_read_leaves_a_record_with_the_report_and_the_patient(
    lab: Integrator, suffix: str, action: str
) -> None:
    report = register(lab)
    lab.get(f"{REPORTS}/{report['id']}{suffix}")

    (record,) = last_records(lab, 1)

    assert (record["action"], record["status"]) == (action, 200)
    assert record["what"][0].startswith(f"DiagnosticReport/{report['id']}")
    assert record["patients"] == [report["subject"]["reference"]]


def test_a_read_that_is_not_modified_is_recorded(lab: Integrator) -> None:
    report = register(lab)
    lab.get(f"{REPORTS}/{report['id']}", if_none_match='W/"1"')

    (record,) = last_records(lab, 1)

    assert (record["action"], record["status"]) == ("read", 304)
    assert record["patients"] == [report["subject"]["reference"]]


def test_a_read_of_what_is_not_there_names_what_was_asked_for(lab: Integrator) -> None:
    lab.get(NOWHERE)

    record = only_record(lab)

    assert (record["action"], record["status"]) == ("read", 404)
    assert record["what"] == [NOWHERE.removeprefix("/fhir/r4/")]


def test_a_name_that_is_no_id_is_not_recorded(lab: Integrator) -> None:
    lab.get(f"{REPORTS}/Ana%20P%C3%A9rez")

    assert "what" not in only_record(lab)


def test_a_read_of_a_patient_names_the_patient(lab: Integrator) -> None:
    report = register(lab)
    lab.get(f"/fhir/r4/{report['subject']['reference']}")

    (record,) = last_records(lab, 1)

    assert (record["action"], record["status"]) == ("read", 200)
    assert record["patients"][0] == report["subject"]["reference"]


def test_a_search_leaves_a_record_with_what_it_found(lab: Integrator) -> None:
    report, _other = register(lab), register(lab)
    lab.get(f"{REPORTS}?_id={report['id']}&status=final")

    (record,) = last_records(lab, 1)

    assert (record["action"], record["status"]) == ("search", 200)
    assert record["query"] == f"_id={report['id']}&status=final"
    assert record["what"] == [f"DiagnosticReport/{report['id']}"]
    assert record["patients"] == [report["subject"]["reference"]]


def test_an_update_leaves_one_record(lab: Integrator) -> None:
    report = register(lab)
    lab.patch(f"{REPORTS}/{report['id']}", PATCH)

    (record,) = last_records(lab, 1)

    assert len(records_of_tenant(lab)) == 2
    assert (record["action"], record["status"]) == ("update", 204)
    assert record["what"] == [f"DiagnosticReport/{report['id']}/_history/2"]
    assert record["patients"] == [report["subject"]["reference"]]


def test_an_update_that_lost_its_condition_leaves_a_refusal(lab: Integrator) -> None:
    report = register(lab)
    lab.patch(f"{REPORTS}/{report['id']}", PATCH, if_match='W/"7"')

    (record,) = last_records(lab, 1)

    assert (record["action"], record["status"]) == ("update", 412)


def test_each_entry_of_a_batch_leaves_its_record(lab: Integrator) -> None:
    report = register(lab)
    entries = [
        {"request": {"method": "GET", "url": f"DiagnosticReport/{report['id']}"}},
        {"request": {"method": "GET", "url": "DiagnosticReport?status=final"}},
        {
            "request": {"method": "POST", "url": "DiagnosticReport/$register"},
            "resource": register_body(f"A-{uuid.uuid4()}"),
        },
    ]
    lab.request("POST", "/fhir/r4", {"resourceType": "Bundle", "type": "batch", "entry": entries})

    found = last_records(lab, 3)

    assert len(records_of_tenant(lab)) == 4
    assert sorted(record["action"] for record in found) == ["read", "register", "search"]


def test_a_refused_batch_leaves_a_record(lab: Integrator) -> None:
    lab.request("POST", "/fhir/r4", {"resourceType": "Bundle", "type": "transaction"})

    record = only_record(lab)

    assert record["action"] == "batch"
    assert record["status"] >= 400


def test_a_validation_leaves_a_record(lab: Integrator) -> None:
    lab.request("POST", f"{REPORTS}/$validate", register_body("A-1"))

    assert (only_record(lab)["action"], only_record(lab)["status"]) == ("validate", 200)


def test_a_change_of_an_endpoint_is_recorded_before_and_after(lab: Integrator) -> None:
    fields = {"url": "http://127.0.0.1:9/hook"}
    added = lab.request("POST", "/webhooks/v1/endpoints", fields)
    name = f"Endpoint/{added.json['id']}"
    lab.request("DELETE", f"/webhooks/v1/endpoints/{added.json['id']}")

    found = [
        (record["action"], record["status"], record.get("what"))
        for record in records_of_tenant(lab)
    ]

    assert found == [
        ("endpoint.create", 102, None),
        ("endpoint.create", 201, [name]),
        ("endpoint.delete", 102, [name]),
        ("endpoint.delete", 204, [name]),
    ]


def test_a_token_leaves_a_record_of_its_client(lab: Integrator) -> None:
    found = read_chain(lab, lab.tenant.id)

    (record,) = [record for record in found if record["action"] == "token"]
    assert record["status"] == 200
    assert record["client"] == lab.client_id


def request_token(service: Service, client_id: str, secret: str) -> Answer:
    form = {
        "grant_type": "client_credentials",
        "audience": service.config.auth.audience,
        "client_id": client_id,
        "client_secret": secret,
    }
    body = urlencode(form).encode()
    return service.request("POST", "/oauth/token", body, {"Content-Type": FORM})


def test_refused_tokens_of_a_client_are_one_record(lab: Integrator) -> None:
    for _ in range(3):
        request_token(lab.service, lab.client_id, "wrong")

    found = read_chain(lab, lab.tenant.id)

    refused = [record for record in found if record["status"] >= 400]
    assert [(record["status"], record["count"]) for record in refused] == [(401, 3)]
    assert refused[0]["client"] == lab.client_id


def test_refusals_without_a_token_are_counted_for_the_service(lab: Integrator) -> None:
    before = len(read_chain(lab, ""))
    for _ in range(5):
        lab.service.request("GET", NOWHERE)

    (record,) = read_chain(lab, "")[before:]

    assert record["action"] == "unauthenticated"
    assert (record["status"], record["count"]) == (401, 5)
    assert record["address"] == "127.0.0.1"


@pytest.mark.parametrize(
    "path", ["/fhir/r4/metadata", "/health/ready", "/openapi.json", "/nowhere"]
)
def test_what_discloses_nothing_leaves_no_record(lab: Integrator, path: str) -> None:
    lab.get(path)

    assert records_of_tenant(lab) == []


class RecordsNothing(StoreWrapper):
    """A store that cannot keep audit records, while all else works."""

    async def add_audit_records(self, records: Mapping[str, bytes]) -> None:
        if records:
            raise StoreUnavailable("full")


def test_what_cannot_be_recorded_before_the_answer_is_not_answered(tmp_path: Path) -> None:
    config = Config(audit=AuditConfig(reads="before_answer"))
    opened = opening(RecordsNothing)
    with RunningService(tmp_path, config=config, open_store=opened) as service:
        store = service.services.store
        tenant = service.call(add_tenant(store, "Lab", clock=now_ms))
        new = NewClient(tenant=tenant.id, name="Lab", environment="sandbox")
        client, secret = service.call(add_client(store, new, clock=now_ms))

        answer = request_token(service, client.id, secret)

    assert answer.status == 503
    assert "access_token" not in answer.json


def test_a_read_is_durable_before_its_answer_if_the_settings_say_so(tmp_path: Path) -> None:
    config = Config(audit=AuditConfig(reads="before_answer"))
    with RunningService(tmp_path, config=config) as service:
        lab = service.integrator()
        store = service.services.store
        lab.get(NOWHERE)
        waiting = service.call(store.unsealed_audit(limit=10))
        sealed = service.call(store.audit_chain(lab.tenant.id))

    lines = [entry.records for entry in waiting.entries] + [block.records for block in sealed]
    assert b'"action":"read","status":404' in b"".join(lines)


def test_reads_leave_no_records_if_the_settings_say_so_but_writes_do(tmp_path: Path) -> None:
    config = Config(audit=AuditConfig(reads="off"))
    with RunningService(tmp_path, config=config) as service:
        lab = service.integrator()
        report = register(lab)
        lab.get(f"{REPORTS}/{report['id']}")

        found = read_chain(lab, lab.tenant.id)

    assert [record["action"] for record in found] == ["register"]


def test_without_an_audit_trail_nothing_is_recorded(tmp_path: Path) -> None:
    config = Config(audit=AuditConfig(enabled=False))
    with RunningService(tmp_path, config=config) as service:
        lab = service.integrator()
        report = register(lab)
        lab.get(f"{REPORTS}/{report['id']}")
        store = service.services.store

        assert service.services.audit is None
        assert service.call(store.unsealed_audit(limit=10)).entries == []
        assert service.call(store.audited_tenants()) == []


def test_a_write_without_a_trail_stores_no_record_of_an_earlier_one(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        lab = service.integrator()
        report_id = register(lab)["id"]
    config = Config(audit=AuditConfig(enabled=False))

    with RunningService(tmp_path, config=config) as service:
        again = service.another_client(lab.tenant)
        assert again.patch(f"{REPORTS}/{report_id}", PATCH).status == 204
        versions = [
            service.call(service.services.store.version(lab.tenant.id, report_id, number))
            for number in (1, 2)
        ]

    first, second = versions
    assert first is not None
    assert second is not None
    assert first.audit
    assert not second.audit
