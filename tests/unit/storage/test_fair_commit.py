"""Fair group commit: what goes together when several owners wait, and who is next."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from fhirpub.storage.batching import Bounds
from fhirpub.storage.fair_commit import FairCommit


class Commits:
    """An engine that records its batches and finishes one on request.

    The first letter of an item is its owner, the number after it is what it costs.
    """

    def __init__(self, *, cost: int = 10, items: int = 128, alone: int = 100) -> None:
        self.batches: list[list[str]] = []
        self._gate = asyncio.Semaphore(0)
        self._group: FairCommit[str, str] = FairCommit(
            self._commit,
            owner_of=lambda item: item[0],
            deadline_seconds=60,
            bounds=Bounds(size=cost, items=items, alone=alone),
        )

    async def _commit(self, batch: Sequence[str]) -> Sequence[str]:
        self.batches.append(list(batch))
        await self._gate.acquire()
        return batch

    def hand_in(self, items: str) -> None:
        """Hand in items, which blanks divide."""
        for item in items.split():
            self._group.add(item, size=int(item[1:]))

    async def begin(self, items: str) -> None:
        """Hand in items and return when the first batch of them is in progress."""
        self.hand_in(items)
        await _turns()

    async def finish(self, count: int = 1) -> None:
        """Finish batches, one after another; return when the next one is in progress."""
        for _ in range(count):
            self._gate.release()
            await _turns()

    async def finish_all(self) -> None:
        """Finish everything that was handed in."""
        for _ in range(1_000):
            self._gate.release()
        await self._group.drain()


async def _turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_owners_take_turns() -> None:
    commits = Commits()
    await commits.begin("x1")
    commits.hand_in("a2 a2 a2 a2 a2 b2 b2 b2 b2 b2")

    await commits.finish()

    assert commits.batches[1] == ["a2", "b2", "a2", "b2", "a2"]


async def test_an_owner_with_small_items_gets_several_for_a_large_one_of_another() -> None:
    commits = Commits()
    await commits.begin("x1")
    commits.hand_in("a4 a4 a4 b1 b1 b1 b1 b1 b1")

    await commits.finish()

    assert commits.batches[1] == ["a4", "b1", "b1", "b1", "b1", "b1", "b1"]


async def test_a_batch_is_bounded_by_its_cost() -> None:
    commits = Commits()
    await commits.begin("x1")
    commits.hand_in("a4 a4 a4 a4 a4")

    await commits.finish(3)

    assert commits.batches[1:] == [["a4", "a4"], ["a4", "a4"], ["a4"]]


async def test_a_batch_is_bounded_by_its_number_of_items() -> None:
    commits = Commits(items=2)
    await commits.begin("x1")
    commits.hand_in("a1 a1 b1 b1")

    await commits.finish(2)

    assert commits.batches[1:] == [["a1", "b1"], ["a1", "b1"]]


async def test_an_item_of_more_than_is_shared_goes_alone_and_costs_no_more() -> None:
    commits = Commits(alone=3)
    await commits.begin("x1")
    commits.hand_in("a4 b1 b1 b1 b1 b1 a1")

    await commits.finish(3)

    assert commits.batches[1:] == [["a4"], ["b1", "b1", "b1", "b1", "b1", "a1"]]


async def test_an_item_beyond_the_bound_goes_alone() -> None:
    commits = Commits()
    await commits.begin("a11 b1 b1")

    await commits.finish()

    assert commits.batches == [["a11"], ["b1", "b1"]]


async def test_an_owner_that_was_idle_waits_for_the_batch_in_progress_only() -> None:
    commits = Commits()
    await commits.begin("a30 a30 a30")
    commits.hand_in("b1")

    await commits.finish()

    assert commits.batches == [["a30"], ["b1"]]


async def test_an_owner_that_was_idle_is_before_all_others_that_wait() -> None:
    commits = Commits()
    await commits.begin("a8 b8 c8 a8 b8 c8")
    await commits.finish(2)
    commits.hand_in("d1")

    await commits.finish()

    assert commits.batches[-1][0] == "d1"


async def test_items_of_one_owner_stay_in_their_order() -> None:
    commits = Commits()
    await commits.begin("a6 a5 a1")

    await commits.finish()

    assert commits.batches == [["a6"], ["a5", "a1"]]


async def test_an_item_beyond_the_bound_is_not_overtaken_for_ever() -> None:
    commits = Commits()
    await commits.begin("b3")
    commits.hand_in("a30 b3 b3 b3 b3")
    for _ in range(4):
        commits.hand_in("b3 b3")
        await commits.finish()

    assert ["a30"] in commits.batches


async def test_an_owner_that_worked_alone_has_no_debt() -> None:
    commits = Commits()
    await commits.begin("a10 a10 a10 a10 a2 a2")
    await commits.finish(3)
    commits.hand_in("b2 b2 b2 b2 b2 b2 b2 b2 b2 b2")

    await commits.finish(3)

    assert "a2" in commits.batches[-1] + commits.batches[-2]


async def test_an_owner_that_was_idle_for_long_has_no_credit() -> None:
    commits = Commits()
    await commits.begin("b1")
    commits.hand_in("a2 a2 a2 a2 a2 a2 a2 a2 a2 a2 a2 a2")
    await commits.finish(2)
    commits.hand_in("b2 b2 b2 b2 b2 b2")

    await commits.finish()

    assert commits.batches[-1] == ["b2", "a2", "b2", "a2", "b2"]


async def test_every_item_is_committed_once() -> None:
    commits = Commits()
    numbers = random.Random(1)
    items = [f"{numbers.choice('abcd')}{numbers.randint(1, 15)}" for _ in range(300)]

    commits.hand_in(" ".join(items))
    await commits.finish_all()

    assert sorted(item for batch in commits.batches for item in batch) == sorted(items)


async def test_an_item_of_just_the_rest_of_a_batch_goes_along() -> None:
    commits = Commits()
    await commits.begin("x1")
    commits.hand_in("a6 b4 c1")

    await commits.finish()

    assert commits.batches[1] == ["a6", "b4"]


async def test_what_does_not_fit_lets_those_of_other_owners_pass() -> None:
    commits = Commits()
    await commits.begin("x1")
    commits.hand_in("a6 b5 c4")

    await commits.finish(2)

    assert commits.batches[1:] == [["a6", "c4"], ["b5"]]


async def test_of_owners_that_had_as_much_the_one_that_waits_longest_is_first() -> None:
    commits = Commits()
    await commits.begin("x1")
    commits.hand_in("c9 a9 b9")

    await commits.finish(3)

    assert commits.batches[1:] == [["c9"], ["a9"], ["b9"]]


async def test_the_owner_that_had_less_is_first_whoever_waits_longer() -> None:
    commits = Commits(cost=9)
    await commits.begin("a5 a5 b9 a5 b9")

    await commits.finish(4)

    assert commits.batches == [["a5"], ["b9"], ["a5"], ["b9"], ["a5"]]


async def test_an_owner_comes_back_with_what_it_has_had_before() -> None:
    commits = Commits()
    await commits.begin("a9")
    commits.hand_in("b2")
    await commits.finish()
    commits.hand_in("a2 b2 b2")

    await commits.finish()

    assert commits.batches == [["a9"], ["b2"], ["b2", "b2", "a2"]]


async def test_a_batch_of_items_that_cost_nothing_is_bounded_by_their_number() -> None:
    commits = Commits(items=3)
    await commits.begin("x1")
    commits.hand_in("a0 a0 b0 b0")

    await commits.finish(2)

    assert [len(batch) for batch in commits.batches] == [1, 3, 1]
