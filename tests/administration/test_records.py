"""What administration leaves in the audit trail and in the log."""

from __future__ import annotations

from uuid import uuid4

from structlog.testing import capture_logs

from fhirpub.audit.record import BEGUN
from fhirpub.testing.contracts.webhooks.records import a_delivery, an_endpoint
from tests.administration.conftest import Administered


def test_an_act_is_recorded_with_its_caller_and_address(administered: Administered) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]

    (ended,) = administered.audit(tenant)

    assert (ended["action"], ended["status"]) == ("tenant.add", 200)
    assert (ended["user"], ended["address"]) == ("bootstrap", "127.0.0.1")


def test_acts_and_refusals_are_in_the_log_with_their_caller_and_no_secret(
    administered: Administered,
) -> None:
    with capture_logs() as logged:
        tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]
        path = f"/tenants/{tenant}/clients"
        secret = administered.request("POST", path, {}).json["client_secret"]
        administered.request("POST", path, {"scopes": ["jane roe"]})

    lines = [line for line in logged if "operation" in line]
    assert [(line["event"], line["operation"]) for line in lines] == [
        ("administered", "tenantAdd"),
        ("administered", "clientAdd"),
        ("not administered", "clientAdd"),
    ]
    assert {(line["caller"], line["address"]) for line in lines} == {("bootstrap", "127.0.0.1")}
    assert secret not in str(logged)
    assert "jane roe" not in str(logged)


def test_a_request_that_changes_nothing_leaves_no_record(administered: Administered) -> None:
    tenant = f"/tenants/lab-{uuid4().hex}"
    id_ = administered.request("PUT", tenant, {"name": "Lab"}).json["id"]
    requests = (
        (tenant, {"name": "Lab"}),
        (f"{tenant}/clients/ward", {"scopes": ["system/*.rs"], "name": "ward"}),
        (f"{tenant}/endpoints/lis", {"url": "https://93.184.216.34/x", "event_types": ["*"]}),
    )
    first = [administered.request("PUT", *each).json for each in requests]
    before = administered.audit(id_)

    again = [administered.request("PUT", *each).json for each in requests]

    for earlier, now in zip(first, again, strict=True):
        assert {name: earlier.get(name, value) for name, value in now.items()} == now
    assert [one for one in administered.audit(id_) if one["action"] != "audit.search"] == before


def test_an_act_is_recorded_before_it_is_done_and_with_what_it_concerns(
    administered: Administered,
) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]
    client = administered.request("POST", f"/tenants/{tenant}/clients", {}).json["client_id"]

    administered.request("PATCH", f"/clients/{client}", {"name": "ward"})

    ended, begun = [one for one in administered.audit(tenant) if one["action"] == "client.edit"]
    assert (begun["status"], ended["status"]) == (BEGUN, 200)
    assert begun["what"] == ended["what"] == [f"Client/{client}"]


def test_a_look_at_what_does_not_exist_leaves_no_record(administered: Administered) -> None:
    name = f"unknown-{uuid4().hex}"

    administered.request("GET", f"/clients/{name}")

    assert not [one for one in administered.audit() if f"Client/{name}" in one.get("what", ())]


def test_each_page_of_an_export_is_recorded(administered: Administered) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]

    administered.request("GET", f"/audit/{tenant}/export?after=1000")

    assert administered.audit(tenant)[0]["action"] == "audit.export"


def test_a_look_at_a_delivery_is_recorded_with_what_it_is_about(
    administered: Administered,
) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]
    endpoint, store = an_endpoint(tenant=tenant), administered.service.services.store
    delivery = a_delivery(endpoint.id, tenant=tenant, event_id=f"evt_{uuid4().hex}")
    administered.service.call(store.put_endpoint(tenant, endpoint))
    administered.service.call(store.put_deliveries([delivery]))

    assert administered.request("GET", f"/deliveries/{delivery.event_id}").status == 200

    (record,) = [one for one in administered.audit(tenant) if one["action"] == "delivery.read"]
    assert record["what"] == [f"Endpoint/{endpoint.id}", delivery.resource]


def test_a_look_at_conflicts_is_recorded(administered: Administered) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]

    administered.request("GET", f"/tenants/{tenant}/patients/conflicts")

    assert administered.audit(tenant)[0]["action"] == "patient.conflicts"


def test_an_act_on_what_does_not_exist_is_recorded(administered: Administered) -> None:
    administered.request("POST", "/clients/guessed/disable")

    record = administered.audit()[0]

    assert (record["action"], record["status"]) == ("client.disable", 400)
    assert record["what"] == ["Client/guessed"]
