"""The time of the machine, in milliseconds."""

from __future__ import annotations

import time

from fhirpub.runtime.clock import DAY_MS, HOUR_MS, now_ms


def test_the_time_is_in_whole_milliseconds() -> None:
    for _time in range(1_000):  # so often that a rounded time would be later than the machine's
        before = time.time_ns()
        found = now_ms()
        after = time.time_ns()

        assert before // 1_000_000 <= found <= after // 1_000_000


def test_an_hour_and_a_day_are_in_milliseconds() -> None:
    assert (HOUR_MS, DAY_MS) == (60 * 60 * 1000, 24 * HOUR_MS)
