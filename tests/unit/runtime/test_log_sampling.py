"""Of equal lines some are written, the others counted, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

from fhirpub.runtime.log_sampling import (
    LINES_PER_MINUTE,
    MAX_KINDS,
    OTHER,
    WINDOW_MS,
    Kind,
    LineSampler,
)


@dataclass
class HandClock:
    now: int = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now


def admitted(sampler: LineSampler, reason: str, lines: int = 100) -> int:
    return sum(sampler.admits("info", "refused", reason) for _ in range(lines))


def test_a_minute_has_so_many_lines_of_a_kind() -> None:
    assert admitted(LineSampler(HandClock()), "401") == LINES_PER_MINUTE


def test_a_kind_does_not_use_up_the_lines_of_another() -> None:
    sampler = LineSampler(HandClock())
    admitted(sampler, "401")

    assert admitted(sampler, "404", 3) == 3


def test_a_new_window_counts_from_the_beginning_and_reports_the_last_one() -> None:
    sampler = LineSampler(HandClock())
    admitted(sampler, "401")
    admitted(sampler, "404", LINES_PER_MINUTE)

    left_out = list(sampler.renew())

    assert left_out == [(Kind("info", "refused", "401"), 100 - LINES_PER_MINUTE)]
    assert admitted(sampler, "401") == LINES_PER_MINUTE


def test_reasons_that_all_differ_take_bounded_memory_and_bounded_lines() -> None:
    sampler = LineSampler(HandClock())

    lines = sum(admitted(sampler, f"{number}{'x' * 10_000}", 1) for number in range(10_000))

    assert lines == MAX_KINDS + LINES_PER_MINUTE
    assert len(sampler._counts) == MAX_KINDS + 1
    assert max(len(kind.reason) for kind in sampler._counts) <= 200
    assert list(sampler.renew()) == [(Kind("info", "refused", OTHER), 10_000 - lines)]


def test_a_window_lasts_a_minute() -> None:
    clock = HandClock()
    sampler = LineSampler(clock)

    assert sampler.milliseconds_left() == WINDOW_MS
    clock.now += WINDOW_MS - 1
    assert sampler.milliseconds_left() == 1
    clock.now += 1
    assert sampler.milliseconds_left() == 0


def test_a_clock_that_is_set_back_ends_the_window() -> None:
    clock = HandClock()
    sampler = LineSampler(clock)

    clock.now -= 1

    assert sampler.milliseconds_left() == 0


def test_a_window_that_is_renewed_lasts_a_minute_again() -> None:
    clock = HandClock()
    sampler = LineSampler(clock)
    clock.now += WINDOW_MS + 5

    assert list(sampler.renew()) == []

    assert sampler.milliseconds_left() == WINDOW_MS
