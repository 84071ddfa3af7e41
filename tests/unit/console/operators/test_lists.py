"""The lists of tenants, clients and endpoints of operators."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import clients, endpoints, tenants
from fhirpub.console.operators.lists import (
    PAGES,
    health_of,
    list_clients,
    list_endpoints,
    list_tenants,
    tenant_names,
)
from fhirpub.errors import NoSuchRecord
from fhirpub.testing.contracts.webhooks.records import an_endpoint
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.policy.retry_policy import Breaker, FailureStreak
from tests.unit.administration.office import URL, Office
from tests.unit.console.operators.desk import a_visit, cells_of
from tests.unit.console.pages.visiting import as_page


async def test_tenants_are_listed_with_their_states_and_lead_to_their_pages(
    office: Office, lab: str, other: str
) -> None:
    await office.run(tenants.DISABLE, tenant=other)

    page = as_page(await list_tenants(a_visit(office)))

    rows = sorted(row[:3] for row in cells_of(page.values["table"]))
    assert rows == [["Lab", lab, "enabled"], ["Other", other, "disabled"]]
    places = {row[0][0].href for row in page.values["table"].rows}
    assert places == {f"/console/operations/tenants/{one}" for one in (lab, other)}
    assert page.values["table"].columns == ["Name", "Id", "State", "Created"]
    assert page.values["tenant"] is None


async def test_the_list_of_tenants_is_of_no_tenant(office: Office, lab: str) -> None:
    page = as_page(await list_tenants(a_visit(office, tenant=lab)))

    assert page.values["tenant"] is None
    assert page.values["acts"] == [("Add a tenant", "/console/operations/run/tenantAdd")]
    assert (page.title, page.section) == ("Tenants", "tenants")


async def test_clients_of_all_tenants_are_listed_with_the_names_of_these(
    office: Office, lab: str, other: str
) -> None:
    for tenant, name in ((lab, "ours"), (other, "theirs")):
        await office.run(clients.ADD, tenant=tenant, name=name)

    page = as_page(await list_clients(a_visit(office)))

    found = sorted((row[0], row[2], row[3]) for row in cells_of(page.values["table"]))
    assert found == [("ours", "Lab", "enabled"), ("theirs", "Other", "enabled")]
    assert (page.title, page.section, page.values["tenant"]) == ("Clients", "clients", "")


async def test_clients_of_one_tenant_are_listed_if_the_query_names_it(
    office: Office, lab: str, other: str
) -> None:
    ours = (await office.run(clients.ADD, tenant=lab, name="ours"))["client_id"]
    await office.run(clients.ADD, tenant=other, name="theirs")

    page = as_page(await list_clients(a_visit(office, tenant=f" {lab} ")))

    (row,) = cells_of(page.values["table"])
    assert row[:4] == ["ours", ours, "Lab", "enabled"]
    assert page.values["tenant"] == lab
    path = f"/console/operations/run/clientAdd?tenant={lab}"
    assert page.values["acts"] == [("Add a client", path)]


@pytest.mark.parametrize("list_", [list_clients, list_endpoints])
async def test_what_a_tenant_has_that_does_not_exist_is_refused(
    office: Office, list_: Any
) -> None:
    with pytest.raises(NoSuchRecord):
        await list_(a_visit(office, tenant="guess"))


async def test_endpoints_are_listed_with_the_health_of_each(office: Office, lab: str) -> None:
    well, ill = an_endpoint(tenant=lab), an_endpoint(tenant=lab)
    for one in (well, ill):
        await office.store.put_endpoint(lab, one)
    health = EndpointHealth(
        streak=FailureStreak(failures=3, since=1), breaker=Breaker(state="open")
    )
    await office.store.save_health(ill.id, health.serialize())

    page = as_page(await list_endpoints(a_visit(office)))

    columns = page.values["table"].columns
    assert columns[-2:] == ["Breaker", "Failures in a row"]
    assert {row[1]: row[-2:] for row in cells_of(page.values["table"])} == {
        well.id: ["closed", "0"],
        ill.id: ["open", "3"],
    }


async def test_endpoints_are_listed_with_how_their_deliveries_go(office: Office, lab: str) -> None:
    await office.run(endpoints.ADD, tenant=lab, url=URL, description="lis")

    page = as_page(await list_endpoints(a_visit(office)))

    (row,) = cells_of(page.values["table"])
    assert (row[0], row[3], row[4], row[6], row[7]) == ("lis", URL, "active", "closed", "0")


async def test_endpoints_of_all_tenants_are_listed_with_the_health_of_each(
    office: Office, lab: str, other: str
) -> None:
    for number, tenant in enumerate((lab, other), start=1):
        one = an_endpoint(tenant=tenant, description=tenant)
        await office.store.put_endpoint(tenant, one)
        health = EndpointHealth(streak=FailureStreak(failures=number, since=1))
        await office.store.save_health(one.id, health.serialize())

    page = as_page(await list_endpoints(a_visit(office)))

    found = {row[0]: row[7] for row in cells_of(page.values["table"])}
    assert found == {lab: "1", other: "2"}


async def test_endpoints_of_one_tenant_are_listed_if_the_query_names_it(
    office: Office, lab: str, other: str
) -> None:
    for tenant, name in ((lab, "ours"), (other, "theirs")):
        await office.store.put_endpoint(tenant, an_endpoint(tenant=tenant, description=name))

    page = as_page(await list_endpoints(a_visit(office, tenant=lab)))

    assert [row[0] for row in cells_of(page.values["table"])] == ["ours"]
    path = f"/console/operations/run/endpointAdd?tenant={lab}"
    assert page.values["acts"] == [("Add an endpoint", path)]
    assert (page.title, page.section) == ("Endpoints", "endpoints")


async def test_a_list_shows_what_is_looked_for(office: Office, lab: str) -> None:
    for name in ("ward", "desk"):
        await office.run(clients.ADD, tenant=lab, name=name)

    page = as_page(await list_clients(a_visit(office, find="war")))

    assert [row[0] for row in cells_of(page.values["table"])] == ["ward"]
    assert page.values["listing"].find == "war"


async def test_the_names_of_tenants_are_found_by_their_ids(
    office: Office, lab: str, other: str
) -> None:
    assert await tenant_names(a_visit(office)) == {lab: "Lab", other: "Other"}


def test_an_endpoint_that_was_never_tried_is_well() -> None:
    assert health_of(b"") == {"breaker": "closed", "failures": 0}


def test_lists_are_for_operators() -> None:
    assert {one.path for one in PAGES if (one.method, one.audience) == ("GET", "operator")} == {
        "/operations/tenants",
        "/operations/clients",
        "/operations/endpoints",
    }
