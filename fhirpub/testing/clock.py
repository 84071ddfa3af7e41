"""A clock that stands still until a test moves it."""

from __future__ import annotations


class HandClock:
    """Call it for the time; move it with :meth:`forward`. Milliseconds UTC."""

    def __init__(self, now: int = 1_795_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def forward(self, *, seconds: float) -> None:
        """Let time pass."""
        self.now += int(seconds * 1000)
