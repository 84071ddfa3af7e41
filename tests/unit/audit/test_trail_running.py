"""What goes on beside requests while a trail runs, after failures as well."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.audit import trail as trail_module
from fhirpub.audit.sealer import LEASE
from fhirpub.audit.trail import SERVICE
from fhirpub.config.audit import AuditConfig
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import Client
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import LAB
from tests.unit.audit.test_sealer import a_sealer
from tests.unit.audit.test_trail import ADDRESS, Away, Parts, a_trail, reading
from tests.waiting import until


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncGenerator[Parts]:
    store = Away(tmp_path / "fhirpub.db", deadline_seconds=10)
    await store.start()
    yield a_trail(store, HandClock(), AuditConfig())
    await store.stop()


async def test_refusals_are_recorded_while_the_trail_runs(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trail_module, "REFUSALS_SECONDS", 0)

    async with parts.trail.running():
        parts.trail.count_refusal("token", 401, address=ADDRESS)
        await until(lambda: not parts.trail._refusals)


async def test_refusals_are_recorded_after_a_round_that_failed(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trail_module, "REFUSALS_SECONDS", 0)
    rounds: list[str] = []

    async def note_refusals() -> None:
        rounds.append("")
        if len(rounds) == 1:
            raise StoreUnavailable("away")

    parts.trail.note_refusals = note_refusals  # type: ignore[method-assign]
    async with parts.trail.running():
        await until(lambda: len(rounds) > 2)


async def test_records_expire_while_the_trail_runs(parts: Parts) -> None:
    begun = asyncio.Event()

    async def delete() -> None:
        begun.set()

    parts.trail._sealer.delete_expired_for_ever = delete  # type: ignore[method-assign]
    async with parts.trail.running():
        async with asyncio.timeout(30):
            await begun.wait()


async def test_refusals_are_stored_with_what_is_settled_though_another_seals(
    parts: Parts,
) -> None:
    await a_sealer(parts.store, parts.clock, "b").seal()
    parts.trail.count_refusal("token", 401, address=ADDRESS)

    await parts.trail.settle()

    tenants = [one.tenant for one in (await parts.store.unsealed_audit(limit=9)).entries]
    assert tenants == [SERVICE]


async def test_the_end_waits_for_a_seal_that_was_under_way(parts: Parts) -> None:
    """Else what that one has taken would neither be sealed nor stored if it fails."""
    gate, asked = asyncio.Event(), asyncio.Event()
    store = parts.store

    async def unsealed_audit(**_given: object) -> None:
        asked.set()
        await gate.wait()
        raise StoreUnavailable("away")

    parts.recorder.is_sealed_here = True  # so that what is noted is taken, and not flushed
    async with parts.trail.running():
        await until(lambda: parts.trail._sealer._leases.held(LEASE))
        store.unsealed_audit = unsealed_audit  # type: ignore[method-assign,assignment]
        parts.trail.note(LAB, reading)
        await asyncio.wait_for(asked.wait(), 30)
        asyncio.get_running_loop().call_later(0.05, gate.set)

    del store.unsealed_audit
    assert len((await store.unsealed_audit(limit=9)).entries) == 1


async def test_refusals_that_come_while_others_are_recorded_are_counted(parts: Parts) -> None:
    found = parts.store.client

    async def client(client_id: str) -> Client | None:
        parts.trail.count_refusal("token", 401, address="192.0.2.8")
        return await found(client_id)

    parts.store.client = client  # type: ignore[method-assign]
    parts.trail.count_refusal("token", 401, address=ADDRESS, client="guess")

    await parts.trail.settle()
    records = await parts.settled(SERVICE)

    assert [one["address"] for one in records] == [ADDRESS, "192.0.2.8"]
