"""Tenants are added, renamed, disabled and enabled, each act in the chain of its tenant."""

from __future__ import annotations

import pytest

from fhirpub.administration import endpoint_acts, endpoints, tenants
from fhirpub.administration.naming import id_of_key
from fhirpub.audit.record import BEGUN
from fhirpub.errors import InvalidContent, NoSuchRecord, NotPossible
from fhirpub.fhir.times import instant
from tests.unit.administration.declared import declared
from tests.unit.administration.office import URL, Office


async def test_a_tenant_is_added_with_its_name_and_time(office: Office) -> None:
    added = await office.run(tenants.ADD, name="  Lab  ")

    created = instant(office.clock())
    assert added == {"id": added["id"], "name": "Lab", "created": created, "disabled": False}
    assert await office.run(tenants.SHOW, tenant=added["id"]) == added


async def test_the_end_of_an_addition_is_recorded_in_the_new_chain(office: Office) -> None:
    id_ = (await office.run(tenants.ADD, name="Lab"))["id"]

    assert await office.records() == [
        ("", "tenant.add", BEGUN, []),
        (id_, "tenant.add", 200, [f"Tenant/{id_}"]),
    ]


@pytest.mark.parametrize("name", ["x", "x" * 200])
async def test_a_name_has_up_to_two_hundred_characters(office: Office, name: str) -> None:
    assert (await office.run(tenants.ADD, name=name))["name"] == name


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201, 5, None])
async def test_what_is_no_name_adds_no_tenant(office: Office, name: str) -> None:
    with pytest.raises(InvalidContent) as refused:
        await office.run(tenants.ADD, name=name)

    assert [issue.expression for issue in refused.value.issues] == ["name"]
    assert await office.store.tenants() == []
    assert await office.records() == []


async def test_tenants_are_listed_from_the_oldest_on(office: Office) -> None:
    for name in ("b", "a", "c"):
        await office.run(tenants.ADD, name=name)
        office.clock.forward(seconds=1)

    assert [one["name"] for one in await office.run(tenants.LIST)] == ["b", "a", "c"]


async def test_the_id_of_a_tenant_follows_from_its_key(office: Office) -> None:
    added = await office.run(tenants.PUT, key="lab-1", name=" Lab ")

    assert (added["id"], added["name"]) == (id_of_key("tenant", "lab-1"), "Lab")
    assert await office.run(tenants.SHOW, tenant="lab-1") == added


async def test_a_tenant_that_is_as_described_is_left_alone(office: Office) -> None:
    first = await office.run(tenants.PUT, key="lab-1", name="Lab")
    before = await office.records()

    assert await office.run(tenants.PUT, key="lab-1", name="Lab ") == first
    assert await office.records() == before


async def test_a_tenant_with_a_key_is_renamed(office: Office) -> None:
    first = await office.run(tenants.PUT, key="lab-1", name="Lab")

    again = await office.run(tenants.PUT, key="lab-1", name="Laboratory")

    assert again == {**first, "name": "Laboratory"}
    assert len(await office.store.tenants()) == 1


async def test_a_tenant_is_renamed_under_its_id(office: Office, lab: str) -> None:
    renamed = await office.run(tenants.RENAME, tenant="Lab", name=" Ward ")

    assert (renamed["id"], renamed["name"]) == (lab, "Ward")
    assert [one[:3] for one in await office.records()][-2:] == [
        (lab, "tenant.rename", BEGUN),
        (lab, "tenant.rename", 200),
    ]


async def test_a_disabled_tenant_can_be_enabled(office: Office, lab: str, other: str) -> None:
    assert (await office.run(tenants.DISABLE, tenant=lab))["disabled"] is True
    assert (await office.run(tenants.SHOW, tenant=other))["disabled"] is False

    assert (await office.run(tenants.ENABLE, tenant=lab))["disabled"] is False
    assert (await office.run(tenants.SHOW, tenant=lab))["disabled"] is False


async def test_the_endpoints_of_a_disabled_tenant_stay_disabled(
    office: Office, lab: str, other: str
) -> None:
    ours = [await office.run(endpoints.ADD, tenant=lab, url=URL) for _ in range(3)]
    theirs = await office.run(endpoints.ADD, tenant=other, url=URL)

    await office.run(tenants.DISABLE, tenant=lab)
    await office.run(tenants.ENABLE, tenant=lab)

    for one in ours:
        assert (await office.run(endpoints.SHOW, endpoint=one["id"]))["state"] == "disabled"
    assert (await office.run(endpoints.SHOW, endpoint=theirs["id"]))["state"] == "active"


async def test_an_endpoint_that_was_paused_is_disabled_with_its_tenant(
    office: Office, lab: str, lis: str
) -> None:
    await office.run(endpoint_acts.PAUSE, endpoint=lis)

    await office.run(tenants.DISABLE, tenant=lab)

    assert (await office.run(endpoints.SHOW, endpoint=lis))["state"] == "disabled"


async def test_acts_on_a_tenant_are_in_its_chain(office: Office, lab: str) -> None:
    await office.run(tenants.DISABLE, tenant=lab)
    await office.run(tenants.ENABLE, tenant=lab)

    assert (await office.records())[2:] == [
        (lab, f"tenant.{act}", status, [f"Tenant/{lab}"])
        for act in ("disable", "enable")
        for status in (BEGUN, 200)
    ]


@pytest.mark.parametrize("operation", [tenants.SHOW, tenants.DISABLE, tenants.ENABLE])
async def test_a_tenant_that_does_not_exist_is_named(office: Office, operation: object) -> None:
    with pytest.raises(NoSuchRecord, match="there is no tenant guess"):
        await office.run(operation, tenant="guess")  # type: ignore[arg-type]


async def test_several_tenants_of_a_name_are_meant_by_their_ids_alone(office: Office) -> None:
    ids = sorted([(await office.run(tenants.ADD, name="Twin"))["id"] for _ in range(2)])

    with pytest.raises(NotPossible) as refused:
        await office.run(tenants.DISABLE, tenant="Twin")

    assert str(refused.value) == f"several tenants have the name Twin: {ids[0]}, {ids[1]}"
    assert (await office.run(tenants.SHOW, tenant=ids[1]))["id"] == ids[1]


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(tenants.OPERATIONS) == {
        "tenant add": [
            "POST /tenants 201",
            "creates a store",
            "body name! string 200 characters",
        ],
        "tenant add --key": [
            "PUT /tenants/{key} 200",
            "creates a store",
            "path key! string",
            "body name! string 200 characters",
        ],
        "tenant list": [
            "GET /tenants 200",
            "creates a store",
        ],
        "tenant show": [
            "GET /tenants/{tenant} 200",
            "creates a store",
            "path tenant! string",
        ],
        "tenant rename": [
            "PATCH /tenants/{tenant} 200",
            "creates a store",
            "path tenant! string",
            "body name! string 200 characters",
        ],
        "tenant disable": [
            "POST /tenants/{tenant}/disable 200",
            "creates a store",
            "path tenant! string",
        ],
        "tenant enable": [
            "POST /tenants/{tenant}/enable 200",
            "creates a store",
            "path tenant! string",
        ],
    }
