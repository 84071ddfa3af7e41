"""The one door to the current time, so that tests can hold it still."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns the current time in milliseconds since 1970-01-01 UTC."""
HOUR_MS = 3_600_000
DAY_MS = 86_400_000


def now_ms() -> int:
    """Return the machine's time in milliseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1_000_000
