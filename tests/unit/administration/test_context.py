"""What a name of a caller means: an id, a key, or a name that only one has."""

from __future__ import annotations

import pytest

from fhirpub.administration import clients, endpoints, tenants
from fhirpub.administration.context import only_one
from fhirpub.errors import NoSuchRecord, NotPossible
from tests.unit.administration.office import AGENT, URL, Office


@pytest.mark.parametrize("kind", ["tenant", "client", "endpoint"])
def test_nothing_is_meant_by_a_name_that_none_has(kind: str) -> None:
    with pytest.raises(NoSuchRecord, match=f"there is no {kind} x"):
        only_one(kind, "x", [])


def test_an_empty_name_means_nothing_although_one_has_it() -> None:
    with pytest.raises(NoSuchRecord):
        only_one("client", "", ["1"])


def test_the_only_one_with_a_name_is_meant() -> None:
    assert only_one("client", "x", ["1"]) == "1"


def test_those_that_have_the_same_name_are_listed_in_order() -> None:
    with pytest.raises(NotPossible) as refused:
        only_one("client", "x", iter(["2", "1"]))

    assert str(refused.value) == "several clients have the name x: 1, 2"


async def test_a_tenant_is_meant_by_its_id_before_its_key_and_its_name(office: Office) -> None:
    first = await office.run(tenants.PUT, key="lab", name="A")
    second = await office.run(tenants.ADD, name="lab")
    third = await office.run(tenants.ADD, name=second["id"])

    meant = office.administration.tenant
    assert (await meant("lab")).id == first["id"]
    assert (await meant(second["id"])).id == second["id"]
    assert (await meant(third["id"])).name == second["id"]


async def test_a_client_is_meant_by_its_id_before_its_name(office: Office, lab: str) -> None:
    first = await office.run(clients.ADD, tenant=lab, name="ward")
    await office.run(clients.ADD, tenant=lab, name=first["client_id"])

    assert (await office.administration.client(first["client_id"])).name == "ward"


async def test_a_disabled_client_is_meant_by_its_id_and_its_name(office: Office, lab: str) -> None:
    id_ = (await office.run(clients.ADD, tenant=lab, name="ward"))["client_id"]
    await office.run(clients.DISABLE, client=id_)

    for named in (id_, "ward"):
        assert (await office.administration.client(named)).id == id_


async def test_clients_without_a_name_are_not_meant_by_an_empty_one(
    office: Office, lab: str
) -> None:
    await office.run(clients.ADD, tenant=lab)

    with pytest.raises(NoSuchRecord):
        await office.administration.client("")


async def test_an_endpoint_is_meant_by_its_description_or_its_id(office: Office, lab: str) -> None:
    one = await office.run(endpoints.ADD, tenant=lab, url=URL, description="lis")
    await office.run(endpoints.ADD, tenant=lab, url=URL, description=one["id"])

    assert (await office.administration.endpoint("lis")).id == one["id"]
    assert (await office.administration.endpoint(one["id"])).description == "lis"


async def test_a_part_of_a_name_means_nothing(office: Office, lab: str) -> None:
    await office.run(endpoints.ADD, tenant=lab, url=URL, description="lis 2")
    await office.run(clients.ADD, tenant=lab, name="lis 2")

    for part in ("lis", "2", "LIS 2", " lis 2"):
        for meant in (office.administration.endpoint, office.administration.client):
            with pytest.raises(NoSuchRecord):
                await meant(part)


async def test_a_removed_endpoint_is_meant_by_its_id_alone(
    office: Office, lab: str, other: str
) -> None:
    one = await office.run(endpoints.ADD, tenant=other, url=URL, description="lis")
    await office.run(endpoints.REMOVE, endpoint=one["id"])

    assert (await office.administration.endpoint(one["id"])).state == "deleted"
    with pytest.raises(NoSuchRecord):
        await office.administration.endpoint("lis")


async def test_endpoints_of_two_tenants_with_one_description_are_listed(
    office: Office, lab: str, other: str
) -> None:
    ids = sorted(
        [
            (await office.run(endpoints.ADD, tenant=one, url=URL, description="lis"))["id"]
            for one in (lab, other)
        ]
    )

    with pytest.raises(NotPossible, match=f"{ids[0]}, {ids[1]}"):
        await office.administration.endpoint("lis")


def test_the_operator_is_the_user_of_the_agent(office: Office) -> None:
    assert office.administration.operator == AGENT.user


async def test_a_tenant_is_meant_by_its_name(office: Office, lab: str, other: str) -> None:
    found = [(await office.administration.tenant(name)).id for name in ("Lab", "Other")]

    assert found == [lab, other]


async def test_a_client_is_meant_by_its_name(office: Office, lab: str) -> None:
    await office.run(clients.ADD, tenant=lab, name="icu")
    ward = await office.run(clients.ADD, tenant=lab, name="ward")

    assert (await office.administration.client("ward")).id == ward["client_id"]


async def test_changes_and_reads_are_recorded_in_the_chain_of_their_tenant(
    office: Office, lab: str
) -> None:
    before = len(await office.records())
    async with office.administration.recorded("x.y", ("Client", "1"), tenant=lab):
        pass
    await office.administration.record_read("x.z", ("Client", "2"), tenant=lab)

    found = (await office.records())[before:]
    assert [(chain, action, what) for chain, action, _status, what in found] == [
        (lab, "x.y", ["Client/1"]),
        (lab, "x.y", ["Client/1"]),
        (lab, "x.z", ["Client/2"]),
    ]
