"""What a new client is, and the limits and ends of what it has."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from fhirpub.auth.clients import (
    MAX_SCOPE_CHARACTERS,
    NewClient,
    access_end,
    add_client,
    authenticate,
    check_client,
    disable_client,
    edit_client,
    ends_soon,
    is_admitted,
    rotate_client,
    secrets_end,
    set_scopes,
)
from fhirpub.auth.tenants import add_tenant, change_tenant
from fhirpub.errors import ConfigurationError, NoSuchRecord, NotPossible
from fhirpub.storage.contract import Client, ClientSecret
from tests.unit.auth.conftest import World

DAY_MS = 86_400_000


def new_client(world: World, **changes: object) -> NewClient:
    new = NewClient(tenant=world.tenant.id, name="other", environment="sandbox")
    return replace(new, **changes)  # type: ignore[arg-type]


def with_ends(client: Client, *ends: int | None) -> Client:
    return replace(client, secrets=tuple(ClientSecret(b"x" * 32, end) for end in ends))


async def test_a_client_is_what_it_was_added_as(world: World) -> None:
    new = new_client(
        world,
        name="Ward 7",
        environment="production",
        scopes=["system/*.rs"],
        networks=["10.0.0.0/255.0.0.0"],
        id="ward-7",
    )

    client, _ = await add_client(world.access, new, clock=world.clock)

    assert replace(client, secrets=()) == Client(
        id="ward-7",
        tenant=world.tenant.id,
        name="Ward 7",
        environment="production",
        created=world.clock(),
        secrets=(),
        scopes=("system/*.rs",),
        networks=("10.0.0.0/8",),
    )
    assert await world.access.client("ward-7") == client


async def test_a_client_without_an_id_gets_a_random_uuid(world: World) -> None:
    made = [await add_client(world.access, new_client(world), clock=world.clock) for _ in "12"]

    assert [UUID(client.id).version for client, _ in made] == [4, 4]
    assert made[0][0].id != made[1][0].id


async def test_a_secret_has_no_end_unless_days_are_given(world: World) -> None:
    client, secret = await add_client(world.access, new_client(world), clock=world.clock)

    assert secret.startswith("fhirpub_")
    assert [one.expires for one in client.secrets] == [None]


async def test_an_id_that_is_taken_is_refused_and_its_client_kept(world: World) -> None:
    with pytest.raises(NotPossible) as refused:
        await add_client(world.access, new_client(world, id=world.client.id), clock=world.clock)

    assert str(refused.value) == f"there is a client {world.client.id} already"
    assert await world.access.client(world.client.id) == world.client


async def test_networks_that_are_none_are_refused_with_a_new_client(world: World) -> None:
    with pytest.raises(ConfigurationError, match=r"^'x' is no network"):
        await add_client(world.access, new_client(world, networks=["x"]), clock=world.clock)

    assert await world.access.clients() == [world.client]


async def test_networks_that_are_none_leave_a_client_as_it_was(world: World) -> None:
    with pytest.raises(ConfigurationError, match=r"^'x' is no network"):
        await edit_client(world.access, world.client.id, name="new", networks=["x"])

    assert await world.access.client(world.client.id) == world.client


async def test_no_networks_let_a_client_call_from_everywhere_again(world: World) -> None:
    await edit_client(world.access, world.client.id, networks=["::1"])

    edited = await edit_client(world.access, world.client.id, networks=[])

    assert edited == world.client


async def test_a_client_may_lose_its_name(world: World) -> None:
    assert (await edit_client(world.access, world.client.id, name="")).name == ""


async def test_an_unknown_client_is_not_edited(world: World) -> None:
    with pytest.raises(NoSuchRecord) as refused:
        await edit_client(world.access, "unknown", name="new")

    assert str(refused.value) == "there is no client unknown"


async def test_a_hundred_networks_are_allowed_and_one_more_is_named_too_many() -> None:
    networks = [f"10.0.{number}.0/24" for number in range(101)]
    check_client((), networks[:100], "")

    with pytest.raises(ConfigurationError) as refused:
        check_client((), networks, "")

    assert str(refused.value) == "there are more than 100 networks: name larger ones"


async def test_scopes_have_1500_characters_at_most(world: World) -> None:
    longest = ["a" * 700, "b" * (MAX_SCOPE_CHARACTERS - 701)]
    await set_scopes(world.access, world.client.id, longest)

    with pytest.raises(ConfigurationError) as refused:
        await set_scopes(world.access, world.client.id, [longest[0], longest[1] + "b"])

    assert str(refused.value) == (
        "the scopes have more than 1500 characters, too many for a token"
    )


async def test_long_scopes_that_are_none_are_named_rather_than_measured() -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_client(["two words", "a" * 1_500], (), "")

    assert str(refused.value) == "'two words' is no scope: write system/DiagnosticReport.cruds"


async def test_scopes_that_are_set_are_stored(world: World) -> None:
    changed = await set_scopes(world.access, world.client.id, ["system/*.rs", "x"])

    assert changed == replace(world.client, scopes=("system/*.rs", "x"))
    assert await world.access.client(world.client.id) == changed


async def test_disabling_changes_nothing_else_of_a_client(world: World) -> None:
    disabled = await disable_client(world.access, world.client.id)

    assert disabled == replace(world.client, disabled=True)
    assert await world.access.client(world.client.id) == disabled


async def test_a_rotation_keeps_the_old_secret_first_with_its_end(world: World) -> None:
    client, _ = await rotate_client(
        world.access, world.client.id, grace_seconds=60, valid_days=1, clock=world.clock
    )

    now = world.clock()
    assert [one.expires for one in client.secrets] == [now + 60_000, now + DAY_MS]
    assert client.secrets[0].digest == world.client.secrets[0].digest
    assert replace(client, secrets=()) == replace(world.client, secrets=())


async def test_a_rotation_without_days_makes_a_secret_without_an_end(world: World) -> None:
    client, _ = await rotate_client(
        world.access, world.client.id, grace_seconds=60, clock=world.clock
    )

    assert client.secrets[-1].expires is None


async def test_a_rotation_drops_the_secrets_that_have_ended(world: World) -> None:
    await rotate_client(world.access, world.client.id, grace_seconds=60, clock=world.clock)
    world.clock.pass_seconds(60)

    client, _ = await rotate_client(
        world.access, world.client.id, grace_seconds=600, clock=world.clock
    )

    assert len(client.secrets) == 2


async def test_a_proof_gives_the_client_and_its_tenant(world: World) -> None:
    other = await add_tenant(world.access, "Lab Dos", clock=world.clock)
    client, secret = await add_client(
        world.access, new_client(world, tenant=other.id), clock=world.clock
    )

    found = await authenticate(
        world.access, client.id, secret, environment="sandbox", clock=world.clock
    )

    assert found == (client, other)


async def test_a_client_whose_tenant_is_gone_is_not_proved(world: World) -> None:
    await world.access.put_client(replace(world.client, tenant="gone"))

    found = await authenticate(
        world.access, world.client.id, world.secret, environment="sandbox", clock=world.clock
    )

    assert found is None


async def test_a_client_is_admitted_in_its_environment_with_its_tenant(world: World) -> None:
    client, tenant = world.client, world.tenant

    assert is_admitted(client, tenant, environment="sandbox")
    assert not is_admitted(client, tenant, environment="production")
    assert not is_admitted(replace(client, disabled=True), tenant, environment="sandbox")
    assert not is_admitted(client, None, environment="sandbox")
    assert not is_admitted(client, replace(tenant, disabled=True), environment="sandbox")


async def test_a_disabled_client_of_a_tenant_that_is_enabled_again_stays_out(
    world: World,
) -> None:
    await disable_client(world.access, world.client.id)
    await change_tenant(world.access, world.tenant.id, disabled=True)
    await change_tenant(world.access, world.tenant.id, disabled=False)

    found = await authenticate(
        world.access, world.client.id, world.secret, environment="sandbox", clock=world.clock
    )

    assert found is None


@pytest.mark.parametrize(
    ("ends", "last"), [((), None), ((5,), 5), ((5, 9, 7), 9), ((5, None), None), ((None, 5), None)]
)
async def test_the_last_end_counts_and_one_without_an_end_outlives_all(
    world: World, ends: tuple[int | None, ...], last: int | None
) -> None:
    assert secrets_end(with_ends(world.client, *ends)) == last
    assert access_end(with_ends(world.client, *ends)) == last


@pytest.mark.parametrize(
    ("left", "is_soon"), [(30 * DAY_MS, False), (30 * DAY_MS - 1, True), (0, True), (-1, True)]
)
async def test_an_end_is_soon_within_less_than_30_days_or_past(
    world: World, left: int, *, is_soon: bool
) -> None:
    now = world.clock()

    assert ends_soon(with_ends(world.client, now + left), now) == (now + left if is_soon else None)


async def test_a_client_without_an_end_never_ends_soon(world: World) -> None:
    assert ends_soon(with_ends(world.client, None), world.clock()) is None
