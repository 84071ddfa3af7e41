from __future__ import annotations

import asyncio
import hashlib
import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from fhirpub.auth.clients import (
    NewClient,
    add_client,
    authenticate,
    disable_client,
    edit_client,
    rotate_client,
    secrets_end,
    set_scopes,
)
from fhirpub.auth.tenants import change_tenant
from fhirpub.errors import ConfigurationError, NoSuchRecord
from tests.unit.auth.conftest import MemoryAccess, World


async def proved(world: World, secret: str, *, client_id: str = "", here: str = "sandbox") -> bool:
    found = await authenticate(
        world.access, client_id or world.client.id, secret, environment=here, clock=world.clock
    )
    return found is not None


async def test_a_secret_has_256_random_bits_and_only_its_digest_is_kept(world: World) -> None:
    kept = await world.access.client(world.client.id)

    assert kept is not None
    assert len(world.secret.removeprefix("fhirpub_")) == 43
    assert [secret.digest for secret in kept.secrets] == [
        hashlib.sha256(world.secret.encode()).digest()
    ]
    assert world.secret not in repr(kept)


@pytest.mark.parametrize(
    ("disabled", "problem", "message"),
    [(True, ConfigurationError, "is disabled"), (False, NoSuchRecord, "there is no tenant")],
)
async def test_a_client_needs_a_tenant_that_is_there_and_enabled(
    world: World, *, disabled: bool, problem: type[Exception], message: str
) -> None:
    tenant = world.tenant.id if disabled else "00000000-0000-4000-8000-000000000000"
    await change_tenant(world.access, world.tenant.id, disabled=True)

    with pytest.raises(problem, match=message):
        await add_client(
            world.access,
            NewClient(tenant=tenant, name="", environment="sandbox"),
            clock=world.clock,
        )


@pytest.mark.parametrize("scopes", [("two words",), ("",), ('qu"ote',), ("system/*.rs",) * 200])
async def test_scopes_that_no_token_can_carry_are_refused(
    world: World, scopes: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigurationError):
        await add_client(
            world.access,
            NewClient(tenant=world.tenant.id, name="", environment="sandbox", scopes=scopes),
            clock=world.clock,
        )


async def test_all_that_is_no_scope_is_reported_at_once(world: World) -> None:
    with pytest.raises(ConfigurationError) as refused:
        await add_client(
            world.access,
            NewClient(
                tenant=world.tenant.id,
                name="",
                environment="sandbox",
                scopes=("two words", "system/*.rs", 'qu"ote'),
            ),
            clock=world.clock,
        )

    assert [line.partition(" is ")[0] for line in str(refused.value).splitlines()] == [
        "'two words'",
        "'qu\"ote'",
    ]


async def test_more_networks_than_a_process_compares_quickly_are_refused(world: World) -> None:
    networks = [f"10.0.{number}.0/24" for number in range(101)]

    with pytest.raises(ConfigurationError, match="more than 100 networks"):
        await edit_client(world.access, world.client.id, networks=networks)

    assert (await edit_client(world.access, world.client.id, networks=networks[:100])).networks


async def test_a_network_that_is_named_twice_is_kept_once(world: World) -> None:
    networks = ["10.0.0.0/8", "10.0.0.0/255.0.0.0"]

    edited = await edit_client(world.access, world.client.id, networks=networks)

    assert edited.networks == ("10.0.0.0/8",)


async def test_an_edit_leaves_what_it_does_not_name(world: World) -> None:
    networks = (await edit_client(world.access, world.client.id, networks=["::1"])).networks

    renamed = await edit_client(world.access, world.client.id, name="new")

    assert renamed == replace(world.client, name="new", networks=networks)


async def test_two_secrets_work_during_a_rotation_and_the_old_one_ends(world: World) -> None:
    _, new = await rotate_client(
        world.access, world.client.id, grace_seconds=60, clock=world.clock
    )

    world.clock.pass_seconds(59.999)
    assert await proved(world, world.secret)
    assert await proved(world, new)
    world.clock.pass_seconds(0.001)
    assert not await proved(world, world.secret)
    assert await proved(world, new)


async def test_a_secret_with_an_end_works_until_then(world: World) -> None:
    client, secret = await add_client(
        world.access,
        NewClient(tenant=world.tenant.id, name="", environment="sandbox", valid_days=2),
        clock=world.clock,
    )

    world.clock.pass_seconds(2 * 86_400 - 0.001)
    assert await proved(world, secret, client_id=client.id)
    world.clock.pass_seconds(0.001)
    assert not await proved(world, secret, client_id=client.id)


async def test_the_end_of_a_client_is_that_of_its_last_secret(world: World) -> None:
    now = world.clock()
    assert secrets_end(world.client) is None

    client, _ = await rotate_client(
        world.access, world.client.id, grace_seconds=60, valid_days=3, clock=world.clock
    )

    assert secrets_end(client) == now + 3 * 86_400_000


