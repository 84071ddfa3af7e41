"""A read ends at its deadline, and a search also after its time or its steps."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from fhirpub.storage.sqlite import work_budget
from fhirpub.storage.sqlite.work_budget import STEPS_BETWEEN_CHECKS, WorkBudget

STEPS_OF_TEN_SECONDS = 60_000_000
CHECKS_OF_TEN_SECONDS = STEPS_OF_TEN_SECONDS // STEPS_BETWEEN_CHECKS


def in_a_minute() -> float:
    return time.monotonic() + 60


def started(deadline: float, max_seconds: float | None = None) -> WorkBudget:
    budget = WorkBudget(deadline, max_seconds)
    budget.start()
    return budget


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The moment that the clock of a budget shows."""
    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(work_budget, "time", clock)
    return now


def test_a_read_goes_on_before_its_deadline() -> None:
    assert started(in_a_minute()).check() is False


def test_a_read_ends_after_its_deadline() -> None:
    assert started(time.monotonic() - 0.001).check() is True


def test_a_read_that_is_no_search_may_take_any_number_of_steps() -> None:
    budget = started(in_a_minute())

    assert not any(budget.check() for _ in range(2 * CHECKS_OF_TEN_SECONDS))


def test_a_read_that_is_no_search_uses_nothing_up_by_its_deadline() -> None:
    budget = started(time.monotonic() - 0.001)

    assert budget.check()
    assert budget.is_exceeded is False


def test_a_search_may_take_as_many_steps_as_belong_to_its_time() -> None:
    budget = started(in_a_minute(), 10.0)

    assert not any(budget.check() for _ in range(CHECKS_OF_TEN_SECONDS))
    assert budget.is_exceeded is False


def test_a_search_ends_with_the_first_step_too_many() -> None:
    budget = started(in_a_minute(), 10.0)
    for _ in range(CHECKS_OF_TEN_SECONDS):
        budget.check()

    assert budget.check() is True
    assert budget.is_exceeded is True


def test_a_search_ends_after_its_time_though_it_took_few_steps(now: list[float]) -> None:
    budget = started(now[0] + 60, 0.002)
    now[0] += 0.003

    assert budget.check() is True
    assert budget.is_exceeded is True


def test_the_time_of_a_search_begins_with_it(now: list[float]) -> None:
    budget = WorkBudget(now[0] + 60, 0.002)
    now[0] += 0.003
    budget.start()

    assert budget.check() is False


def test_a_search_that_has_ended_does_not_go_on(now: list[float]) -> None:
    budget = started(now[0] + 60, 0.0)
    ends = [budget.check() for _ in range(3)]

    assert ends == [True] * 3
    assert budget.is_exceeded


def test_a_search_that_waited_until_the_deadline_has_not_used_up_its_time() -> None:
    budget = started(time.monotonic() - 0.001, 10.0)

    assert budget.check() is True
    assert budget.is_exceeded is False
