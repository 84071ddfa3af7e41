"""One process seals and signs; another goes on where it stopped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.audit.chain import records_of
from fhirpub.audit.checkpoint import Sign, checkpoint_of
from fhirpub.audit.record import Access, Agent, encode
from fhirpub.audit.recorder import Recorder
from fhirpub.audit.sealer import Sealer
from fhirpub.audit.verification import verify
from fhirpub.config.audit import AuditConfig
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import DAY_MS
from fhirpub.storage.audit_contract import UnsealedAudit
from fhirpub.storage.leases import Leases
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import LAB, OTHER, a_version


async def sign(claims: Mapping[str, Any]) -> str:
    """Return claims as they are: signatures are tested with the manipulations of stores."""
    return json.dumps(dict(claims))


async def read(statement: str) -> Mapping[str, Any]:
    claims: Mapping[str, Any] = json.loads(statement)
    return claims


class Delayed(SqliteStore):
    """A store that can return what waited some time ago, and refuse checkpoints."""

    stale: UnsealedAudit | None = None
    is_away = False
    """Whether no checkpoint can be stored."""
    after_read: Callable[[], Awaitable[None]] | None = None
    """What happens once when the next read of unsealed records ends."""

    async def unsealed_audit(self, *, limit: int, tenants: Collection[str] = ()) -> UnsealedAudit:
        found = self.stale or await super().unsealed_audit(limit=limit, tenants=tenants)
        interfere, self.after_read = self.after_read, None
        if interfere is not None:
            await interfere()
        return found

    async def put_audit_checkpoint(self, tenant: str, number: int, signed: str) -> None:
        if self.is_away:
            raise StoreUnavailable("it is away")
        await super().put_audit_checkpoint(tenant, number, signed)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Delayed]:
    store = Delayed(tmp_path / "fhirpub.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


def a_sealer(
    store: Store,
    clock: HandClock,
    owner: str = "a",
    recorder: Recorder | None = None,
    signing: Sign = sign,
    **settings: Any,
) -> Sealer:
    leases = Leases(store, owner=owner, seconds=15, clock=clock)
    config = replace(AuditConfig(), **settings)
    return Sealer(
        store, leases=leases, sign=signing, config=config, clock=clock, recorder=recorder
    )


async def record(store: Store, clock: HandClock, tenant: str = LAB) -> None:
    line = encode(Access(action="read"), Agent(client="c"), at=clock())
    await store.add_audit_records({tenant: line + b"\n"})


async def test_records_become_a_chain_for_each_tenant(store: Store, clock: HandClock) -> None:
    await record(store, clock)
    await record(store, clock, OTHER)
    await store.add(LAB, a_version(audit=b'{"action":"register","status":201}'))

    assert await a_sealer(store, clock).seal()

    assert await store.audited_tenants() == sorted([LAB, OTHER])
    assert sum(len(records_of(block)) for block in await store.audit_chain(LAB)) == 2


async def test_the_first_round_signs_what_it_has_sealed(store: Store, clock: HandClock) -> None:
    await record(store, clock)

    await a_sealer(store, clock).seal()

    ((number, statement),) = await store.audit_checkpoints(LAB)
    (block,) = await store.audit_chain(LAB)
    assert checkpoint_of(await read(statement)).hash == block.end
    assert number == 1


async def test_a_chain_is_signed_again_after_the_time_that_was_set(
    store: Store, clock: HandClock
) -> None:
    sealer = a_sealer(store, clock, checkpoint_seconds=60.0)
    for _ in range(5):
        await record(store, clock)
        await sealer.seal()
        clock.forward(seconds=14)
    assert len(await store.audit_checkpoints(LAB)) == 1

    clock.forward(seconds=10)
    await sealer.seal()

    assert [number for number, _ in await store.audit_checkpoints(LAB)] == [1, 5]


async def test_a_chain_that_has_not_grown_is_not_signed_again(
    store: Store, clock: HandClock
) -> None:
    sealer = a_sealer(store, clock)
    await record(store, clock)
    for _ in range(3):
        await sealer.seal()
        clock.forward(seconds=61)

    assert len(await store.audit_checkpoints(LAB)) == 1


async def test_another_process_waits_for_the_lease(store: Store, clock: HandClock) -> None:
    await a_sealer(store, clock, "a").seal()
    await record(store, clock)
    other = a_sealer(store, clock, "b")
    assert await other.seal()
    assert await store.audit_chain(LAB) == []

    clock.forward(seconds=16)
    await other.seal()

    assert len(await store.audit_chain(LAB)) == 1


async def test_a_process_signs_what_a_dead_one_has_sealed(store: Store, clock: HandClock) -> None:
    first = a_sealer(store, clock, "a")
    await first.seal()
    for tenant in (LAB, OTHER):
        await record(store, clock, tenant)
    await first.seal()  # sealed, and not signed yet
    for tenant in (LAB, OTHER):
        assert await store.audit_checkpoints(tenant) == []

    clock.forward(seconds=16)
    await a_sealer(store, clock, "b").seal()

    for tenant in (LAB, OTHER):
        assert [number for number, _ in await store.audit_checkpoints(tenant)] == [1]


async def test_a_stop_signs_and_gives_the_lease_up(store: Store, clock: HandClock) -> None:
    first = a_sealer(store, clock, "a")
    await first.seal()
    await record(store, clock)
    await first.finish()
    await record(store, clock)

    await a_sealer(store, clock, "b").seal()

    assert len(await store.audit_chain(LAB)) == 2
    assert len(await store.audit_checkpoints(LAB)) == 2


async def test_checkpoints_are_appended_to_the_file_outside(
    store: Store, clock: HandClock, tmp_path: Path
) -> None:
    file = tmp_path / "checkpoints.ndjson"
    await record(store, clock)

    sealer = a_sealer(store, clock, checkpoints_file=str(file))
    await sealer.seal()
    await sealer.finish()

    (line,) = file.read_text().splitlines()
    ((_number, statement),) = await store.audit_checkpoints(LAB)
    assert json.loads(line)["checkpoint"] == statement


async def test_a_file_that_cannot_be_written_stops_nothing(
    store: Store, clock: HandClock, tmp_path: Path
) -> None:
    await record(store, clock)

    await a_sealer(store, clock, checkpoints_file=str(tmp_path / "no" / "file")).seal()

    assert len(await store.audit_checkpoints(LAB)) == 1


async def test_expired_records_are_deleted_and_the_rest_is_right(
    store: Store, clock: HandClock
) -> None:
    sealer = a_sealer(store, clock, keep_days=2)
    for _ in range(5):
        await record(store, clock)
        await sealer.seal()
        clock.now += DAY_MS

    await sealer.delete_expired()

    chain = await store.audit_chain(LAB)
    assert [block.number for block in chain] == [4, 5]
    verdict = await verify(store, LAB, read=read, now=clock())
    assert verdict.problem is None


async def test_nothing_is_deleted_before_the_statement_about_it_is_stored(
    store: Delayed, clock: HandClock
) -> None:
    sealer = a_sealer(store, clock, keep_days=1)
    for _ in range(2):
        await record(store, clock)
        await sealer.seal()
    clock.now += 10 * DAY_MS
    store.is_away = True

    with pytest.raises(StoreUnavailable):
        await sealer.delete_expired()

    assert [block.number for block in await store.audit_chain(LAB)] == [1, 2]


async def test_a_block_stays_until_its_last_record_has_expired(
    store: Store, clock: HandClock
) -> None:
    sealer = a_sealer(store, clock, keep_days=1)
    await record(store, clock)
    clock.forward(seconds=20)
    await record(store, clock)
    await sealer.seal()
    clock.forward(seconds=20)
    await record(store, clock)
    await sealer.seal()
    clock.now += DAY_MS - 20_000

    await sealer.delete_expired()

    assert [block.number for block in await store.audit_chain(LAB)] == [1, 2]


async def test_a_chain_that_grows_while_it_is_signed_is_signed_again(
    store: Store, clock: HandClock
) -> None:
    async def sign_late(claims: Mapping[str, Any]) -> str:
        if claims["block"] == 2:
            await record(store, clock)
            await sealer.seal()
        return await sign(claims)

    sealer = a_sealer(store, clock, signing=sign_late)
    for _ in range(2):
        await record(store, clock)
        await sealer.seal()
    for _ in range(2):
        await sealer.sign_checkpoints()

    assert [number for number, _ in await store.audit_checkpoints(LAB)] == [1, 2, 3]


async def test_the_last_block_stays_however_old_it_is(store: Store, clock: HandClock) -> None:
    sealer = a_sealer(store, clock, keep_days=1)
    await record(store, clock)
    await sealer.seal()
    clock.now += 10 * DAY_MS
    await sealer.delete_expired()
    await record(store, clock)
    await sealer.seal()

    assert [block.number for block in await store.audit_chain(LAB)] == [1, 2]


async def test_what_this_process_has_noted_is_sealed_with_what_is_stored(
    store: Store, clock: HandClock
) -> None:
    recorder = Recorder(store, deadline_seconds=5)
    sealer = a_sealer(store, clock, recorder=recorder)
    await record(store, clock)
    for tenant in (LAB, OTHER):
        line = encode(Access(action="search"), Agent(client="c"), at=clock())
        recorder.note(tenant, line, at=clock())

    await sealer.seal()

    assert recorder.is_sealed_here
    assert not recorder.tenants
    (ours,), (theirs,) = [await store.audit_chain(tenant) for tenant in (LAB, OTHER)]
    assert (len(records_of(ours)), len(records_of(theirs))) == (2, 1)


async def test_an_outcome_is_never_sealed_before_the_announcement_of_its_change(
    store: Delayed, clock: HandClock
) -> None:
    recorder = Recorder(store, deadline_seconds=5)
    sealer = a_sealer(store, clock, recorder=recorder)
    search, begun, done = (
        encode(Access(action=action, status=status), Agent(client="c"), at=clock())
        for action, status in [("search", 200), ("endpoint.delete", 102), ("endpoint.delete", 204)]
    )

    async def change() -> None:
        await recorder.write(LAB, begun, at=clock())
        recorder.note(LAB, done, at=clock())

    recorder.note(LAB, search, at=clock())
    store.after_read = change
    while recorder.tenants:
        await sealer.seal()

    chain = await store.audit_chain(LAB)
    sealed = [json.loads(line)["status"] for block in chain for line in records_of(block)]
    assert sealed == [200, 102, 204]


async def test_much_that_was_noted_is_sealed_in_several_rounds(
    store: Store, clock: HandClock
) -> None:
    recorder = Recorder(store, deadline_seconds=5)
    sealer = a_sealer(store, clock, recorder=recorder)
    line = encode(Access(action="search", query="q" * 7_000), Agent(client="c"), at=clock())
    for _ in range(500):
        recorder.note(LAB, line, at=clock())

    rounds = 1
    while not await sealer.seal():
        rounds += 1

    chain = await store.audit_chain(LAB)
    assert len(chain) == rounds > 2
    assert sum(len(records_of(block)) for block in chain) == 500
    assert not recorder.tenants


async def test_what_was_noted_waits_again_if_another_process_seals(
    store: Delayed, clock: HandClock
) -> None:
    recorder = Recorder(store, deadline_seconds=5)
    slow = a_sealer(store, clock, "a", recorder=recorder)
    line = encode(Access(action="search"), Agent(client="c"), at=clock())
    recorder.note(LAB, line, at=clock())
    stale = await store.unsealed_audit(limit=1, tenants=[LAB])
    await record(store, clock)
    clock.forward(seconds=20)
    await a_sealer(store, clock, "b").seal()

    store.stale = stale
    clock.forward(seconds=20)
    await slow.seal()

    assert [*recorder.tenants] == [LAB]
    assert len(await store.audit_chain(LAB)) == 1


async def test_a_seal_that_is_cancelled_is_completed(store: Store, clock: HandClock) -> None:
    recorder = Recorder(store, deadline_seconds=5)
    sealer = a_sealer(store, clock, recorder=recorder)
    line = encode(Access(action="search"), Agent(client="c"), at=clock())
    recorder.note(LAB, line, at=clock())

    sealing = asyncio.create_task(sealer.seal())
    await asyncio.sleep(0)
    sealing.cancel()
    await sealer.wait()
    await recorder.finish()

    (block,) = await store.audit_chain(LAB)
    assert len(records_of(block)) == 1
    assert (await store.unsealed_audit(limit=9)).entries == []
