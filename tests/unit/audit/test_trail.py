"""The trail of a process: what is noted, what waits, and refusals that are counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from fhirpub.audit.chain import records_of
from fhirpub.audit.record import Access, Agent, encode
from fhirpub.audit.recorder import Recorder
from fhirpub.audit.trail import SERVICE, AuditTrail
from fhirpub.config.audit import AuditConfig
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.audit_contract import UnsealedAudit
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.clock import HandClock
from fhirpub.testing.contracts.store.records import a_client
from fhirpub.testing.samples import LAB, OTHER
from tests.unit.audit.test_sealer import a_sealer

ADDRESS = "192.0.2.7"


class Away(SqliteStore):
    """A store that can be away for what is sealed."""

    is_away = False

    async def unsealed_audit(self, *, limit: int, tenants: Collection[str] = ()) -> UnsealedAudit:
        if self.is_away:
            raise StoreUnavailable("it is away")
        return await super().unsealed_audit(limit=limit, tenants=tenants)


@dataclass
class Parts:
    """A trail with what it works on."""

    trail: AuditTrail
    store: Away
    recorder: Recorder
    clock: HandClock

    async def records(self, tenant: str) -> list[dict[str, Any]]:
        """Return what is sealed of a tenant."""
        chain = await self.store.audit_chain(tenant, limit=1_000)
        return [orjson.loads(line) for block in chain for line in records_of(block)]

    async def settled(self, tenant: str) -> list[dict[str, Any]]:
        await self.trail.settle()
        return await self.records(tenant)


def a_trail(store: Away, clock: HandClock, config: AuditConfig) -> Parts:
    recorder = Recorder(store, deadline_seconds=5)
    sealer = a_sealer(store, clock, recorder=recorder)
    trail = AuditTrail(recorder, sealer, access=store, config=config, clock=clock)
    return Parts(trail, store, recorder, clock)


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncGenerator[Parts]:
    store = Away(tmp_path / "fhirpub.db", deadline_seconds=10)
    await store.start()
    yield a_trail(store, HandClock(), AuditConfig())
    await store.stop()


def reading(at: int) -> bytes:
    return encode(Access(action="read"), Agent(client="c"), at=at)


@pytest.mark.parametrize(
    ("reads", "records_reads", "waits"),
    [("off", False, False), ("soon", True, False), ("before_answer", True, True)],
)
def test_the_setting_of_reads_decides_what_is_recorded_and_awaited(
    parts: Parts, reads: Any, *, records_reads: bool, waits: bool
) -> None:
    trail = a_trail(parts.store, parts.clock, replace(AuditConfig(), reads=reads)).trail

    assert (trail.records_reads, trail.waits) == (records_reads, waits)


async def test_what_is_noted_has_the_time_of_the_clock(parts: Parts) -> None:
    parts.trail.note(LAB, reading)
    parts.clock.forward(seconds=5)
    parts.trail.note(LAB, reading)

    now = parts.clock()
    assert [one["at"] for one in await parts.settled(LAB)] == [now - 5_000, now]


async def test_what_is_written_is_durable_with_the_time_of_the_clock(parts: Parts) -> None:
    await parts.trail.write(LAB, reading)

    (entry,) = (await parts.store.unsealed_audit(limit=9)).entries
    assert entry.tenant == LAB
    assert orjson.loads(entry.records)["at"] == parts.clock()


async def test_what_is_noted_is_in_the_chain_of_its_tenant_alone(parts: Parts) -> None:
    parts.trail.note(LAB, reading)

    assert len(await parts.settled(LAB)) == 1
    assert await parts.records(OTHER) == []


async def test_refusals_of_one_kind_are_one_record_with_their_number(parts: Parts) -> None:
    for _ in range(3):
        parts.trail.count_refusal("token", 401, address=ADDRESS)

    assert await parts.settled(SERVICE) == [
        {"at": parts.clock(), "action": "token", "status": 401, "address": ADDRESS, "count": 3}
    ]


async def test_refusals_that_differ_are_counted_apart(parts: Parts) -> None:
    parts.trail.count_refusal("token", 401, address=ADDRESS)
    parts.trail.count_refusal("token", 400, address=ADDRESS)
    parts.trail.count_refusal("unauthenticated", 401, address=ADDRESS)
    parts.trail.count_refusal("token", 401, address="192.0.2.8")
    parts.trail.count_refusal("token", 401, address=ADDRESS, client="x")

    assert [one["count"] for one in await parts.settled(SERVICE)] == [1] * 5


async def test_refusals_are_recorded_once(parts: Parts) -> None:
    parts.trail.count_refusal("token", 401, address=ADDRESS)
    await parts.settled(SERVICE)
    parts.trail.count_refusal("token", 401, address=ADDRESS)

    assert [one["count"] for one in await parts.settled(SERVICE)] == [1, 1]


async def no_client(_client_id: str) -> None:
    raise StoreUnavailable("it is away")


async def test_refusals_while_the_store_is_away_are_recorded_when_it_is_back(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts.trail.count_refusal("token", 401, address=ADDRESS, client="lab")
    with monkeypatch.context() as patch:
        patch.setattr(parts.store, "client", no_client)
        with pytest.raises(StoreUnavailable):
            await parts.trail.note_refusals()
    parts.trail.count_refusal("token", 401, address=ADDRESS, client="lab")

    (record,) = await parts.settled(SERVICE)

    assert record["count"] == 2


async def test_refusals_that_cannot_be_recorded_at_the_end_are_counted_in_the_log(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts.store, "client", no_client)
    with capture_logs() as logged:
        async with parts.trail.running():
            while not parts.recorder.is_sealed_here:
                await asyncio.sleep(0.001)
            parts.trail.note(LAB, reading)
            parts.trail.count_refusal("token", 401, address=ADDRESS, client="lab")

    (line,) = [one for one in logged if one["event"].startswith("refusals not recorded")]
    assert (line["log_level"], line["count"]) == ("error", 1)
    assert len(await parts.records(LAB)) == 1


async def test_refusals_of_a_client_are_in_the_chain_of_its_tenant(parts: Parts) -> None:
    client = a_client(tenant=OTHER)
    await parts.store.put_client(client)
    parts.trail.count_refusal("token", 401, address=ADDRESS, client=client.id)

    (record,) = await parts.settled(OTHER)
    assert (record["client"], record["what"]) == (client.id, [f"Client/{client.id}"])
    assert (record["address"], record["count"]) == (ADDRESS, 1)
    assert await parts.records(SERVICE) == []


async def test_the_name_of_a_client_that_does_not_exist_is_not_recorded(parts: Parts) -> None:
    parts.trail.count_refusal("token", 401, address=ADDRESS, client="guessed")

    (record,) = await parts.settled(SERVICE)
    assert "client" not in record
    assert "what" not in record
    assert record["address"] == ADDRESS


async def test_beyond_a_thousand_kinds_refusals_are_counted_together(parts: Parts) -> None:
    for number in range(1_003):
        parts.trail.count_refusal("token", 401, address=f"a-{number}", client="x")
    parts.trail.count_refusal("token", 401, address="a-0", client="x")

    records = await parts.settled(SERVICE)
    counts = {one.get("address", ""): one["count"] for one in records}
    assert len(counts) == 1_001
    assert (counts[""], counts["a-0"], counts["a-999"]) == (3, 2, 1)
    assert "a-1000" not in counts


async def test_names_of_clients_that_are_made_up_are_counted_together_too(parts: Parts) -> None:
    for number in range(1_100):
        parts.trail.count_refusal("token", 401, address=ADDRESS, client=f"guess-{number}")

    assert len(parts.trail._refusals) == 1_001
    assert parts.trail._refusals.total() == 1_100


@pytest.mark.parametrize(("others", "found"), [(99, True), (100, False)])
async def test_of_a_flood_of_names_a_hundred_are_looked_up(
    parts: Parts, others: int, *, found: bool
) -> None:
    client = a_client(id="zzz")
    await parts.store.put_client(client)
    for number in range(others):
        parts.trail.count_refusal("token", 401, address=ADDRESS, client=f"guess-{number}")
    parts.trail.count_refusal("token", 401, address=ADDRESS, client=client.id)

    assert bool(await parts.settled(LAB)) is found


async def test_everything_is_sealed_and_signed_when_the_trail_ends(parts: Parts) -> None:
    async with parts.trail.running():
        while not parts.recorder.is_sealed_here:
            await asyncio.sleep(0.001)
        parts.trail.note(LAB, reading)
        parts.trail.count_refusal("token", 401, address=ADDRESS)

    assert [one["action"] for one in await parts.records(LAB)] == ["read"]
    assert [one["action"] for one in await parts.records(SERVICE)] == ["token"]
    assert len(await parts.store.audit_checkpoints(LAB)) == 1


async def test_what_cannot_be_sealed_at_the_end_is_stored_and_logged(parts: Parts) -> None:
    with capture_logs() as logged:
        async with parts.trail.running():
            while not parts.recorder.is_sealed_here:
                await asyncio.sleep(0.001)
            parts.store.is_away = True
            parts.trail.note(LAB, reading)

    last = logged[-1]
    assert last["event"] == "audit trail not sealed before the stop"
    assert last["reason"] == "it is away"
    parts.store.is_away = False
    assert len((await parts.store.unsealed_audit(limit=9)).entries) == 1
