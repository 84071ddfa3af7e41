"""Each round, the stop and the retention go on until nothing is left, whatever failed before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fhirpub.audit import retention
from fhirpub.audit import sealer as sealer_module
from fhirpub.audit.chain import records_of
from fhirpub.audit.checkpoint import checkpoint_of
from fhirpub.audit.outlets import Outlet
from fhirpub.audit.sealer import LEASE, Sealer
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import DAY_MS
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import LAB
from tests.unit.audit.test_sealer import a_sealer, read, record
from tests.unit.audit.test_sealer_turns import Failing
from tests.waiting import until


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Failing]:
    store = Failing(tmp_path / "fhirpub.db", deadline_seconds=10)
    store.problems = []
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one entry be sealed, and one block be deleted, at a time."""
    monkeypatch.setattr(sealer_module, "_BATCH_SIZE", 1)
    monkeypatch.setattr(sealer_module, "_PAUSE_OF_RETENTION", 0)
    monkeypatch.setattr(retention, "_BATCH_SIZE", 1)


async def waiting(store: Failing) -> int:
    return len((await store.unsealed_audit(limit=100)).entries)


async def run_until_paused(sealer: Sealer, store: Failing, rounds: int) -> list[int]:
    """Run some rounds; return how many entries wait after each."""
    left: list[int] = []
    done = asyncio.Event()

    async def pause() -> None:
        left.append(await waiting(store))
        if len(left) == rounds:
            done.set()
            await asyncio.Event().wait()

    sealer._pause = pause  # type: ignore[method-assign]
    running = asyncio.create_task(sealer.run())
    async with asyncio.timeout(30):
        await done.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return left


@pytest.mark.usefixtures("one_at_a_time")
async def test_a_round_seals_until_nothing_is_left(store: Failing, clock: HandClock) -> None:
    for _ in range(3):
        await record(store, clock)

    assert await run_until_paused(a_sealer(store, clock), store, 1) == [0]


@pytest.mark.parametrize(
    ("rounds", "logged"), [([False, False, False], 1), ([False, True, False], 2)]
)
async def test_a_failure_is_logged_once_until_a_round_succeeds(
    store: Failing, clock: HandClock, rounds: list[bool], logged: int
) -> None:
    outcomes = iter(rounds)
    sealer = a_sealer(store, clock)

    async def seal() -> bool:
        if not next(outcomes):
            raise StoreUnavailable("away")
        return True

    sealer.seal = seal  # type: ignore[method-assign]
    with capture_logs() as lines:
        await run_until_paused(sealer, store, len(rounds))

    assert [line["event"] for line in lines] == ["audit trail waits for the store"] * logged


@pytest.mark.usefixtures("one_at_a_time")
async def test_a_stop_seals_until_nothing_is_left(store: Failing, clock: HandClock) -> None:
    sealer = a_sealer(store, clock)
    await sealer.seal()
    for _ in range(4):
        await record(store, clock)

    await sealer.finish()

    assert await waiting(store) == 0


class Slow(Outlet):
    """Keeps checkpoints only when it is asked to go on."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.kept: list[str] = []

    async def keep(self, lines: Sequence[str], *, at: int) -> None:
        await self.may_end.wait()
        self.kept += lines


async def test_a_stop_waits_until_checkpoints_are_kept_outside(
    store: Failing, clock: HandClock
) -> None:
    sealer, outlet = a_sealer(store, clock), Slow()
    sealer._outlets = [outlet]
    await record(store, clock)
    await sealer.seal()

    finishing = asyncio.create_task(sealer.finish())
    await until(lambda: not sealer._leases.held(LEASE))
    done, _ = await asyncio.wait([finishing], timeout=0.1)

    assert not done
    outlet.may_end.set()
    await finishing
    assert len(outlet.kept) == 1


async def test_sealing_does_not_wait_for_checkpoints_to_be_kept_outside(
    store: Failing, clock: HandClock
) -> None:
    sealer, outlet = a_sealer(store, clock), Slow()
    sealer._outlets = [outlet]
    await record(store, clock)

    async with asyncio.timeout(30):
        assert await sealer.seal()

    assert outlet.kept == []
    outlet.may_end.set()
    await sealer.finish()


@pytest.mark.usefixtures("one_at_a_time")
async def test_all_that_has_expired_is_deleted_by_one_round(
    store: Failing, clock: HandClock
) -> None:
    sealer = a_sealer(store, clock, keep_days=1)
    for _ in range(4):
        await record(store, clock)
        await sealer.seal()
    clock.now += 2 * DAY_MS

    await sealer.delete_expired()

    assert [block.number for block in await store.audit_chain(LAB)] == [4]


@pytest.mark.usefixtures("one_at_a_time")
async def test_records_expire_after_a_round_that_failed(
    store: Failing, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealer_module, "_RETENTION_SECONDS", 0)
    sealer = a_sealer(store, clock, keep_days=1)
    await sealer.seal()
    deleted, rounds = asyncio.Event(), iter([StoreUnavailable("away"), None])

    async def delete() -> None:
        problem = next(rounds, None)
        if problem is not None:
            raise problem
        deleted.set()

    sealer.delete_expired = delete  # type: ignore[method-assign]
    running = asyncio.create_task(sealer.delete_expired_for_ever())
    done, _ = await asyncio.wait(
        [running, asyncio.create_task(deleted.wait())],
        timeout=30,
        return_when=asyncio.FIRST_COMPLETED,
    )

    assert deleted.is_set()
    assert running not in done
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_what_is_signed_is_the_hash_after_the_last_record_of_a_block(
    store: Failing, clock: HandClock
) -> None:
    for _ in range(3):
        await record(store, clock)

    await a_sealer(store, clock).seal()

    (block,) = await store.audit_chain(LAB)
    ((_number, signed),) = await store.audit_checkpoints(LAB)
    assert len(records_of(block)) == 3
    assert checkpoint_of(await read(signed)).hash == block.end
