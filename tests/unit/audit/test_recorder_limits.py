"""What waits is counted for each tenant, bounded, and reported when it is lost."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from structlog.testing import capture_logs

from fhirpub.audit.chain import ENTRY_SPAN_MS
from fhirpub.audit.recorder import FLUSH_SECONDS, MAX_WAITING, MAX_WAITING_BYTES, Recorder
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.audit_contract import AuditStore
from tests.unit.audit.test_recorder import Fake


@pytest.fixture
def store() -> Fake:
    return Fake()


@pytest.fixture
def recorder(store: Fake) -> Recorder:
    return Recorder(cast("AuditStore", store), deadline_seconds=5)


def is_refused(recorder: Recorder, tenant: str = "a") -> bool:
    try:
        recorder.note(tenant, b"x", at=1)
    except StoreUnavailable:
        return True
    return False


async def test_the_last_record_that_may_wait_is_taken(recorder: Recorder) -> None:
    for _ in range(MAX_WAITING - 1):
        recorder.note("a", b"x", at=1)

    assert [is_refused(recorder), is_refused(recorder)] == [False, True]


async def test_a_record_waits_while_there_is_room_for_one_byte(recorder: Recorder) -> None:
    recorder.note("a", b"x" * (MAX_WAITING_BYTES - 1), at=1)

    assert [is_refused(recorder), is_refused(recorder)] == [False, True]


async def test_a_refusal_says_why(recorder: Recorder) -> None:
    recorder.note("a", b"x" * MAX_WAITING_BYTES, at=1)

    with pytest.raises(StoreUnavailable) as refused:
        recorder.note("a", b"x", at=1)

    assert refused.value.reason == "too many audit records are waiting"


async def test_what_was_taken_makes_room_until_it_is_given_back(recorder: Recorder) -> None:
    recorder.note("a", b"x" * MAX_WAITING_BYTES, at=1)
    taken = recorder.take(["a"])
    assert not is_refused(recorder)

    recorder.give_back(taken)

    assert is_refused(recorder)


async def test_records_that_are_given_back_are_counted_again(recorder: Recorder) -> None:
    for _ in range(MAX_WAITING):
        recorder.note("a", b"x", at=1)

    recorder.give_back(recorder.take(["a"]))

    assert is_refused(recorder)


async def test_what_was_stored_makes_room(recorder: Recorder) -> None:
    for _ in range(MAX_WAITING):
        recorder.note("a", b"x", at=1)

    await recorder.flush()

    assert not is_refused(recorder)


async def test_tenants_are_those_of_what_waits(recorder: Recorder) -> None:
    recorder.note("a", b"1", at=1)
    recorder.note("b", b"2", at=1)
    recorder.note("a", b"3", at=ENTRY_SPAN_MS)
    assert {*recorder.tenants} == {"a", "b"}

    recorder.take(["b"])
    assert {*recorder.tenants} == {"a"}

    recorder.take(["a"])
    assert {*recorder.tenants} == set()


async def test_what_other_tenants_have_is_not_taken(recorder: Recorder, store: Fake) -> None:
    recorder.note("a", b"1", at=1)
    recorder.note("b", b"2", at=1)

    assert recorder.take(["b", "c"]) == [(0, "b", [b"2"])]

    await recorder.flush()
    assert store.calls == [{"a": b"1\n"}]


async def test_records_of_each_span_of_time_are_taken_apart(recorder: Recorder) -> None:
    recorder.note("a", b"1", at=ENTRY_SPAN_MS - 1)
    recorder.note("a", b"2", at=ENTRY_SPAN_MS)

    assert recorder.take(["a"]) == [(0, "a", [b"1"]), (1, "a", [b"2"])]


async def test_nothing_is_taken_while_it_is_being_stored(recorder: Recorder, store: Fake) -> None:
    recorder.note("a", b"1", at=1)
    flushing = asyncio.create_task(recorder.flush())
    await asyncio.sleep(0)

    assert recorder.take(["a"]) == []

    await flushing
    assert store.calls == [{"a": b"1\n"}]


async def test_awaited_records_far_apart_in_time_are_stored_apart(
    recorder: Recorder, store: Fake
) -> None:
    await asyncio.gather(
        recorder.write("a", b"1", at=ENTRY_SPAN_MS - 1),
        recorder.write("b", b"2", at=ENTRY_SPAN_MS - 1),
        recorder.write("a", b"3", at=ENTRY_SPAN_MS),
    )

    lines = [(tenant, line) for call in store.calls for tenant, line in call.items()]
    assert sorted(lines) == [("a", b"1\n"), ("a", b"3\n"), ("b", b"2\n")]


async def test_a_store_that_is_away_is_logged_once_until_it_is_back(
    recorder: Recorder, store: Fake
) -> None:
    recorder.note("a", b"1", at=1)
    with capture_logs() as logged:
        for is_available in (False, False, True):
            store.is_available = is_available
            await recorder.flush()
        recorder.note("a", b"2", at=1)
        store.is_available = False
        await recorder.flush()

    expected = ("audit records wait for the store", "down")
    assert [(one["event"], one["reason"]) for one in logged] == [expected, expected]


async def test_what_is_lost_at_the_end_is_logged_with_its_number(
    recorder: Recorder, store: Fake
) -> None:
    store.is_available = False
    for tenant in ("a", "a", "b"):
        recorder.note(tenant, b"1", at=1)

    with capture_logs() as logged:
        await recorder.finish()

    (lost,) = [one for one in logged if one["event"] == "audit records lost"]
    assert (lost["log_level"], lost["records"]) == ("error", 3)


async def test_an_end_that_stores_everything_loses_nothing(recorder: Recorder) -> None:
    recorder.note("a", b"1", at=1)

    with capture_logs() as logged:
        await recorder.finish()

    assert logged == []


async def returns_early(recorder: Recorder) -> bool:
    try:
        async with asyncio.timeout(FLUSH_SECONDS / 20):
            await recorder.wait()
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(("count", "early"), [(2_999, False), (3_000, True)])
async def test_three_thousand_records_of_a_tenant_end_the_wait(
    recorder: Recorder, count: int, *, early: bool
) -> None:
    for number in range(count + 10):
        recorder.note("a" if number < count else "b", b"1", at=1)

    assert await returns_early(recorder) is early


async def test_a_wait_that_was_ended_early_is_followed_by_a_whole_one(recorder: Recorder) -> None:
    for _ in range(3_000):
        recorder.note("a", b"1", at=1)

    assert [await returns_early(recorder), await returns_early(recorder)] == [True, False]


async def test_many_records_end_no_wait_while_the_store_is_away(
    recorder: Recorder, store: Fake
) -> None:
    store.is_available = False
    recorder.note("b", b"1", at=1)
    await recorder.flush()
    for _ in range(3_000):
        recorder.note("a", b"1", at=1)

    assert not await returns_early(recorder)
