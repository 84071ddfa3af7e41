"""Reads of one client at the same time: shared, cancelled, and forgotten while they go on."""

from __future__ import annotations

import asyncio

import pytest

from fhirpub.auth.client_status import ClientStatus, ClientStatusCache, TenantStatusCache
from fhirpub.storage.contract import Client
from fhirpub.tenant import Tenant
from tests.unit.auth.conftest import MemoryAccess, World


class Held(MemoryAccess):
    """Answers each question about a client when it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: list[asyncio.Event] = []

    async def client(self, client_id: str) -> Client | None:
        gate = asyncio.Event()
        self.gates.append(gate)
        await gate.wait()
        return await super().client(client_id)


@pytest.fixture
async def held(world: World) -> Held:
    access = Held()
    await access.put_tenant(world.tenant)
    await access.put_client(world.client)
    return access


async def begun(standings: ClientStatusCache, client_id: str) -> asyncio.Task[ClientStatus]:
    task = asyncio.create_task(standings.of(client_id))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_the_end_of_a_forgotten_read_leaves_the_one_after_it_shared(
    held: Held, world: World
) -> None:
    standings = ClientStatusCache(held, clock=world.clock)
    first = await begun(standings, world.client.id)
    standings.forget(world.client.id)
    second = await begun(standings, world.client.id)
    held.gates[0].set()
    await first

    third = await begun(standings, world.client.id)

    assert len(held.gates) == 2
    held.gates[1].set()
    assert await second == await third


async def test_a_caller_that_goes_away_leaves_the_read_to_the_others(
    held: Held, world: World
) -> None:
    standings = ClientStatusCache(held, clock=world.clock)
    first = await begun(standings, world.client.id)
    second = await begun(standings, world.client.id)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    held.gates[0].set()

    assert (await second).client == world.client


async def test_what_was_read_before_it_was_forgotten_does_not_count(
    held: Held, world: World
) -> None:
    standings = ClientStatusCache(held, clock=world.clock)
    first = await begun(standings, world.client.id)
    standings.forget(world.client.id)
    held.gates[0].set()
    await first

    await begun(standings, world.client.id)

    assert len(held.gates) == 2
    for gate in held.gates:
        gate.set()


class Ticking(MemoryAccess):
    """Takes ten seconds to answer a question about a tenant."""

    world: World

    async def tenant(self, tenant_id: str) -> Tenant | None:
        self.world.clock.pass_seconds(10)
        return await super().tenant(tenant_id)


@pytest.mark.parametrize("kind", [ClientStatusCache, TenantStatusCache])
async def test_a_standing_counts_from_the_question_and_not_from_the_answer(
    world: World, kind: type[ClientStatusCache]
) -> None:
    access = Ticking()
    access.world = world
    await access.put_tenant(world.tenant)
    await access.put_client(world.client)
    began = world.clock()
    id_ = world.client.id if kind is ClientStatusCache else world.tenant.id

    standing = await kind(access, clock=world.clock).of(id_)

    assert standing.tenant == world.tenant
    assert (standing.read, standing.until) == (began, began + 30_000)
