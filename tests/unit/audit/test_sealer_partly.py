"""Blocks of some tenants that were added before the sealing failed: none is sealed twice."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from fhirpub.audit.chain import records_of
from fhirpub.audit.recorder import Recorder
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.audit_contract import AuditBlock, SealedBlock, UnsealedAudit
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import LAB, OTHER
from tests.unit.audit.test_sealer import a_sealer
from tests.unit.audit.test_sealer_turns import a_line

TENANTS = (LAB, OTHER)


class Partly(SqliteStore):
    """A store that adds the first block alone, once."""

    problem: StoreUnavailable | None = None
    fails = True
    is_away = False

    async def seal_audit(self, blocks: Sequence[SealedBlock], unsealed: UnsealedAudit) -> bool:
        if not self.fails:
            return await super().seal_audit(blocks, unsealed)
        self.fails = False
        await self.put_audit_block(blocks[0])
        self.is_away = self.problem is not None and self.problem.reason == "still away"
        if self.problem is not None:
            raise self.problem
        return False

    async def audit_chain(
        self, tenant: str, *, after: int = 0, limit: int = 100
    ) -> Sequence[AuditBlock]:
        if self.is_away:
            raise StoreUnavailable("still away")
        return await super().audit_chain(tenant, after=after, limit=limit)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Partly]:
    store = Partly(tmp_path / "fhirpub.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


async def seal_twice(store: Partly, clock: HandClock) -> list[int]:
    """Note a record of each of two tenants, and seal; return how many are in each chain."""
    recorder = Recorder(store, deadline_seconds=30)
    sealer = a_sealer(store, clock, recorder=recorder)
    for tenant in TENANTS:
        recorder.note(tenant, a_line(clock), at=clock())
    try:
        await sealer.seal()
    except StoreUnavailable:
        assert store.problem is not None
    store.is_away = False
    await sealer.seal()
    chains = [await store.audit_chain(tenant) for tenant in TENANTS]
    return [sum(len(records_of(block)) for block in chain) for chain in chains]


@pytest.mark.parametrize("problem", [None, StoreUnavailable("away")])
async def test_what_is_in_a_block_is_not_sealed_again(
    store: Partly, clock: HandClock, problem: StoreUnavailable | None
) -> None:
    store.problem = problem

    assert await seal_twice(store, clock) == [1, 1]


async def test_a_block_that_was_added_is_signed(store: Partly, clock: HandClock) -> None:
    await seal_twice(store, clock)

    assert [len(await store.audit_checkpoints(tenant)) for tenant in TENANTS] == [1, 1]


async def test_what_may_be_in_a_block_is_rather_sealed_twice_than_lost(
    store: Partly, clock: HandClock
) -> None:
    store.problem = StoreUnavailable("still away")

    assert sorted(await seal_twice(store, clock)) == [1, 2]
