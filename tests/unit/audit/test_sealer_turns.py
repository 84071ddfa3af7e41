"""Whose turn it is to seal, what happens when it ends, and what is logged of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Collection
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.audit.chain import records_of
from fhirpub.audit.checkpoint import Checkpoint, checkpoint_of
from fhirpub.audit.record import Access, Agent, encode
from fhirpub.audit.recorder import Recorder
from fhirpub.audit.sealer import Sealer, with_taken
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.audit_contract import UnsealedAudit
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import LAB, OTHER
from tests.unit.audit.test_sealer import a_sealer, read, record


class Failing(SqliteStore):
    """A store whose next reads of what is unsealed fail."""

    problems: list[Exception]

    async def unsealed_audit(self, *, limit: int, tenants: Collection[str] = ()) -> UnsealedAudit:
        if self.problems:
            raise self.problems.pop(0)
        return await super().unsealed_audit(limit=limit, tenants=tenants)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Failing]:
    store = Failing(tmp_path / "fhirpub.db", deadline_seconds=10)
    store.problems = []
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
def recorder(store: Failing) -> Recorder:
    return Recorder(store, deadline_seconds=5)


def a_line(clock: HandClock) -> bytes:
    return encode(Access(action="search"), Agent(client="c"), at=clock())


async def checkpoints(store: Failing, tenant: str = LAB) -> list[Checkpoint]:
    kept = await store.audit_checkpoints(tenant)
    return [checkpoint_of(await read(signed)) for _number, signed in kept]


async def test_a_checkpoint_has_the_chain_the_block_and_the_time(
    store: Failing, clock: HandClock
) -> None:
    await record(store, clock)

    await a_sealer(store, clock).seal()

    (block,) = await store.audit_chain(LAB)
    assert await checkpoints(store) == [
        Checkpoint(tenant=LAB, number=1, hash=block.end, at=clock() // 1000 * 1000)
    ]


async def test_each_chain_that_has_grown_is_signed(store: Failing, clock: HandClock) -> None:
    for tenant in (LAB, OTHER, ""):
        await record(store, clock, tenant)

    await a_sealer(store, clock).seal()

    assert [len(await checkpoints(store, tenant)) for tenant in (LAB, OTHER, "")] == [1, 1, 1]


async def test_a_chain_is_signed_exactly_when_it_is_due(store: Failing, clock: HandClock) -> None:
    sealer = a_sealer(store, clock, checkpoint_seconds=10.0)
    await sealer.seal()
    await record(store, clock)
    clock.forward(seconds=9.999)
    await sealer.seal()
    assert await checkpoints(store) == []

    clock.now += 1
    await sealer.seal()

    assert len(await checkpoints(store)) == 1


async def test_what_is_noted_is_flushed_again_once_the_turn_is_over(
    store: Failing, clock: HandClock, recorder: Recorder
) -> None:
    sealer = a_sealer(store, clock, "a", recorder=recorder)
    await sealer.seal()
    assert recorder.is_sealed_here

    clock.forward(seconds=20)
    await a_sealer(store, clock, "b").seal()
    await sealer.seal()

    assert not recorder.is_sealed_here


async def test_a_process_without_the_lease_leaves_what_it_has_noted(
    store: Failing, clock: HandClock, recorder: Recorder
) -> None:
    await a_sealer(store, clock, "a").seal()
    recorder.note(LAB, a_line(clock), at=clock())

    assert await a_sealer(store, clock, "b", recorder=recorder).seal()

    assert [*recorder.tenants] == [LAB]
    assert await store.audit_chain(LAB) == []


async def test_a_chain_that_was_signed_to_its_end_is_not_signed_by_the_next(
    store: Failing, clock: HandClock
) -> None:
    await record(store, clock)
    await a_sealer(store, clock, "a").seal()
    before = await checkpoints(store)
    clock.forward(seconds=60)

    await a_sealer(store, clock, "b").seal()

    assert await checkpoints(store) == before


async def test_the_next_signs_the_end_of_a_chain_although_a_block_before_it_is_signed(
    store: Failing, clock: HandClock
) -> None:
    first = a_sealer(store, clock, "a", checkpoint_seconds=3_600.0)
    for _ in range(2):
        await record(store, clock)
        await first.seal()
    assert [one.number for one in await checkpoints(store)] == [1]
    clock.forward(seconds=60)

    await a_sealer(store, clock, "b").seal()

    assert [one.number for one in await checkpoints(store)] == [1, 2]


async def test_a_process_that_leads_again_signs_what_another_has_sealed(
    store: Failing, clock: HandClock
) -> None:
    first, second = a_sealer(store, clock, "a"), a_sealer(store, clock, "b")
    await first.seal()
    clock.forward(seconds=16)
    await second.seal()
    await first.seal()  # and finds that it has lost its lease
    await record(store, clock)
    await second.seal()
    clock.forward(seconds=61)

    await first.seal()

    assert [one.number for one in await checkpoints(store)] == [1]


async def test_the_end_of_a_process_without_the_lease_seals_nothing(
    store: Failing, clock: HandClock
) -> None:
    await a_sealer(store, clock, "a").seal()
    other = a_sealer(store, clock, "b")
    await other.seal()
    await record(store, clock)

    await other.finish()

    assert await store.audit_chain(LAB) == []


async def test_what_was_noted_waits_again_if_it_cannot_be_sealed(
    store: Failing, clock: HandClock, recorder: Recorder
) -> None:
    sealer = a_sealer(store, clock, recorder=recorder)
    await sealer.seal()
    recorder.note(LAB, a_line(clock), at=clock())
    store.problems = [StoreUnavailable("it is away")]

    with pytest.raises(StoreUnavailable):
        await sealer.seal()
    assert [*recorder.tenants] == [LAB]
    await sealer.seal()

    (block,) = await store.audit_chain(LAB)
    assert len(records_of(block)) == 1


async def test_what_two_hundred_tenants_have_noted_is_sealed_in_one_round(
    store: Failing, clock: HandClock, recorder: Recorder
) -> None:
    sealer = a_sealer(store, clock, recorder=recorder)
    for number in range(201):
        recorder.note(f"tenant-{number}", a_line(clock), at=clock())

    await sealer.seal()
    assert [*recorder.tenants] == ["tenant-200"]
    await sealer.seal()

    assert not recorder.tenants
    assert len(await store.audited_tenants()) == 201


def test_what_was_taken_is_sealed_behind_what_was_read() -> None:
    unsealed = UnsealedAudit(entries=[], ends={"a": (0, b"")}, place=7, is_complete=True)

    both = with_taken(with_taken(unsealed, [(0, "a", [b"1", b"2"])]), [(5, "b", [b"3"])])

    found = [(one.tenant, one.records, one.version, one.source) for one in both.entries]
    assert found == [("a", b"1\n2\n", None, None), ("b", b"3\n", None, None)]
    assert (both.ends, both.place, both.is_complete) == ({"a": (0, b"")}, 7, True)


async def first_log(sealer: Sealer) -> dict[str, Any]:
    """Run until something is logged, and return that."""
    running = asyncio.create_task(sealer.run())
    with capture_logs() as logged:
        async with asyncio.timeout(30):
            while not logged:
                await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    (line,) = logged
    return dict(line)


async def test_a_store_that_is_away_is_a_warning_with_the_reason(
    store: Failing, clock: HandClock, recorder: Recorder
) -> None:
    store.problems = [StoreUnavailable("it is away")]

    line = await first_log(a_sealer(store, clock, recorder=recorder))

    assert (line["log_level"], line["reason"]) == ("warning", "it is away")
    assert line["event"] == "audit trail waits for the store"
    assert not recorder.is_sealed_here


async def test_another_problem_is_an_error_with_its_place(
    store: Failing, clock: HandClock, recorder: Recorder
) -> None:
    store.problems = [ValueError("a secret value")]

    line = await first_log(a_sealer(store, clock, recorder=recorder))

    assert (line["log_level"], line["event"]) == ("error", "audit trail not sealed")
    assert "ValueError" in json.dumps(line)
    assert "secret" not in json.dumps(line)


async def test_the_line_outside_has_the_claims_and_the_checkpoint(
    store: Failing, clock: HandClock, tmp_path: Path
) -> None:
    file = tmp_path / "checkpoints.ndjson"
    for tenant in (LAB, OTHER):
        await record(store, clock, tenant)

    sealer = a_sealer(store, clock, checkpoints_file=str(file))
    await sealer.seal()
    await sealer.finish()

    lines: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
    assert [one["tenant"] for one in lines] == [LAB, OTHER]
    for line in lines:
        signed = line.pop("checkpoint")
        assert json.loads(signed) == line
        assert [(1, signed)] == [*await store.audit_checkpoints(line["tenant"])]


async def test_a_process_that_seals_keeps_its_lease_by_renewing_it_in_time(
    store: Failing, clock: HandClock
) -> None:
    first, second = a_sealer(store, clock, "a"), a_sealer(store, clock, "b")
    for seconds in (10, 6):
        await first.seal()
        clock.forward(seconds=seconds)

    await record(store, clock)
    await second.seal()

    assert await store.audit_chain(LAB) == []
    await first.seal()
    assert len(await store.audit_chain(LAB)) == 1
