"""Records that have been kept for long enough are deleted by the process that seals."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from fhirpub.audit import sealer as module
from fhirpub.audit.sealer import LEASE, Sealer
from fhirpub.runtime.clock import DAY_MS
from fhirpub.storage.store import Store
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import LAB, OTHER
from tests.unit.audit.test_sealer import a_sealer, record
from tests.waiting import until


@pytest.mark.parametrize(("later", "left"), [(0, [1, 2]), (1, [2])])
async def test_records_are_kept_for_the_days_of_the_setting(
    store: Store, clock: HandClock, later: int, left: list[int]
) -> None:
    sealer = a_sealer(store, clock, keep_days=3)
    for _ in range(2):
        await record(store, clock)
        await sealer.seal()
    clock.now += 3 * DAY_MS + later

    with capture_logs() as logged:
        await sealer.delete_expired()

    assert [block.number for block in await store.audit_chain(LAB)] == left
    lines = [(one["event"], one["blocks"], one["tenant"]) for one in logged]
    assert lines == ([("audit records deleted", 1, LAB)] if later else [])


async def test_records_of_every_tenant_expire(store: Store, clock: HandClock) -> None:
    sealer = a_sealer(store, clock, keep_days=1)
    for _ in range(2):
        for tenant in (LAB, OTHER):
            await record(store, clock, tenant)
        await sealer.seal()
    clock.now += 2 * DAY_MS

    await sealer.delete_expired()

    for tenant in (LAB, OTHER):
        assert [block.number for block in await store.audit_chain(tenant)] == [2]


async def deletes(sealer: Sealer, store: Store, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Let the first round of deletions pass; return whether it deleted something."""
    passed = asyncio.Event()

    async def rest(seconds: float) -> None:
        if seconds < module._RETENTION_SECONDS:
            return
        passed.set()
        await asyncio.Event().wait()

    # Its own name alone: a service in another thread of this process seals, too.
    own = SimpleNamespace(**{**vars(asyncio), "sleep": rest})
    monkeypatch.setattr(module, "asyncio", own)
    before = await store.audit_chain(LAB)
    running = asyncio.create_task(sealer.delete_expired_for_ever())
    await until(lambda: passed.is_set() or running.done())
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return await store.audit_chain(LAB) != before


@pytest.mark.parametrize(("keep_days", "leads", "expected"),
                         [(1, True, True), (1, False, False), (0, True, False)])  # fmt: skip
async def test_records_are_deleted_by_the_process_that_seals_if_they_end(
    store: Store,
    clock: HandClock,
    monkeypatch: pytest.MonkeyPatch,
    keep_days: int,
    *,
    leads: bool,
    expected: bool,
) -> None:
    sealer = a_sealer(store, clock, keep_days=keep_days)
    for _ in range(2):
        await record(store, clock)
        await sealer.seal()
    clock.now += 2 * DAY_MS
    if leads:
        await sealer.seal()

    assert sealer._leases.held(LEASE) is leads
    assert await deletes(sealer, store, monkeypatch) is expected