async def test_no_grace_ends_every_older_secret_at_once(world: World) -> None:
    _, second = await rotate_client(
        world.access, world.client.id, grace_seconds=600, clock=world.clock
    )

    client, third = await rotate_client(
        world.access, world.client.id, grace_seconds=0, clock=world.clock
    )

    assert [await proved(world, name) for name in (world.secret, second, third)] == [
        False,
        False,
        True,
    ]
    assert len(client.secrets) == 1


async def test_rotating_twice_does_not_cut_off_the_secret_that_is_in_use(world: World) -> None:
    for _ in range(2):
        await rotate_client(world.access, world.client.id, grace_seconds=60, clock=world.clock)

    assert await proved(world, world.secret)


async def test_rotating_again_prolongs_no_secret_that_is_about_to_end(world: World) -> None:
    for grace_seconds in (60, 3600):
        await rotate_client(
            world.access, world.client.id, grace_seconds=grace_seconds, clock=world.clock
        )

    world.clock.pass_seconds(60)

    assert not await proved(world, world.secret)


async def test_rotating_leaves_a_disabled_client_disabled(world: World) -> None:
    await disable_client(world.access, world.client.id)

    _, new = await rotate_client(
        world.access, world.client.id, grace_seconds=60, clock=world.clock
    )

    assert not await proved(world, new)


async def test_a_client_that_is_rotated_while_it_is_disabled_stays_disabled(world: World) -> None:
    client_id = world.client.id

    await asyncio.gather(
        disable_client(world.access, client_id),
        rotate_client(world.access, client_id, grace_seconds=60, clock=world.clock),
    )

    kept = await world.access.client(client_id)
    assert kept is not None
    assert kept.disabled


async def test_of_two_rotations_at_once_both_new_secrets_work(world: World) -> None:
    rotating = (
        rotate_client(world.access, world.client.id, grace_seconds=60, clock=world.clock)
        for _ in range(2)
    )
    rotated = await asyncio.gather(*rotating)

    assert [await proved(world, secret) for _client, secret in rotated] == [True, True]


async def test_scopes_that_no_token_can_carry_are_not_set(world: World) -> None:
    with pytest.raises(ConfigurationError, match="two words"):
        await set_scopes(world.access, world.client.id, ["two words"])

    assert await world.access.client(world.client.id) == world.client


async def test_a_client_that_is_disabled_while_its_scopes_are_set_stays_disabled(
    world: World,
) -> None:
    client_id = world.client.id

    await asyncio.gather(
        disable_client(world.access, client_id),
        set_scopes(world.access, client_id, ["system/*.rs"]),
    )

    kept = await world.access.client(client_id)
    assert kept is not None
    assert (kept.disabled, kept.scopes) == (True, ("system/*.rs",))


async def test_an_unknown_client_can_not_be_changed() -> None:
    access = MemoryAccess()

    with pytest.raises(NoSuchRecord):
        await rotate_client(access, "nobody", grace_seconds=0, clock=lambda: 0)
    with pytest.raises(NoSuchRecord):
        await disable_client(access, "nobody")
    with pytest.raises(NoSuchRecord):
        await set_scopes(access, "nobody", ["system/*.rs"])


async def test_any_wrong_credential_proves_no_client(world: World) -> None:
    assert await proved(world, world.secret)
    assert not await proved(world, world.secret + "x")
    assert not await proved(world, "")
    assert not await proved(world, world.secret, client_id="nobody")
    assert not await proved(world, world.secret, client_id="\x00'; --")
    assert not await proved(world, world.secret, here="production")
    await disable_client(world.access, world.client.id)
    assert not await proved(world, world.secret)


async def test_a_client_of_a_disabled_tenant_is_not_proved(world: World) -> None:
    await change_tenant(world.access, world.tenant.id, disabled=True)

    assert not await proved(world, world.secret)


async def work_of(world: World, client_id: str, secret: str) -> tuple[list[str], list[str]]:
    """Return the number of reads, hashes and comparisons of one attempt."""
    calls: list[str] = []

    def note(_frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and function.__name__ in ("compare_digest", "openssl_sha256"):
            calls.append(function.__name__)

    world.access.reads.clear()
    sys.setprofile(note)
    try:
        await proved(world, secret, client_id=client_id)
    finally:
        sys.setprofile(None)
    return list(world.access.reads), calls


async def test_an_unknown_client_costs_the_same_reads_and_comparisons(world: World) -> None:
    known = await work_of(world, world.client.id, "wrong")
    right = await work_of(world, world.client.id, world.secret)
    unknown = await work_of(world, "nobody", "wrong")

    assert known == right == unknown
    assert known == (["client", "tenant"], ["openssl_sha256", "compare_digest"])


async def test_a_disabled_client_costs_the_same_as_a_wrong_secret(world: World) -> None:
    wrong = await work_of(world, world.client.id, "wrong")
    await disable_client(world.access, world.client.id)

    assert await work_of(world, world.client.id, world.secret) == wrong
