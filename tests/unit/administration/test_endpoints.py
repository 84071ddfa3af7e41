"""Endpoints of all tenants are added, changed and removed; secrets are shown once."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import endpoints, tenants
from fhirpub.administration.naming import id_of_key
from fhirpub.audit.record import BEGUN
from fhirpub.errors import ConfigurationError, InvalidContent, NoSuchRecord
from fhirpub.webhooks.management.endpoints import EndpointWithSecrets
from tests.unit.administration.declared import declared
from tests.unit.administration.office import URL, Office

OTHER_URL = "https://93.184.216.34/others"


async def test_an_endpoint_is_added_with_secrets_that_are_shown_once(
    office: Office, lab: str
) -> None:
    added = await office.run(endpoints.ADD, tenant="Lab", url=URL)

    shown = await office.run(endpoints.SHOW, endpoint=added["id"])
    assert (added["tenant"], added["state"]) == (lab, "active")
    assert {*added} - {*shown} == {"signing_secret", "token"}
    assert shown == {name: value for name, value in added.items() if name in shown}


async def test_secrets_that_were_not_made_are_not_shown(
    office: Office, lab: str, lis: str
) -> None:
    endpoint = await office.administration.endpoint(lis)
    kept = {"id": lis, **endpoints.record_of(endpoint)}

    for disclosed, shown in (
        (EndpointWithSecrets(endpoint), {}),
        (EndpointWithSecrets(endpoint, token="t"), {"token": "t"}),
        (EndpointWithSecrets(endpoint, signing_secret="s"), {"signing_secret": "s"}),
    ):
        assert endpoints.record_with_secrets(disclosed) == {**kept, **shown}


async def test_the_end_of_an_addition_names_the_endpoint(office: Office, lab: str) -> None:
    before = len(await office.records())

    id_ = (await office.run(endpoints.ADD, tenant=lab, url=URL))["id"]

    assert (await office.records())[before:] == [
        (lab, "endpoint.create", BEGUN, []),
        (lab, "endpoint.create", 200, [f"Endpoint/{id_}"]),
    ]


@pytest.mark.parametrize("given", [{}, {"url": 5}, {"url": URL, "ordering": "x"},
                                   {"url": URL, "payload": "x"},
                                   {"url": URL, "event_types": "*"}])  # fmt: skip
async def test_what_an_endpoint_cannot_be_is_refused(
    office: Office, lab: str, given: dict[str, Any]
) -> None:
    with pytest.raises(InvalidContent):
        await office.run(endpoints.ADD, tenant=lab, **given)

    assert await office.store.all_endpoints() == []


async def test_an_endpoint_with_a_key_is_added_once(office: Office, lab: str) -> None:
    first = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL)
    before = len(await office.records())

    again = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL)

    assert first["id"] == again["id"] == id_of_key("endpoint", "lis", tenant=lab)
    assert "signing_secret" in first
    assert "signing_secret" not in again
    assert (await office.records())[before:] == []


async def test_a_key_of_another_tenant_is_another_endpoint(
    office: Office, lab: str, other: str
) -> None:
    ours = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL)
    theirs = await office.run(endpoints.PUT, tenant=other, key="lis", url=URL)

    assert ours["id"] != theirs["id"]
    assert theirs["tenant"] == other


async def test_an_endpoint_becomes_what_is_described(office: Office, lab: str) -> None:
    first = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL)
    before = len(await office.records())

    again = await office.run(endpoints.PUT, tenant=lab, key="lis", url=OTHER_URL, description="x")

    assert (again["id"], again["url"], again["description"]) == (first["id"], OTHER_URL, "x")
    assert [one[1] for one in (await office.records())[before:]] == ["endpoint.update"] * 2


async def test_an_endpoint_that_was_removed_is_replaced_under_its_key(
    office: Office, lab: str
) -> None:
    first = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL)
    await office.run(endpoints.REMOVE, endpoint=first["id"])

    second = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL)
    again = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL)

    assert second["id"] != first["id"]
    assert "signing_secret" in second
    assert again["id"] == second["id"]


async def test_endpoints_are_listed_by_tenant_without_removed_ones(
    office: Office, lab: str, other: str, lis: str
) -> None:
    theirs = (await office.run(endpoints.ADD, tenant=other, url=URL))["id"]
    gone = (await office.run(endpoints.ADD, tenant=lab, url=URL))["id"]
    await office.run(endpoints.REMOVE, endpoint=gone)

    every, ours = await office.run(endpoints.LIST), await office.run(endpoints.LIST, tenant="Lab")

    assert {one["id"] for one in every} == {lis, theirs}
    assert [one["id"] for one in ours] == [lis]


async def test_what_is_not_changed_of_an_endpoint_stays(office: Office, lis: str) -> None:
    before = await office.run(endpoints.SHOW, endpoint=lis)

    changed = await office.run(endpoints.SET, endpoint="lis", ordering="strict")

    assert changed == {**before, "ordering": "strict", "revision": before["revision"] + 1}


async def test_a_removed_endpoint_is_removed_once(office: Office, lis: str) -> None:
    gone = await office.run(endpoints.REMOVE, endpoint="lis")

    assert gone == {"id": lis, "url": URL, "state": "deleted"}
    with pytest.raises(NoSuchRecord):
        await office.run(endpoints.REMOVE, endpoint=lis)


async def test_a_secret_that_is_given_is_not_another_one(office: Office, lab: str) -> None:
    first = await office.run(endpoints.ADD, tenant=lab, url=URL)

    second = await office.run(
        endpoints.ADD, tenant=lab, url=URL, signing_secret=first["signing_secret"]
    )

    assert second["signing_secret"] == first["signing_secret"]


async def test_a_disabled_tenant_gets_no_endpoint(office: Office, lab: str) -> None:
    await office.run(tenants.DISABLE, tenant=lab)

    for operation, given in ((endpoints.ADD, {}), (endpoints.PUT, {"key": "lis"})):
        with pytest.raises(ConfigurationError, match="is disabled"):
            await office.run(operation, tenant=lab, url=URL, **given)

    assert await office.store.all_endpoints() == []


async def test_one_setting_that_differs_from_a_description_is_changed(
    office: Office, lab: str
) -> None:
    first = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL, description="x")

    again = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL, description="y")

    assert again["description"] == "y"
    assert (await office.administration.endpoint(first["id"])).description == "y"


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        (endpoints.SET, "endpoint.update"),
        (endpoints.REMOVE, "endpoint.delete"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
async def test_changes_of_an_endpoint_are_in_the_chain_of_its_tenant(
    office: Office, lab: str, lis: str, operation: Any, action: str
) -> None:
    before = len(await office.records())

    await office.run(operation, endpoint=lis)

    assert (await office.records())[before:] == [
        (lab, action, status, [f"Endpoint/{lis}"]) for status in (BEGUN, 200)
    ]


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(endpoints.OPERATIONS) == {
        "endpoint add": [
            "POST /tenants/{tenant}/endpoints 201",
            "creates a store, as endpoint.create",
            "path tenant! string",
            "body url! string",
            "body description string",
            "body ordering none|per_resource|strict",
            "body payload standard|id-only",
            "body event_types strings",
            "body signing_secret string",
            "body bearer_token string",
        ],
        "endpoint add --key": [
            "PUT /tenants/{tenant}/endpoints/{key} 200",
            "creates a store, as endpoint.create",
            "path tenant! string",
            "path key! string",
            "body url! string",
            "body description string",
            "body ordering none|per_resource|strict",
            "body payload standard|id-only",
            "body event_types strings",
            "body signing_secret string",
            "body bearer_token string",
        ],
        "endpoint list": [
            "GET /endpoints 200",
            "creates a store",
            "query tenant string",
        ],
        "endpoint show": [
            "GET /endpoints/{endpoint} 200",
            "creates a store",
            "path endpoint! string",
        ],
        "endpoint set": [
            "PATCH /endpoints/{endpoint} 200",
            "creates a store, as endpoint.update",
            "path endpoint! string",
            "body url string",
            "body description string",
            "body ordering none|per_resource|strict",
            "body payload standard|id-only",
            "body event_types strings",
        ],
        "endpoint rm": [
            "DELETE /endpoints/{endpoint} 200",
            "final, creates a store, as endpoint.delete",
            "path endpoint! string",
        ],
    }
