"""What waits is counted in bytes too, and all of it is stored, whatever came of it before."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import cast

import pytest
from structlog.testing import capture_logs

from fhirpub.audit import recorder as recorder_module
from fhirpub.audit.chain import ENTRY_SPAN_MS
from fhirpub.audit.recorder import MAX_TAKEN_BYTES, MAX_WAITING_BYTES, Recorder
from fhirpub.storage.audit_contract import AuditStore
from tests.unit.audit.test_recorder import Fake
from tests.unit.audit.test_recorder_limits import is_refused, returns_early


@pytest.fixture
def store() -> Fake:
    return Fake()


@pytest.fixture
def recorder(store: Fake) -> Recorder:
    return Recorder(cast("AuditStore", store), deadline_seconds=30)


async def test_what_is_taken_in_part_makes_room_in_bytes(recorder: Recorder) -> None:
    recorder.note("a", b"x" * (MAX_WAITING_BYTES - 10), at=1)
    recorder.note("a", b"x" * 10, at=1)
    assert is_refused(recorder)

    recorder.take(["a"])

    recorder.note("a", b"x" * (MAX_WAITING_BYTES - 20), at=1)
    assert not is_refused(recorder)


async def test_what_is_given_back_counts_with_what_was_noted_since(recorder: Recorder) -> None:
    recorder.note("a", b"x" * (MAX_WAITING_BYTES // 2), at=1)
    taken = recorder.take(["a"])
    recorder.note("a", b"x" * (MAX_WAITING_BYTES // 2), at=1)

    recorder.give_back(taken)

    assert is_refused(recorder)


async def test_records_of_all_times_are_stored_by_one_flush(
    recorder: Recorder, store: Fake
) -> None:
    for number in range(4):
        recorder.note("a", b"%d" % number, at=1 + number * ENTRY_SPAN_MS)

    await recorder.flush()

    assert store.calls == [{"a": b"%d\n" % number} for number in range(4)]


async def test_a_large_record_of_one_tenant_leaves_those_behind_it_waiting(
    recorder: Recorder,
) -> None:
    recorder.note("a", b"x" * MAX_TAKEN_BYTES, at=1)
    recorder.note("b", b"y", at=1)

    taken = [*recorder.take(["a", "b"]), *recorder.take(["a", "b"])]

    assert [tenant for _span, tenant, _lines in taken] == ["a", "b"]


async def test_the_end_waits_for_what_is_being_written(recorder: Recorder, store: Fake) -> None:
    writing = asyncio.create_task(recorder.write("a", b"1", at=1))
    await asyncio.sleep(0)

    await recorder.finish()

    assert store.calls == [{"a": b"1\n"}]
    await writing


async def test_a_store_that_is_away_again_is_logged_again(recorder: Recorder, store: Fake) -> None:
    with capture_logs() as lines:
        for is_available in (False, True, False):
            store.is_available = is_available
            recorder.note("a", b"1", at=1)
            await recorder.flush()

    assert [line["event"] for line in lines] == ["audit records wait for the store"] * 2


class Held(Fake):
    """A store that writes once it is asked to, although the caller has gone away."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.gate = asyncio.Event(), asyncio.Event()

    async def add_audit_records(self, records: Mapping[str, bytes]) -> None:
        self.asked.set()
        self.writing = asyncio.ensure_future(self._write(records))
        await asyncio.shield(self.writing)

    async def _write(self, records: Mapping[str, bytes]) -> None:
        await self.gate.wait()
        await super().add_audit_records(records)


async def test_what_is_being_stored_when_the_end_comes_is_stored_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorder_module, "FLUSH_SECONDS", 0)
    store = Held()
    recorder = Recorder(cast("AuditStore", store), deadline_seconds=30)
    recorder.note("a", b"1", at=1)
    running = asyncio.create_task(recorder.run())
    await asyncio.wait_for(store.asked.wait(), 30)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    store.gate.set()

    await recorder.finish()

    assert store.calls == [{"a": b"1\n"}]


async def test_one_more_record_ends_the_wait_where_many_were_given_back(
    recorder: Recorder,
) -> None:
    for _ in range(3_000):
        recorder.note("a", b"1", at=1)
    recorder.give_back(recorder.take(["a"]))
    await returns_early(recorder)

    recorder.note("a", b"1", at=1)

    assert await returns_early(recorder)
