"""The time of the machine, in milliseconds."""

from __future__ import annotations

import time

import pytest

from fhirpub.runtime.clock import DAY_MS, HOUR_MS, now_ms


def test_the_time_is_in_whole_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_999_999)

    assert now_ms() == 1_700_000_000_123


def test_an_hour_and_a_day_are_in_milliseconds() -> None:
    assert (HOUR_MS, DAY_MS) == (60 * 60 * 1000, 24 * HOUR_MS)
