"""What a client is answered whose revoked tokens are as many as are kept."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from fhirpub.auth import revocation
from fhirpub.auth.clients import NewClient, add_client
from fhirpub.auth.revocation import MAX_REVOKED, record_revocation
from fhirpub.auth.tenants import add_tenant
from fhirpub.errors import NoSuchRecord, Throttled
from fhirpub.storage.client_activity_contract import RevokedToken
from tests.unit.auth.conftest import HandClock, MemoryAccess, World


@pytest.fixture(autouse=True)
def two_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation, "MAX_REVOKED", 2)


class Swept(MemoryAccess):
    """A store that refuses one more, and has swept all by the time it is asked for them."""

    async def revoke_token(self, token: RevokedToken, *, most: int) -> bool:
        return False


async def record(world: World, jti: str, until: int) -> None:
    token = RevokedToken(world.client.id, jti, until)
    await record_revocation(world.access, token, clock=world.clock)


async def retry_after(world: World) -> int:
    with pytest.raises(Throttled) as refused:
        await record(world, "one-more", world.clock() + 1)
    return refused.value.retry_after


def test_a_thousand_tokens_of_a_client_are_kept() -> None:
    assert MAX_REVOKED == 1_000


@pytest.mark.parametrize(
    ("left", "seconds"),
    [
        (3_600_000, 3_600),
        (1, 3_600),
        (0, 3_600),
        (-1, 3_600),
        (-1_000, 3_599),
        (-1_799_500, 1_801),
        (-3_539_000, 61),
        (-3_540_000, 60),
        (-3_600_000, 60),
    ],
)
async def test_the_wait_is_until_the_first_that_expires_is_swept(
    world: World, left: int, seconds: int
) -> None:
    await record(world, "later", world.clock() + 7_200_000)
    await record(world, "first", world.clock() + left)

    assert await retry_after(world) == seconds


async def test_a_client_whose_tokens_were_swept_just_now_waits_a_minute() -> None:
    access, clock = Swept(), HandClock()
    tenant = await add_tenant(access, "Lab Uno", clock=clock)
    new = NewClient(tenant=tenant.id, name="ward", environment="sandbox")
    client, _ = await add_client(access, new, clock=clock)

    with pytest.raises(Throttled) as refused:
        await record_revocation(access, RevokedToken(client.id, "j", 1), clock=clock)

    assert refused.value.retry_after == 60


async def test_the_tokens_of_another_client_use_up_nothing(world: World) -> None:
    for jti in "ab":
        await world.access.revoke_token(RevokedToken("other", jti, 1), most=9)

    await record(world, "j", world.clock() + 1)

    kept = await world.access.revoked_tokens(world.client.id)
    assert kept == [RevokedToken(world.client.id, "j", world.clock() + 1)]


async def test_one_token_too_many_is_logged_and_not_kept(world: World) -> None:
    for jti in "ab":
        await record(world, jti, world.clock())

    with capture_logs() as lines:
        await retry_after(world)

    assert lines == [
        {
            "event": "too many tokens revoked",
            "log_level": "warning",
            "client": world.client.id,
            "most": 2,
        }
    ]
    assert len(await world.access.revoked_tokens(world.client.id)) == 2


async def test_the_refusal_names_the_client_that_is_unknown(world: World) -> None:
    with capture_logs() as lines, pytest.raises(NoSuchRecord) as refused:
        await record_revocation(world.access, RevokedToken("x", "j", 1), clock=world.clock)

    assert str(refused.value) == "there is no client x"
    assert lines == []
    assert await world.access.revoked_tokens("x") == []
