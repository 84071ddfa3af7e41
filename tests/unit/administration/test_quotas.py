"""Limits of tenants and clients are set, removed and shown with what is used of them."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import clients, quotas
from fhirpub.audit.record import BEGUN
from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.reader import LARGEST
from fhirpub.errors import InvalidContent
from fhirpub.storage.quota_contract import QuotaCount
from tests.unit.administration.declared import declared
from tests.unit.administration.office import Office

SETTINGS = QuotasConfig(tenant_requests_per_minute=600, client_bytes_per_day=1_000)


@pytest.fixture
def limited(office: Office) -> Office:
    return office.with_config(quotas=SETTINGS)


@pytest.fixture
async def ward(office: Office, lab: str) -> str:
    return str((await office.run(clients.ADD, tenant=lab, name="ward"))["client_id"])


def by_name(shown: Any) -> dict[str, tuple[int | None, str, int | None]]:
    return {one["quota"]: (one["limit"], one["set_by"], one["used"]) for one in shown["quotas"]}


async def test_limits_are_those_of_the_settings_until_others_are_set(
    limited: Office, lab: str, ward: str
) -> None:
    shown = await limited.run(quotas.SHOW, tenant="Lab")

    (client,) = shown["clients"]
    assert (shown["tenant"], shown["name"]) == (lab, "Lab")
    assert (client["client_id"], client["name"]) == (ward, "ward")
    assert by_name(shown) == {
        "requests_per_minute": (600, "[quotas]", 0),
        "requests_at_a_time": (None, "[quotas]", None),
        "bytes_per_day": (None, "[quotas]", None),
        "registrations_per_day": (None, "[quotas]", None),
        "stored_bytes": (None, "[quotas]", 0),
    }
    assert by_name(client)["bytes_per_day"] == (1_000, "[quotas]", 0)
    assert "stored_bytes" not in by_name(client)


async def test_a_limit_that_is_set_replaces_the_usual_one(limited: Office, lab: str) -> None:
    answer = await limited.run(quotas.SET_OF_TENANT, tenant="Lab", requests_per_minute=5)

    assert answer["tenant"] == lab
    assert answer["requests_per_minute"] == 5
    shown = by_name(await limited.run(quotas.SHOW, tenant=lab))
    assert shown["requests_per_minute"] == (5, "quota set", 0)


async def test_a_limit_of_zero_is_none_at_all(limited: Office, lab: str) -> None:
    answer = await limited.run(quotas.SET_OF_TENANT, tenant=lab, requests_per_minute=0)

    assert answer["requests_per_minute"] is None
    shown = by_name(await limited.run(quotas.SHOW, tenant=lab))
    assert shown["requests_per_minute"] == (None, "quota set", None)


async def test_a_limit_that_is_removed_is_that_of_the_settings_again(
    limited: Office, lab: str
) -> None:
    await limited.run(quotas.SET_OF_TENANT, tenant=lab, requests_per_minute=5, bytes_per_day=9)

    answer = await limited.run(quotas.SET_OF_TENANT, tenant=lab, defaults=["requests_per_minute"])

    assert (answer["requests_per_minute"], answer["bytes_per_day"]) == (600, 9)
    shown = by_name(await limited.run(quotas.SHOW, tenant=lab))
    assert shown["requests_per_minute"][1] == "[quotas]"


async def test_a_limit_that_is_set_and_removed_at_once_is_removed(
    limited: Office, lab: str
) -> None:
    answer = await limited.run(
        quotas.SET_OF_TENANT,
        tenant=lab,
        requests_per_minute=5,
        bytes_per_day=9,
        defaults=["requests_per_minute"],
    )

    assert (answer["requests_per_minute"], answer["bytes_per_day"]) == (600, 9)


async def test_all_clients_of_a_tenant_are_shown(limited: Office, lab: str, ward: str) -> None:
    second = (await limited.run(clients.ADD, tenant=lab, name="lis"))["client_id"]
    await limited.run(quotas.SET_OF_CLIENT, client=second, requests_at_a_time=4)

    shown = (await limited.run(quotas.SHOW, tenant=lab))["clients"]

    found = {one["client_id"]: by_name(one)["requests_at_a_time"][0] for one in shown}
    assert found == {ward: None, second: 4}


async def test_limits_of_one_owner_are_not_those_of_another(
    limited: Office, lab: str, other: str, ward: str
) -> None:
    await limited.run(quotas.SET_OF_TENANT, tenant=lab, bytes_per_day=7)
    answer = await limited.run(quotas.SET_OF_CLIENT, client="ward", bytes_per_day=8)

    assert (answer["client"], answer["bytes_per_day"]) == (ward, 8)
    assert by_name(await limited.run(quotas.SHOW, tenant=other))["bytes_per_day"][0] is None
    assert by_name(await limited.run(quotas.SHOW, tenant=lab))["bytes_per_day"][0] == 7


async def test_a_client_of_another_tenant_is_not_shown(
    limited: Office, lab: str, other: str, ward: str
) -> None:
    assert (await limited.run(quotas.SHOW, tenant=other))["clients"] == []


@pytest.mark.parametrize(
    ("value", "is_right"), [(0, True), (LARGEST, True), (-1, False), (LARGEST + 1, False)]
)
async def test_a_limit_is_a_number_that_can_be_stored(
    limited: Office, lab: str, value: int, *, is_right: bool
) -> None:
    if is_right:
        await limited.run(quotas.SET_OF_TENANT, tenant=lab, bytes_per_day=value)
    else:
        with pytest.raises(InvalidContent, match="bytes_per_day: must be at"):
            await limited.run(quotas.SET_OF_TENANT, tenant=lab, bytes_per_day=value)


async def test_no_limit_at_all_is_refused(limited: Office, lab: str) -> None:
    before = await limited.records()

    with pytest.raises(InvalidContent, match="name at least one limit"):
        await limited.run(quotas.SET_OF_TENANT, tenant=lab)

    assert await limited.records() == before


async def test_a_limit_of_tenants_alone_is_refused_for_a_client(
    limited: Office, ward: str
) -> None:
    with pytest.raises(InvalidContent) as refused:
        await limited.run(quotas.SET_OF_CLIENT, client=ward, defaults=["stored_bytes"])

    (issue,) = refused.value.issues
    assert issue.expression == "stored_bytes"
    assert issue.diagnostics.startswith("is not a limit of a client; those are requests_per_min")
    assert await limited.store.quota_overrides() == []


async def test_nothing_is_set_if_one_of_the_limits_is_not_known(limited: Office, lab: str) -> None:
    with pytest.raises(InvalidContent):
        await limited.run(quotas.SET_OF_TENANT, tenant=lab, bytes_per_day=7, defaults=["x"])

    assert await limited.store.quota_overrides() == []


async def test_limits_are_set_in_the_chain_of_the_tenant(
    limited: Office, lab: str, ward: str
) -> None:
    before = await limited.records()

    await limited.run(quotas.SET_OF_TENANT, tenant=lab, bytes_per_day=7)
    await limited.run(quotas.SET_OF_CLIENT, client=ward, bytes_per_day=7)

    assert (await limited.records())[len(before) :] == [
        (lab, "quota.set", status, [name])
        for name in (f"Tenant/{lab}", f"Client/{ward}")
        for status in (BEGUN, 200)
    ]


async def test_counts_of_all_processes_are_shown(limited: Office, lab: str) -> None:
    now = limited.clock()
    begun = now - now % 60_000
    for process, used in (("a", 2), ("b", 3)):
        count = QuotaCount(
            owner=lab, quota="tenant_requests_per_minute", period=begun, until=begun + 60_000,
            used=used,
        )  # fmt: skip
        await limited.store.put_quota_counts(process, [count])

    shown = by_name(await limited.run(quotas.SHOW, tenant=lab))

    assert shown["requests_per_minute"] == (600, "[quotas]", 5)


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(quotas.OPERATIONS) == {
        "quota set --tenant": [
            "PATCH /tenants/{tenant}/quotas 200",
            "creates a store",
            "path tenant! string",
            "body requests_per_minute integer >=0 <=9007199254740992",
            "body requests_at_a_time integer >=0 <=9007199254740992",
            "body bytes_per_day integer >=0 <=9007199254740992",
            "body registrations_per_day integer >=0 <=9007199254740992",
            "body stored_bytes integer >=0 <=9007199254740992",
            "body defaults strings",
        ],
        "quota set --client": [
            "PATCH /clients/{client}/quotas 200",
            "creates a store",
            "path client! string",
            "body requests_per_minute integer >=0 <=9007199254740992",
            "body requests_at_a_time integer >=0 <=9007199254740992",
            "body bytes_per_day integer >=0 <=9007199254740992",
            "body registrations_per_day integer >=0 <=9007199254740992",
            "body defaults strings",
        ],
        "quota show": [
            "GET /tenants/{tenant}/quotas 200",
            "creates a store",
            "path tenant! string",
        ],
    }
