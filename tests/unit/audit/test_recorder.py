"""Records are handed to the store together, and none is dropped while it cannot be written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import cast

import pytest

from fhirpub.audit.chain import ENTRY_SPAN_MS
from fhirpub.audit.recorder import MAX_TAKEN_BYTES, MAX_WAITING, MAX_WAITING_BYTES, Recorder
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.audit_contract import MAX_UNSEALED_BYTES, AuditStore


class Fake:
    """A store that keeps what it gets, or is unavailable."""

    def __init__(self) -> None:
        self.calls: list[Mapping[str, bytes]] = []
        self.is_available = True

    async def add_audit_records(self, records: Mapping[str, bytes]) -> None:
        await asyncio.sleep(0)
        if not self.is_available:
            raise StoreUnavailable("down")
        self.calls.append(dict(records))


@pytest.fixture
def store() -> Fake:
    return Fake()


@pytest.fixture
def recorder(store: Fake) -> Recorder:
    return Recorder(cast("AuditStore", store), deadline_seconds=5)


async def test_what_was_noted_is_stored_together(recorder: Recorder, store: Fake) -> None:
    recorder.note("a", b"1", at=1)
    recorder.note("b", b"2", at=2)
    recorder.note("a", b"3", at=3)

    await recorder.flush()

    assert store.calls == [{"a": b"1\n3\n", "b": b"2\n"}]


async def test_nothing_is_stored_twice_by_flushes_at_once(recorder: Recorder, store: Fake) -> None:
    recorder.note("a", b"1", at=1)

    await asyncio.gather(recorder.flush(), recorder.flush())

    assert store.calls == [{"a": b"1\n"}]


async def test_what_is_noted_during_a_flush_is_stored_by_it(
    recorder: Recorder, store: Fake
) -> None:
    recorder.note("a", b"1", at=1)
    flushing = asyncio.create_task(recorder.flush())
    await asyncio.sleep(0)
    recorder.note("a", b"2", at=1)

    await flushing

    assert store.calls == [{"a": b"1\n"}, {"a": b"2\n"}]


async def test_records_far_apart_in_time_are_handed_in_apart(
    recorder: Recorder, store: Fake
) -> None:
    recorder.note("a", b"1", at=1)
    recorder.note("a", b"2", at=ENTRY_SPAN_MS + 1)

    await recorder.flush()

    assert store.calls == [{"a": b"1\n"}, {"a": b"2\n"}]


async def test_records_wait_while_the_store_is_unavailable(
    recorder: Recorder, store: Fake
) -> None:
    store.is_available = False
    recorder.note("a", b"1", at=1)
    await recorder.flush()
    recorder.note("a", b"2", at=2)
    store.is_available = True

    await recorder.flush()

    assert store.calls == [{"a": b"1\n2\n"}]


async def test_a_tenant_with_too_many_waiting_records_is_refused_alone(
    recorder: Recorder, store: Fake
) -> None:
    store.is_available = False
    for number in range(MAX_WAITING):
        recorder.note("a", b"%d" % number, at=1)

    with pytest.raises(StoreUnavailable):
        recorder.note("a", b"x", at=1)
    recorder.note("b", b"y", at=1)
    store.is_available = True
    await recorder.flush()

    recorder.note("a", b"z", at=1)
    (call,) = store.calls
    assert call["a"].count(b"\n") == MAX_WAITING


async def test_an_awaited_record_is_durable_when_the_call_returns(
    recorder: Recorder, store: Fake
) -> None:
    await recorder.write("a", b"1", at=1)

    assert store.calls == [{"a": b"1\n"}]


async def test_awaited_records_are_stored_in_groups(recorder: Recorder, store: Fake) -> None:
    await asyncio.gather(*(recorder.write("a", b"%d" % number, at=1) for number in range(50)))

    assert len(store.calls) < 5
    stored = b"".join(call["a"] for call in store.calls).split()
    assert stored == [b"%d" % number for number in range(50)]


async def test_an_awaited_record_that_is_not_stored_raises(
    recorder: Recorder, store: Fake
) -> None:
    store.is_available = False

    with pytest.raises(StoreUnavailable):
        await recorder.write("a", b"1", at=1)


async def test_the_end_stores_what_waits(recorder: Recorder, store: Fake) -> None:
    recorder.note("a", b"1", at=1)

    await recorder.finish()

    assert store.calls == [{"a": b"1\n"}]


async def test_many_records_are_stored_before_the_second_is_over(
    recorder: Recorder, store: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fhirpub.audit.recorder.FLUSH_SECONDS", 600)
    running = asyncio.create_task(recorder.run())
    for number in range(4_000):
        recorder.note("a", b"%d" % number, at=1)
    async with asyncio.timeout(20):
        while not store.calls:
            await asyncio.sleep(0.01)

    running.cancel()


async def test_large_records_of_a_tenant_are_refused_before_they_are_many(
    recorder: Recorder, store: Fake
) -> None:
    store.is_available = False
    for _ in range(4):
        recorder.note("a", b"x" * (MAX_WAITING_BYTES // 4), at=1)

    with pytest.raises(StoreUnavailable):
        recorder.note("a", b"x", at=1)
    store.is_available = True
    await recorder.flush()
    recorder.note("a", b"x", at=1)


async def test_what_is_taken_waits_no_more_until_it_is_given_back(
    recorder: Recorder, store: Fake
) -> None:
    recorder.note("a", b"1", at=1)
    recorder.note("b", b"2", at=1)
    taken = recorder.take(["a"])
    recorder.note("a", b"3", at=1)
    assert taken == [(0, "a", [b"1"])]

    recorder.give_back(taken)
    await recorder.flush()

    assert store.calls == [{"b": b"2\n", "a": b"1\n3\n"}]


async def test_much_is_handed_in_by_several_calls(recorder: Recorder, store: Fake) -> None:
    lines = [b"%d" % number * 400 for number in range(1_000)]
    for line in lines:
        recorder.note("a", line, at=1)

    await recorder.flush()

    assert all(len(call["a"]) < 2 * MAX_UNSEALED_BYTES for call in store.calls)
    assert b"".join(call["a"] for call in store.calls).split() == lines
    assert not recorder.tenants


async def test_what_is_taken_together_is_bounded_and_the_rest_goes_on_waiting(
    recorder: Recorder,
) -> None:
    half = b"x" * (MAX_TAKEN_BYTES // 2)
    for tenant in ("a", "b"):
        for number in range(3):
            recorder.note(tenant, half + b"%d" % number, at=1)

    first, second = (recorder.take(["a", "b"]) for _ in range(2))

    assert first == [(0, "a", [half + b"0", half + b"1"])]
    assert second == [(0, "a", [half + b"2"]), (0, "b", [half + b"0"])]
    recorder.give_back(second)
    recorder.give_back(first)
    third = recorder.take(["a"])
    assert third == first


async def test_what_is_sealed_here_is_not_flushed(recorder: Recorder, store: Fake) -> None:
    recorder.is_sealed_here = True
    running = asyncio.create_task(recorder.run())
    recorder.note("a", b"1", at=1)
    await asyncio.sleep(1.2)
    assert store.calls == []

    recorder.is_sealed_here = False
    async with asyncio.timeout(20):
        while not store.calls:
            await asyncio.sleep(0.01)

    running.cancel()
