"""Acts on endpoints: trials, secrets, states, and what each leaves in the trail."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import endpoint_acts as acts
from fhirpub.administration import endpoints, tenants
from fhirpub.administration.operation import Operation
from fhirpub.audit.record import BEGUN
from fhirpub.errors import FhirpubError, InvalidContent, NoSuchRecord
from fhirpub.webhooks.management.validation import MAX_GRACE_SECONDS
from tests.unit.administration.office import URL, Office

ALL = [
    (acts.PING, "POST", "/test", "endpoint.test"),
    (acts.VERIFY, "POST", "/verify", "endpoint.verify"),
    (acts.ROTATE, "POST", "/rotate-secret", "endpoint.secret.rotate"),
    (acts.ROTATE_TOKEN, "POST", "/rotate-token", "endpoint.token.rotate"),
    (acts.ENABLE, "POST", "/enable", "endpoint.enable"),
    (acts.PAUSE, "POST", "/pause", "endpoint.pause"),
    (acts.DISABLE, "POST", "/disable", "endpoint.disable"),
    (acts.STATS, "GET", "/stats", ""),
]
NAMES = [act.command for act, *_ in ALL]


@pytest.fixture
async def lis(office: Office, lab: str) -> str:
    """The id of an endpoint of the tenant."""
    return str((await office.run(endpoints.ADD, tenant=lab, url=URL))["id"])


async def state(office: Office, endpoint: str) -> str:
    return str((await office.run(endpoints.SHOW, endpoint=endpoint))["state"])


@pytest.mark.parametrize(("act", "method", "path", "action"), ALL, ids=NAMES)
def test_each_act_has_its_address_and_its_name_in_the_trail(
    act: Operation, method: str, path: str, action: str
) -> None:
    assert (act.method, act.path) == (method, f"/endpoints/{{endpoint}}{path}")
    assert act.audited_as == action or method == "GET"


@pytest.mark.parametrize("act", [act for act, *_ in ALL], ids=NAMES)
async def test_an_endpoint_that_is_not_there_is_not_found(office: Office, act: Operation) -> None:
    with pytest.raises(NoSuchRecord):
        await office.run(act, endpoint="unknown")


async def test_an_endpoint_is_held_and_enabled_again(office: Office, lis: str) -> None:
    shown = await office.run(acts.PAUSE, endpoint=lis)
    held = await state(office, lis)
    enabled = await office.run(acts.ENABLE, endpoint=lis)

    assert (shown["state"], held, enabled["state"]) == ("paused", "paused", "active")
    assert "signing_secret" not in shown


async def test_an_endpoint_is_disabled(office: Office, lis: str) -> None:
    shown = await office.run(acts.DISABLE, endpoint=lis)

    assert (shown["state"], await state(office, lis)) == ("disabled", "disabled")


async def test_an_act_is_announced_and_recorded_for_its_tenant(
    office: Office, lab: str, lis: str
) -> None:
    before = len(await office.records())

    await office.run(acts.PAUSE, endpoint=lis)

    assert (await office.records())[before:] == [
        (lab, "endpoint.pause", status, [f"Endpoint/{lis}"]) for status in (BEGUN, 200)
    ]


async def test_an_endpoint_of_a_disabled_tenant_is_not_enabled(
    office: Office, lab: str, lis: str
) -> None:
    await office.run(acts.PAUSE, endpoint=lis)
    await office.run(tenants.DISABLE, tenant=lab)

    with pytest.raises(FhirpubError):
        await office.run(acts.ENABLE, endpoint=lis)

    assert await state(office, lis) != "active"


async def test_a_new_secret_is_shown_once(office: Office, lis: str) -> None:
    rotated = await office.run(acts.ROTATE, endpoint=lis, grace_seconds=60)
    shown = await office.run(endpoints.SHOW, endpoint=lis)

    assert rotated["signing_secret"].startswith("whsec_")
    assert "signing_secret" not in shown
    assert len(shown["old_secrets_until"]) == 1


@pytest.mark.parametrize("seconds", [-1, MAX_GRACE_SECONDS + 1])
async def test_an_old_secret_signs_for_a_time_within_bounds(
    office: Office, lis: str, seconds: int
) -> None:
    with pytest.raises(InvalidContent):
        await office.run(acts.ROTATE, endpoint=lis, grace_seconds=seconds)


@pytest.mark.parametrize("seconds", [0, MAX_GRACE_SECONDS])
async def test_an_old_secret_may_sign_as_long_as_the_bounds(
    office: Office, lis: str, seconds: int
) -> None:
    assert await office.run(acts.ROTATE, endpoint=lis, grace_seconds=seconds)


async def test_a_new_token_is_shown_once(office: Office, lis: str) -> None:
    rotated = await office.run(acts.ROTATE_TOKEN, endpoint=lis)

    assert rotated["token"]
    assert "token" not in await office.run(endpoints.SHOW, endpoint=lis)


async def test_the_numbers_of_an_endpoint_are_its_own(office: Office, lis: str) -> None:
    stats: Any = await office.run(acts.STATS, endpoint=lis)

    assert (stats["state"], stats["attempts"]) == ("active", 0)


async def test_the_secrets_of_all_tenants_are_encrypted_again(
    office: Office, lis: str, other: str
) -> None:
    await office.run(endpoints.ADD, tenant=other, url=URL)
    office.store.cipher.use([bytes(range(32)), *office.store.cipher.keys])
    before = len(await office.records())

    done = [await office.run(acts.RESEAL) for _ in range(2)]

    assert done == [{"resealed": 2}, {"resealed": 0}]
    assert {action for _, action, _, _ in (await office.records())[before:]} == {
        acts.RESEAL.audited_as
    }
    assert lis


def test_all_acts_are_among_the_operations() -> None:
    assert (*(act for act, *_ in ALL), acts.RESEAL) == acts.OPERATIONS
