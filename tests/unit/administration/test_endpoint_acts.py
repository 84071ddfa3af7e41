"""Acts on endpoints: trials, secrets, states, and what each leaves in the trail."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import endpoint_acts as acts
from fhirpub.administration import endpoints, tenants
from fhirpub.administration.operation import Operation
from fhirpub.audit.record import BEGUN
from fhirpub.errors import ConfigurationError, InvalidContent, NoSuchRecord
from fhirpub.fhir.times import instant
from fhirpub.testing.contracts.webhooks.records import queue
from fhirpub.webhooks.management.endpoints import USUAL_GRACE_SECONDS
from fhirpub.webhooks.management.validation import MAX_GRACE_SECONDS
from tests.unit.administration.declared import declared
from tests.unit.administration.office import URL, Office

ALL = [
    (acts.PING, "POST", "/test", "endpoint.test"),
    (acts.VERIFY, "POST", "/verify", "endpoint.verify"),
    (acts.ROTATE, "POST", "/rotate-secret", "endpoint.secret.rotate"),
    (acts.ROTATE_TOKEN, "POST", "/rotate-token", "endpoint.token.rotate"),
    (acts.ENABLE, "POST", "/enable", "endpoint.enable"),
    (acts.PAUSE, "POST", "/pause", "endpoint.pause"),
    (acts.DISABLE, "POST", "/disable", "endpoint.disable"),
    (acts.STATS, "GET", "/stats", "endpoint.stats"),
]
NAMES = [act.command for act, *_ in ALL]


async def state(office: Office, endpoint: str) -> str:
    return str((await office.run(endpoints.SHOW, endpoint=endpoint))["state"])


@pytest.mark.parametrize(("act", "method", "path", "action"), ALL, ids=NAMES)
def test_each_act_has_its_address_and_its_name_in_the_trail(
    act: Operation, method: str, path: str, action: str
) -> None:
    assert (act.method, act.path) == (method, f"/endpoints/{{endpoint}}{path}")
    assert act.audited_as == action


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


async def test_a_new_secret_is_shown_once(office: Office, lis: str) -> None:
    rotated = await office.run(acts.ROTATE, endpoint=lis, grace_seconds=60)
    shown = await office.run(endpoints.SHOW, endpoint=lis)

    assert rotated["signing_secret"].startswith("whsec_")
    assert "signing_secret" not in shown
    assert len(shown["old_secrets_until"]) == 1


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        (acts.ROTATE, "endpoint.secret.rotate"),
        (acts.ROTATE_TOKEN, "endpoint.token.rotate"),
        (acts.PAUSE, "endpoint.pause"),
        (acts.DISABLE, "endpoint.disable"),
        (acts.ENABLE, "endpoint.enable"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
async def test_acts_on_an_endpoint_are_in_the_chain_of_its_tenant(
    office: Office, lab: str, lis: str, operation: Any, action: str
) -> None:
    before = len(await office.records())

    await office.run(operation, endpoint=lis)

    assert (await office.records())[before:] == [
        (lab, action, status, [f"Endpoint/{lis}"]) for status in (BEGUN, 200)
    ]


@pytest.mark.parametrize("operation", [acts.PING, acts.VERIFY])
async def test_a_trial_that_is_not_possible_is_recorded_as_refused(
    office: Office, lab: str, lis: str, operation: Any
) -> None:
    await office.run(endpoints.REMOVE, endpoint=lis)

    with pytest.raises(NoSuchRecord):
        await office.run(operation, endpoint=lis)

    tenant, action, status, _names = (await office.records())[-3]
    assert (tenant, action, status) == (lab, operation.action, 400)


@pytest.mark.parametrize("is_paused", [False, True])
async def test_no_endpoint_of_a_disabled_tenant_is_enabled(
    office: Office, lab: str, lis: str, *, is_paused: bool
) -> None:
    if is_paused:
        await office.run(acts.PAUSE, endpoint=lis)
    await office.run(tenants.DISABLE, tenant=lab)

    with pytest.raises(ConfigurationError, match="is disabled"):
        await office.run(acts.ENABLE, endpoint=lis)

    assert (await office.run(endpoints.SHOW, endpoint=lis))["state"] == "disabled"


@pytest.mark.parametrize(
    ("given", "seconds"), [({}, USUAL_GRACE_SECONDS), ({"grace_seconds": 60}, 60)]
)
async def test_an_old_signing_secret_also_signs_for_its_grace(
    office: Office, lis: str, given: dict[str, int], seconds: int
) -> None:
    rotated = await office.run(acts.ROTATE, endpoint=lis, **given)

    assert rotated["old_secrets_until"] == [instant(office.clock() + seconds * 1000)]
    assert rotated["signing_secret"]
    assert "token" not in rotated


@pytest.mark.parametrize("seconds", [-1, MAX_GRACE_SECONDS + 1])
async def test_a_grace_has_limits(office: Office, lis: str, seconds: int) -> None:
    for right in (0, MAX_GRACE_SECONDS):
        assert await office.run(acts.ROTATE, endpoint=lis, grace_seconds=right)

    with pytest.raises(InvalidContent, match="grace_seconds"):
        await office.run(acts.ROTATE, endpoint=lis, grace_seconds=seconds)


async def test_a_token_is_replaced_by_one_that_is_shown_once(office: Office, lis: str) -> None:
    rotated = await office.run(acts.ROTATE_TOKEN, endpoint=lis)
    again = await office.run(acts.ROTATE_TOKEN, endpoint=lis)

    assert rotated["token"]
    assert "token" not in await office.run(endpoints.SHOW, endpoint=lis)
    assert rotated["token"] != again["token"]
    assert "signing_secret" not in rotated


async def test_statistics_are_those_of_the_endpoint(office: Office, lab: str, lis: str) -> None:
    unused = await office.run(acts.STATS, endpoint=lis)
    assert (unused["state"], unused["attempts"]) == ("active", 0)
    await queue(office.store, 3, endpoint=lis, tenant=lab)

    stats = await office.run(acts.STATS, endpoint="lis")

    assert stats["last_sequence"] == 3
    assert stats["deliveries"]["pending"] == 3


async def test_nothing_is_sealed_again_that_is_under_the_first_key(
    office: Office, lis: str
) -> None:
    assert await office.run(acts.RESEAL) == {"resealed": 0}
    assert (await office.records())[-2:] == [
        ("", "endpoint.reseal", BEGUN, []),
        ("", "endpoint.reseal", 200, []),
    ]


@pytest.mark.usefixtures("lis")
async def test_the_secrets_of_all_tenants_are_encrypted_again(office: Office, other: str) -> None:
    await office.run(endpoints.ADD, tenant=other, url=URL)
    office.store.cipher.use([bytes(range(32)), *office.store.cipher.keys])
    before = len(await office.records())

    done = [await office.run(acts.RESEAL) for _ in range(2)]

    assert done == [{"resealed": 2}, {"resealed": 0}]
    assert {action for _, action, _, _ in (await office.records())[before:]} == {
        acts.RESEAL.audited_as
    }


def test_all_acts_are_among_the_operations() -> None:
    assert (*(act for act, *_ in ALL), acts.RESEAL) == acts.OPERATIONS


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(acts.OPERATIONS) == {
        "endpoint ping": [
            "POST /endpoints/{endpoint}/test 200",
            "creates a store, as endpoint.test",
            "path endpoint! string",
        ],
        "endpoint verify-endpoint": [
            "POST /endpoints/{endpoint}/verify 200",
            "creates a store, as endpoint.verify",
            "path endpoint! string",
        ],
        "endpoint rotate": [
            "POST /endpoints/{endpoint}/rotate-secret 200",
            "creates a store, as endpoint.secret.rotate",
            "path endpoint! string",
            "body grace_seconds integer >=0 <=604800",
            "body signing_secret string",
        ],
        "endpoint rotate-token": [
            "POST /endpoints/{endpoint}/rotate-token 200",
            "creates a store, as endpoint.token.rotate",
            "path endpoint! string",
            "body bearer_token string",
        ],
        "endpoint enable": [
            "POST /endpoints/{endpoint}/enable 200",
            "creates a store",
            "path endpoint! string",
        ],
        "endpoint pause": [
            "POST /endpoints/{endpoint}/pause 200",
            "creates a store",
            "path endpoint! string",
        ],
        "endpoint disable": [
            "POST /endpoints/{endpoint}/disable 200",
            "creates a store",
            "path endpoint! string",
        ],
        "endpoint stats": [
            "GET /endpoints/{endpoint}/stats 200",
            "creates a store",
            "path endpoint! string",
        ],
        "endpoint reseal": [
            "POST /endpoints/reseal 200",
            "creates a store",
        ],
    }
