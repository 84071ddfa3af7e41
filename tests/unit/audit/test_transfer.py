"""Chains are copied into another store as they are, with their checkpoints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.audit.record import Access, Agent, encode, key_of
from fhirpub.audit.transfer import transfer_trail
from fhirpub.errors import ConfigurationError
from fhirpub.storage.audit_contract import AuditQuery, SealedBlock
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import LAB, OTHER
from tests.audit_trail import NOON, a_record, seal
from tests.unit.audit.test_sealer import a_sealer, record


async def opened(path: Path) -> Store:
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    return store


@pytest.fixture
async def source(tmp_path: Path) -> AsyncGenerator[Store]:
    store, clock = await opened(tmp_path / "source.db"), HandClock()
    sealer = a_sealer(store, clock, checkpoint_seconds=0.0)
    for _ in range(3):
        for tenant in (LAB, OTHER, ""):
            await record(store, clock, tenant)
        await sealer.seal()
        clock.forward(seconds=5)
    yield store
    await store.stop()


@pytest.fixture
async def target(tmp_path: Path) -> AsyncGenerator[Store]:
    store = await opened(tmp_path / "target.db")
    yield store
    await store.stop()


async def test_every_chain_is_copied_with_its_checkpoints_and_keys(
    source: Store, target: Store
) -> None:
    assert await transfer_trail(source, target) == 9

    for tenant in (LAB, OTHER, ""):
        assert await target.audit_chain(tenant) == await source.audit_chain(tenant)
        assert await target.audit_checkpoints(tenant) == await source.audit_checkpoints(tenant)
    found = await target.find_audit_blocks(LAB, AuditQuery(keys=(key_of(LAB, "agent", "c"),)))
    assert len(found) == 3


async def test_a_copy_that_is_made_again_adds_what_is_new(source: Store, target: Store) -> None:
    await transfer_trail(source, target)
    clock = HandClock(HandClock().now + 3_600_000)
    await record(source, clock)
    await a_sealer(source, clock).seal()

    assert await transfer_trail(source, target) == 1
    assert await target.audit_chain(LAB) == await source.audit_chain(LAB)


@pytest.mark.parametrize("number", [1, 4])
async def test_a_target_with_a_trail_of_its_own_is_refused(
    source: Store, target: Store, number: int
) -> None:
    (block, *_) = await source.audit_chain(LAB)
    line = encode(Access(action="search"), Agent(client="c"), at=1)
    other = replace(block, number=number, records=line + b"\n")
    await target.put_audit_block(SealedBlock(block=other, keys=frozenset()))

    with pytest.raises(ConfigurationError, match="of its own"):
        await transfer_trail(source, target)


async def test_the_tenant_of_a_chain_that_differs_is_named(source: Store, target: Store) -> None:
    (block, *_) = await source.audit_chain(LAB)
    other = replace(block, first=block.first + 1)
    await target.put_audit_block(SealedBlock(block=other, keys=frozenset()))

    with pytest.raises(ConfigurationError) as refused:
        await transfer_trail(source, target)

    assert str(refused.value) == (
        f"the target has an audit trail of tenant {LAB} of its own: it is not a copy of this store"
    )


async def test_a_chain_of_the_service_that_differs_is_named(source: Store, target: Store) -> None:
    (block, *_) = await source.audit_chain("")
    other = replace(block, number=4)
    await target.put_audit_block(SealedBlock(block=other, keys=frozenset()))

    with pytest.raises(ConfigurationError, match="an audit trail of the service of its own"):
        await transfer_trail(source, target)


async def test_a_copy_without_anything_new_copies_nothing(source: Store, target: Store) -> None:
    await transfer_trail(source, target)

    assert await transfer_trail(source, target) == 0


async def test_a_chain_whose_beginning_was_deleted_is_copied(source: Store, target: Store) -> None:
    chain = await source.audit_chain(LAB)
    gone = [SealedBlock(block=one, keys=frozenset()) for one in chain[:2]]
    await source.delete_audit_blocks(LAB, gone)

    await transfer_trail(source, target)

    assert [block.number for block in await target.audit_chain(LAB)] == [3]


async def test_a_chain_of_more_than_a_page_is_copied_whole(source: Store, target: Store) -> None:
    await seal(source, "long", [a_record(at=NOON + 3_600_000 * hour) for hour in range(101)])

    assert await transfer_trail(source, target) == 9 + 101
    assert (await target.audit_end("long"))[0] == 101


async def test_a_target_that_has_more_is_refused_though_nothing_is_left_to_copy(
    source: Store, target: Store
) -> None:
    await transfer_trail(source, target)
    await record(target, HandClock(HandClock().now + 3_600_000))
    await a_sealer(target, HandClock()).seal()

    with pytest.raises(ConfigurationError, match="of its own"):
        await transfer_trail(source, target)


async def test_checkpoints_of_more_than_a_page_are_copied(source: Store, target: Store) -> None:
    numbers = range(1, 1_002)
    await asyncio.gather(*(source.put_audit_checkpoint(LAB, one, "signed") for one in numbers))

    await transfer_trail(source, target)

    assert await target.audit_checkpoints(LAB, after=1_000) == [(1_001, "signed")]


async def test_a_copy_that_is_made_again_after_a_deletion_copies_nothing(
    source: Store, target: Store
) -> None:
    await transfer_trail(source, target)
    for tenant in (LAB, OTHER, ""):
        chain = await source.audit_chain(tenant)
        gone = [SealedBlock(block=one, keys=frozenset()) for one in chain[:2]]
        await source.delete_audit_blocks(tenant, gone)

    assert await transfer_trail(source, target) == 0
