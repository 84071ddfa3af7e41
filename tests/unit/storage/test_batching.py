"""Group commit: which items are batched, and which outcome each caller gets."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.batching import Bounds, GroupCommit, GroupedReads
from fhirpub.testing.clock import HandClock


class Commits:
    """An engine that records its batches and finishes one on request."""

    def __init__(
        self, *, bounds: Bounds | None = None, held: bool = True, deadline_seconds: float = 60
    ) -> None:
        self.batches: list[list[str]] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.answer: Exception | None = None
        self.gate = asyncio.Semaphore(0 if held else 1_000_000)
        self.group: GroupCommit[str, str] = GroupCommit(
            self.commit, bounds=bounds, deadline_seconds=deadline_seconds
        )

    async def commit(self, batch: Sequence[str]) -> Sequence[str | Exception]:
        self.batches.append(list(batch))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await self.gate.acquire()
        self.in_flight -= 1
        if self.answer is not None:
            raise self.answer
        return [ValueError(name) if name.startswith("bad") else name.upper() for name in batch]

    def finish(self, count: int = 1) -> None:
        for _ in range(count):
            self.gate.release()

    def hand_in(self, *items: str, size: int = 0) -> list[asyncio.Task[str]]:
        return [asyncio.create_task(self.waiting_for(item, size)) for item in items]

    async def waiting_for(self, item: str, size: int) -> str:
        return await self.group.add(item, size=size)


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_lone_item_is_committed_after_one_turn_of_the_loop() -> None:
    commits = Commits(held=False)

    (task,) = commits.hand_in("a")
    await turns(1)  # for the task that hands in
    await turns(1)  # for the turn of the event loop that this takes

    assert commits.batches == [["a"]]
    assert await task == "A"


async def test_items_of_one_turn_go_together() -> None:
    commits = Commits(held=False)

    results = await asyncio.gather(*commits.hand_in("a", "b", "c"))

    assert commits.batches == [["a", "b", "c"]]
    assert results == ["A", "B", "C"]


async def test_what_gathers_during_a_commit_is_the_next_batch() -> None:
    commits = Commits()
    tasks = commits.hand_in("a")
    await turns()
    for name in "bcd":
        tasks += commits.hand_in(name)
        await turns()

    commits.finish(2)

    assert await asyncio.gather(*tasks) == ["A", "B", "C", "D"]
    assert commits.batches == [["a"], ["b", "c", "d"]]


@pytest.mark.parametrize("in_flight", [1, 2])
async def test_no_more_batches_are_in_flight_than_allowed(in_flight: int) -> None:
    commits = Commits(bounds=Bounds(items=1, in_flight=in_flight))
    tasks = []
    for name in "abcde":
        tasks += commits.hand_in(name)
        await turns()

    commits.finish(5)

    assert await asyncio.gather(*tasks) == ["A", "B", "C", "D", "E"]
    assert commits.most_in_flight == in_flight


async def test_a_batch_is_bounded_in_items() -> None:
    commits = Commits(bounds=Bounds(items=2), held=False)

    await asyncio.gather(*commits.hand_in("a", "b", "c", "d", "e"))

    assert commits.batches == [["a", "b"], ["c", "d"], ["e"]]


async def test_a_batch_is_bounded_in_bytes() -> None:
    commits = Commits(bounds=Bounds(size=10), held=False)

    await asyncio.gather(*commits.hand_in("a", "b", "c", size=5))

    assert commits.batches == [["a", "b"], ["c"]]


async def test_an_item_larger_than_a_batch_goes_alone() -> None:
    commits = Commits(bounds=Bounds(size=10), held=False)

    await asyncio.gather(*commits.hand_in("a", "b", size=11))

    assert commits.batches == [["a"], ["b"]]


async def test_an_item_of_more_than_is_shared_goes_alone_wherever_it_stands() -> None:
    commits = Commits(bounds=Bounds(alone=10), held=False)

    tasks = commits.hand_in("a") + commits.hand_in("b", "c", size=11) + commits.hand_in("d", "e")
    await asyncio.gather(*tasks)

    assert commits.batches == [["a"], ["b"], ["c"], ["d", "e"]]


async def test_what_a_batch_has_no_room_for_is_in_flight_beside_it() -> None:
    commits = Commits(bounds=Bounds(items=2, in_flight=2))

    tasks = commits.hand_in("a", "b", "c", "d", "e")
    await turns()

    assert commits.batches == [["a", "b"], ["c", "d"]]
    commits.finish(3)
    assert await asyncio.gather(*tasks) == ["A", "B", "C", "D", "E"]


async def test_an_items_own_exception_is_its_callers_alone() -> None:
    commits = Commits(held=False)

    good, bad, other = await asyncio.gather(
        *commits.hand_in("a", "bad", "c"), return_exceptions=True
    )

    assert (good, other) == ("A", "C")
    assert isinstance(bad, ValueError)


async def test_a_failed_batch_gives_each_caller_an_exception_of_its_own() -> None:
    commits = Commits(held=False)
    commits.answer = StoreUnavailable("SQLITE_FULL", retry_after=7)

    raised = await asyncio.gather(*commits.hand_in("a", "b"), return_exceptions=True)

    assert raised[0] is not raised[1]
    for item in raised:
        assert isinstance(item, StoreUnavailable)
        assert (item.reason, item.retry_after) == ("SQLITE_FULL", 7)
        assert str(item) == str(commits.answer)


async def test_a_failed_batch_does_not_stop_the_next() -> None:
    commits = Commits(held=False)
    commits.answer = OSError("no")
    await asyncio.gather(*commits.hand_in("a"), return_exceptions=True)

    commits.answer = None

    assert await commits.group.add("b") == "B"


async def test_too_few_results_are_an_error_for_all() -> None:
    async def commit(batch: Sequence[str]) -> Sequence[str]:
        return batch[:1]

    group: GroupCommit[str, str] = GroupCommit(commit, deadline_seconds=60)

    _first, second = await asyncio.gather(group.add("a"), group.add("b"), return_exceptions=True)

    assert isinstance(second, ValueError)


async def test_a_caller_that_goes_away_before_the_commit_changes_nothing() -> None:
    commits = Commits()
    tasks = commits.hand_in("a", "b", "c")
    await asyncio.sleep(0)
    tasks[1].cancel()

    commits.finish()

    assert await asyncio.wait_for(tasks[0], timeout=20) == "A"
    assert await asyncio.wait_for(tasks[2], timeout=20) == "C"
    assert commits.batches == [["a", "b", "c"]]


async def test_a_caller_that_goes_away_during_the_commit_changes_nothing() -> None:
    commits = Commits()
    tasks = commits.hand_in("a", "b")
    await turns()
    tasks[0].cancel()
    await turns()

    commits.finish()

    assert await asyncio.wait_for(tasks[1], timeout=20) == "B"
    assert commits.batches == [["a", "b"]]


async def test_a_failure_that_no_caller_waits_for_is_no_trouble() -> None:
    commits = Commits()
    commits.answer = OSError("no")
    (task,) = commits.hand_in("a")
    await turns()
    task.cancel()

    commits.finish()
    await commits.group.drain()

    assert task.cancelled()


async def test_beyond_the_bound_nothing_more_is_taken() -> None:
    commits = Commits(bounds=Bounds(waiting=2))
    tasks = commits.hand_in("a")
    await turns()
    tasks += commits.hand_in("b", "c")
    await turns()

    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(commits.group.add("d"), timeout=20)

    commits.finish(2)
    await asyncio.gather(*tasks)
    assert commits.batches == [["a"], ["b", "c"]]


async def test_drain_waits_for_everything_that_was_handed_in() -> None:
    commits = Commits(bounds=Bounds(items=1))
    tasks = commits.hand_in("a", "b", "c")
    await turns()
    drained = asyncio.create_task(commits.group.drain())
    commits.finish(2)
    await turns()
    assert not drained.done()

    commits.finish()
    await drained
    await turns()

    assert all(task.done() for task in tasks)


async def test_an_item_that_arrives_as_the_last_batch_ends_is_not_forgotten() -> None:
    commits = Commits(held=False)

    async def one_after_another(name: str, waits: int) -> list[str]:
        results = []
        for number in range(50):
            results.append(await commits.group.add(f"{name}{number}"))
            await turns(waits)
        return results

    async with asyncio.timeout(20):
        results = await asyncio.gather(*(one_after_another(f"x{n}-", n) for n in range(6)))

    assert sum(map(len, results)) == 300


async def test_no_caller_waits_beyond_the_deadline() -> None:
    commits = Commits(deadline_seconds=0.05)
    began = time.monotonic()

    outcomes = await asyncio.gather(*commits.hand_in("a", "b"), return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 2
    assert 0.05 <= time.monotonic() - began < 5


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    """The clock of the loop, in milliseconds: its timers wait for it alone."""
    clock = HandClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock() / 1_000)
    return clock


async def test_each_has_a_deadline_of_its_own(clock: HandClock) -> None:
    commits = Commits(deadline_seconds=0.2)
    (first,) = commits.hand_in("a")
    await turns()
    clock.now += 100
    (second,) = commits.hand_in("b")
    await turns()

    clock.now += 150
    await turns()
    ended_together = second.done()
    commits.finish(2)

    assert isinstance(first.exception(), StoreUnavailable)
    assert not ended_together
    assert await second == "B"


async def test_after_a_deadline_that_was_kept_the_next_is_watched_as_well(
    clock: HandClock,
) -> None:
    commits = Commits(deadline_seconds=0.05)
    (first,) = commits.hand_in("a")
    commits.finish()
    await first
    clock.now += 100
    await turns()

    (second,) = commits.hand_in("b")
    await turns()
    clock.now += 100
    await turns()

    with pytest.raises(StoreUnavailable):
        second.result()


async def test_an_item_acknowledged_too_late_is_committed_all_the_same() -> None:
    commits = Commits(deadline_seconds=0.05)
    (task,) = commits.hand_in("a")
    await asyncio.wait([task])

    commits.finish()
    await commits.group.drain()

    assert commits.batches == [["a"]]


def test_a_group_that_is_forgotten_while_it_commits_ends_without_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def forgotten() -> None:
        commits = Commits()
        commits.group.add("a")
        await turns()

    errors: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    with closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(forgotten())
        gc.collect()

    assert errors == []


class Fetches:
    """A database that records its queries, and answers on request."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.kept = {"a": "A"}
        self.gate = asyncio.Semaphore(0)
        self.reads: GroupedReads[str, str] = GroupedReads(self.fetch, deadline_seconds=60)

    async def fetch(self, keys: Collection[str]) -> Mapping[str, str]:
        self.asked.append(sorted(keys))
        found = {key: self.kept[key] for key in keys if key in self.kept}
        await self.gate.acquire()
        return found


async def test_reads_of_one_turn_go_together_and_each_key_once() -> None:
    fetches = Fetches()
    fetches.gate.release()

    found = await asyncio.gather(*(fetches.reads.get(character) for character in "abab"))

    assert found == ["A", None, "A", None]
    assert fetches.asked == [["a", "b"]]


async def test_a_read_never_joins_one_that_is_in_flight() -> None:
    fetches = Fetches()
    before = asyncio.ensure_future(fetches.reads.get("a"))
    await turns()
    fetches.kept["a"] = "newer"

    after = asyncio.ensure_future(fetches.reads.get("a"))
    await turns()
    fetches.gate.release()
    fetches.gate.release()

    assert [await before, await after] == ["A", "newer"]
