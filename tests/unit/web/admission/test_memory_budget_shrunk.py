"""What a complete body gives back of its reservation."""

from __future__ import annotations

from fhirpub.web.admission.memory_budget import MemoryBudget
from tests.unit.web.admission.test_memory_budget import Arrive, arrive, settled, started

__all__ = ["arrive"]


async def test_what_a_complete_body_does_not_need_is_given_to_the_next_at_once(
    arrive: Arrive,
) -> None:
    memory_budget = MemoryBudget(100, patience_seconds=60)
    (first, _), (second, _) = arrive(), arrive()
    memory_budget.acquire(first, 60)
    waiting = started(memory_budget.acquire(second, 60))
    await settled()
    waited = second not in memory_budget

    memory_budget.shrink(first, 40)

    assert (waited, second in memory_budget) == (True, True)
    await waiting


async def test_a_body_that_holds_nothing_cannot_give_back(arrive: Arrive) -> None:
    memory_budget = MemoryBudget(100, patience_seconds=60)
    request, _ = arrive()

    memory_budget.shrink(request, 40)
    memory_budget.release(request)

    assert request not in memory_budget


async def test_a_complete_body_counts_with_its_size_and_not_with_what_was_expected(
    arrive: Arrive,
) -> None:
    memory_budget = MemoryBudget(90, patience_seconds=60, largest=60)
    (first, _), (second, _) = arrive(), arrive()
    memory_budget.acquire(first, 10, owner="lab")  # of unknown size: 45 of the 60 are kept for it

    memory_budget.shrink(first, 10)

    assert memory_budget.acquire(second, 20, owner="lab") is None


async def test_room_is_kept_for_the_oldest_body_of_unknown_size_and_for_no_other(
    arrive: Arrive,
) -> None:
    memory_budget = MemoryBudget(90, patience_seconds=60, largest=40)
    (oldest, _), (second, _), (third, _) = arrive(), arrive(), arrive()
    memory_budget.acquire(oldest, 40, owner="lab")  # as much as is kept for it

    found = [memory_budget.acquire(one, 10, owner="lab") for one in (second, third)]

    assert found == [None, None]
