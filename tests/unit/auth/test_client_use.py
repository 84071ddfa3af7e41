from __future__ import annotations

import pytest

from fhirpub.auth import client_use
from fhirpub.auth.client_use import ClientUses
from fhirpub.errors import StoreUnavailable
from tests.unit.auth.conftest import HandClock, MemoryAccess, World, bearer

HOUR = 3_600


@pytest.fixture
def access() -> MemoryAccess:
    return MemoryAccess()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def uses(access: MemoryAccess, clock: HandClock) -> ClientUses:
    return ClientUses(access, clock=clock)


async def test_the_first_use_is_recorded_soon(
    uses: ClientUses, access: MemoryAccess, clock: HandClock
) -> None:
    uses.note("ward")
    await uses.record()

    assert access.uses == {"ward": clock()}


async def test_of_many_uses_one_an_hour_is_recorded(
    uses: ClientUses, access: MemoryAccess, clock: HandClock
) -> None:
    for _ in range(2 * HOUR):
        uses.note("ward")
        await uses.record()
        clock.pass_seconds(1)

    assert access.writes_of_uses == 2


async def test_the_uses_of_all_clients_are_one_write(
    uses: ClientUses, access: MemoryAccess
) -> None:
    for number in range(100):
        uses.note(str(number))
    await uses.record()

    assert (access.writes_of_uses, len(access.uses)) == (1, 100)


async def test_nothing_is_written_without_a_use(uses: ClientUses, access: MemoryAccess) -> None:
    await uses.record()
    await uses.record(at_once=True)

    assert access.writes_of_uses == 0


async def test_at_the_end_a_use_of_this_hour_is_recorded_too(
    uses: ClientUses, access: MemoryAccess, clock: HandClock
) -> None:
    uses.note("ward")
    await uses.record()
    clock.pass_seconds(5)
    uses.note("ward")
    await uses.record(at_once=True)

    assert access.uses == {"ward": clock()}


async def test_a_use_that_could_not_be_recorded_is_recorded_later(
    uses: ClientUses, access: MemoryAccess, clock: HandClock
) -> None:
    uses.note("ward")
    access.away = True
    with pytest.raises(StoreUnavailable):
        await uses.record()
    access.away = False
    await uses.record()

    assert access.uses == {"ward": clock()}


async def test_of_too_many_clients_those_used_first_are_forgotten(
    uses: ClientUses, access: MemoryAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_use, "_MAX_CLIENTS", 2)
    for client in ("a", "b", "a", "c"):
        uses.note(client)
    await uses.record()

    assert set(access.uses) == {"a", "c"}


async def test_a_token_that_is_granted_or_used_is_a_use_of_its_client(world: World) -> None:
    token = await world.token()
    world.clock.pass_seconds(HOUR)
    await world.tokens.caller(bearer(token))
    await world.tokens.stop()

    assert world.access.uses == {world.client.id: world.clock()}


async def test_a_request_with_a_token_that_is_known_writes_nothing(world: World) -> None:
    token = await world.token()
    await world.tokens.caller(bearer(token))
    for _ in range(100):
        assert world.tokens.cached_caller(f"Bearer {token}") is not None

    assert world.access.writes_of_uses == 0


async def test_at_once_a_use_of_the_next_millisecond_is_recorded(
    uses: ClientUses, access: MemoryAccess, clock: HandClock
) -> None:
    uses.note("ward")
    await uses.record(at_once=True)
    clock.now += 1
    uses.note("ward")
    await uses.record(at_once=True)
    await uses.record(at_once=True)

    assert access.uses == {"ward": clock()}
    assert access.writes_of_uses == 2


@pytest.mark.parametrize(("milliseconds", "writes"), [(3_599_999, 1), (3_600_000, 2)])
async def test_a_use_is_recorded_from_an_hour_after_the_recorded_one(
    uses: ClientUses, access: MemoryAccess, clock: HandClock, milliseconds: int, writes: int
) -> None:
    uses.note("ward")
    await uses.record()
    clock.now += milliseconds
    uses.note("ward")
    await uses.record()

    assert access.writes_of_uses == writes


async def test_of_a_client_that_is_forgotten_nothing_is_kept(
    uses: ClientUses, access: MemoryAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_use, "_MAX_CLIENTS", 1)
    for client in ("a", "b", "a"):
        uses.note(client)
        await uses.record()

    assert access.writes_of_uses == 3
    assert {*uses._recorded} == {"a"}


async def test_the_hour_of_one_client_is_not_that_of_another(
    uses: ClientUses, access: MemoryAccess, clock: HandClock
) -> None:
    uses.note("ward")
    await uses.record()
    clock.pass_seconds(60)
    uses.note("desk")

    await uses.record()

    assert access.uses == {"ward": clock() - 60_000, "desk": clock()}
