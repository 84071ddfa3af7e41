"""Group commit at its limits, when it is ended, and what is known of a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.batching import Bounds, Deadline, GroupCommit, GroupedReads


class Engine:
    """An engine that records its batches, and finishes when its gate is open."""

    def __init__(self, *, bounds: Bounds | None = None, deadline_seconds: float = 60) -> None:
        self.batches: list[list[str]] = []
        self.gate = asyncio.Event()
        self.group: GroupCommit[str, str] = GroupCommit(
            self.commit, bounds=bounds, deadline_seconds=deadline_seconds
        )

    async def commit(self, batch: Sequence[str]) -> Sequence[str | Exception]:
        self.batches.append(list(batch))
        await self.gate.wait()
        return [item.upper() for item in batch]


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def committed(bounds: Bounds, *items: tuple[str, int]) -> list[list[str]]:
    """Return the batches of items that are handed in at once, each with its size."""
    engine = Engine(bounds=bounds)
    engine.gate.set()
    await asyncio.gather(*(engine.group.add(item, size=size) for item, size in items))
    return engine.batches


async def test_an_item_of_just_what_is_shared_shares_its_batch() -> None:
    bounds = Bounds(alone=10)

    assert await committed(bounds, ("a", 10), ("b", 10)) == [["a", "b"]]
    assert await committed(bounds, ("a", 0), ("b", 11)) == [["a"], ["b"]]
    assert await committed(bounds, ("a", 11), ("b", 0)) == [["a"], ["b"]]


async def test_what_fits_behind_what_does_not_waits_with_it() -> None:
    assert await committed(Bounds(size=10), ("a", 6), ("b", 5), ("c", 1)) == [["a"], ["b", "c"]]


async def test_an_item_without_a_size_needs_no_room() -> None:
    engine = Engine(bounds=Bounds(size=0))
    engine.gate.set()

    await asyncio.gather(engine.group.add("a"), engine.group.add("b"))

    assert engine.batches == [["a", "b"]]


async def test_by_default_a_batch_has_128_items_and_one_is_in_flight() -> None:
    engine = Engine()
    outcomes = [engine.group.add(str(number)) for number in range(300)]
    await turns()
    in_flight = len(engine.batches)

    engine.gate.set()
    await asyncio.gather(*outcomes)

    assert in_flight == 1
    assert [len(batch) for batch in engine.batches] == [128, 128, 44]


async def test_what_is_refused_was_not_taken_and_may_come_again() -> None:
    engine = Engine(bounds=Bounds(waiting=1))
    first = engine.group.add("a")

    with pytest.raises(StoreUnavailable) as refusal:
        engine.group.add("b")
    await turns()
    second = engine.group.add("c")
    engine.gate.set()

    assert (refusal.value.reason, refusal.value.retry_after) == ("too many calls are waiting", 1)
    assert [await first, await second] == ["A", "C"]
    assert engine.batches == [["a"], ["c"]]


async def test_a_batch_that_fails_is_the_cause_of_what_each_caller_gets() -> None:
    problem = OSError(5, "no")

    async def commit(_batch: Sequence[str]) -> Sequence[str]:
        raise problem

    group: GroupCommit[str, str] = GroupCommit(commit, deadline_seconds=60)
    raised = await asyncio.gather(group.add("a"), group.add("b"), return_exceptions=True)

    for one in raised:
        assert isinstance(one, OSError)
        assert (one.args, one.__cause__) == ((5, "no"), problem)


async def test_an_answer_stays_if_one_too_many_follows_it() -> None:
    async def commit(batch: Sequence[str]) -> Sequence[str]:
        return [*batch, "more"]

    group: GroupCommit[str, str] = GroupCommit(commit, deadline_seconds=60)
    outcome = group.add("a")
    await group.drain()

    assert await outcome == "a"


async def test_a_commit_that_is_cancelled_cancels_those_who_wait_for_it() -> None:
    async def commit(_batch: Sequence[str]) -> Sequence[str]:
        raise asyncio.CancelledError

    group: GroupCommit[str, str] = GroupCommit(commit, deadline_seconds=60)
    outcomes = [group.add("a"), group.add("b")]
    await turns()

    assert [outcome.cancelled() for outcome in outcomes] == [True, True]
    await group.drain()


async def test_a_group_without_work_is_drained_at_once() -> None:
    async with asyncio.timeout(20):
        await Engine().group.drain()


async def test_who_waits_too_long_learns_that_it_was_the_deadline() -> None:
    engine = Engine(deadline_seconds=0.001)

    with pytest.raises(StoreUnavailable) as refusal:
        await engine.group.add("a")

    assert refusal.value.reason == "deadline exceeded"


# Reads


class Fetches:
    """A database that records its queries."""

    def __init__(self, *, bounds: Bounds | None = None, deadline_seconds: float = 60) -> None:
        self.asked: list[list[str]] = []
        self.gate = asyncio.Event()
        self.reads: GroupedReads[str, str] = GroupedReads(
            self.fetch, bounds=bounds, deadline_seconds=deadline_seconds
        )

    async def fetch(self, keys: Collection[str]) -> Mapping[str, str]:
        self.asked.append(sorted(keys))
        await self.gate.wait()
        return {key: key.upper() for key in keys}


async def test_reads_have_the_bounds_of_their_group() -> None:
    fetches = Fetches(bounds=Bounds(items=2))
    fetches.gate.set()

    assert await asyncio.gather(*map(fetches.reads.get, "abc")) == ["A", "B", "C"]
    assert fetches.asked == [["a", "b"], ["c"]]


async def test_reads_have_a_deadline() -> None:
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(Fetches(deadline_seconds=0.001).reads.get("a"), timeout=20)


# Deadlines


async def test_what_is_done_in_time_is_left_alone() -> None:
    loop = asyncio.get_running_loop()
    deadline = Deadline(0.001)
    late, done = loop.create_future(), loop.create_future()
    deadline.watch(done)
    deadline.watch(late)
    done.set_result("done")

    await asyncio.wait([late], timeout=20)

    assert done.result() == "done"
    assert isinstance(late.exception(), StoreUnavailable)


async def test_one_that_is_done_between_others_does_not_keep_them_waiting() -> None:
    loop = asyncio.get_running_loop()
    deadline = Deadline(0.001)
    first, between, last = (loop.create_future() for _ in range(3))
    for outcome in (first, between, last):
        deadline.watch(outcome)
    between.cancel()

    await asyncio.wait([first, last], timeout=20)

    assert [type(one.exception()) for one in (first, last)] == [StoreUnavailable] * 2
    assert between.cancelled()


async def test_after_all_have_ended_the_next_is_watched() -> None:
    loop = asyncio.get_running_loop()
    deadline = Deadline(0.001)
    ended = []
    for _ in range(3):
        outcome = loop.create_future()
        deadline.watch(outcome)
        await asyncio.wait([outcome], timeout=20)
        ended.append(outcome.done() and type(outcome.exception()))

    assert ended == [StoreUnavailable] * 3


async def test_one_that_began_later_is_not_forgotten() -> None:
    loop = asyncio.get_running_loop()
    deadline = Deadline(0.01)
    first, second = loop.create_future(), loop.create_future()
    deadline.watch(first)
    await asyncio.sleep(0.004)
    deadline.watch(second)

    await asyncio.wait([first, second], timeout=20)

    assert [type(one.exception()) for one in (first, second)] == [StoreUnavailable] * 2


async def test_a_deadline_keeps_nothing_of_what_ended_in_time() -> None:
    deadline, loop = Deadline(60), asyncio.get_running_loop()
    for _ in range(100):
        outcome: asyncio.Future[None] = loop.create_future()
        deadline.watch(outcome)
        outcome.set_result(None)

    assert len(deadline._ends) == 1


async def test_drain_waits_also_for_a_batch_that_begins_beside_the_first() -> None:
    async def commit(batch: Sequence[str]) -> Sequence[str]:
        await turns(20 if batch == ["b"] else 1)
        return batch

    bounds = Bounds(items=1, in_flight=2)
    group: GroupCommit[str, str] = GroupCommit(commit, deadline_seconds=60, bounds=bounds)
    outcomes = [group.add("a"), group.add("b")]

    await group.drain()

    assert [outcome.done() for outcome in outcomes] == [True, True]
