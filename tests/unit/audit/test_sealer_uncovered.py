"""A process that takes over signs the ends of chains that the one before it has not signed."""

from __future__ import annotations

from fhirpub.storage.store import Store
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import LAB, OTHER
from tests.unit.audit.test_sealer import a_sealer, record


async def signed(store: Store, tenant: str = LAB) -> list[int]:
    return [number for number, _signed in await store.audit_checkpoints(tenant)]


async def with_an_unsigned_end(store: Store, clock: HandClock) -> None:
    """Leave a chain of two blocks, of which the first is signed."""
    first = a_sealer(store, clock, "a", checkpoint_seconds=3_600.0)
    for _ in range(2):
        await record(store, clock, LAB)
        await first.seal()
    clock.forward(seconds=60)


async def test_the_end_is_signed_although_a_block_before_it_is(store: Store) -> None:
    clock = HandClock()
    await with_an_unsigned_end(store, clock)
    assert await signed(store) == [1]

    await a_sealer(store, clock, "b").seal()

    assert await signed(store) == [1, 2]


async def test_an_end_that_is_signed_is_not_signed_again(store: Store) -> None:
    clock = HandClock()
    await record(store, clock, LAB)
    await a_sealer(store, clock, "a").seal()
    before = await store.audit_checkpoints(LAB)
    clock.forward(seconds=60)

    await a_sealer(store, clock, "b").seal()

    assert await store.audit_checkpoints(LAB) == before


async def test_the_ends_of_all_tenants_are_looked_for(store: Store) -> None:
    clock = HandClock()
    first = a_sealer(store, clock, "a", checkpoint_seconds=3_600.0)
    await first.seal()
    for tenant in (LAB, OTHER):
        await record(store, clock, tenant)
    await first.seal()
    clock.forward(seconds=60)

    await a_sealer(store, clock, "b").seal()

    assert [await signed(store, tenant) for tenant in (LAB, OTHER)] == [[1], [1]]
