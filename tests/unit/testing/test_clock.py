"""The published clock moves only when a test moves it."""

from __future__ import annotations

import pytest

from fhirpub.testing.clock import HandClock


@pytest.mark.parametrize(
    ("seconds", "milliseconds"), [(1, 1_000), (0.25, 250), (1.5, 1_500), (0.0009, 0)]
)
def test_it_moves_by_seconds_to_the_millisecond(seconds: float, milliseconds: int) -> None:
    clock = HandClock(1_000)

    clock.forward(seconds=seconds)

    assert clock() == clock.now == 1_000 + milliseconds


def test_it_stands_still_between() -> None:
    clock = HandClock()

    assert clock() == clock()
