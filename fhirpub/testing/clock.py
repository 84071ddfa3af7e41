"""A clock that stands still until a test moves it."""

from __future__ import annotations


class HandClock:
    """A clock for tests: calling it returns its time in milliseconds since 1970-01-01 UTC.

    Args:
        now: The time at which it starts, in milliseconds.

    Attributes:
        now: Its current time, in milliseconds.
    """

    def __init__(self, now: int = 1_795_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def forward(self, *, seconds: float) -> None:
        """Move the clock forward.

        Args:
            seconds: The duration in seconds; fractions of a millisecond are dropped.
        """
        self.now += int(seconds * 1000)
