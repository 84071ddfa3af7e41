"""The lag of the event loop is what holds it."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

from fhirpub.runtime import loop_lag
from fhirpub.runtime.loop_lag import LoopLag


async def test_a_held_loop_shows_as_its_longest_delay() -> None:
    lag = LoopLag()
    observed: list[float] = []
    measuring = asyncio.create_task(lag.run(observed.append))
    await asyncio.sleep(0.12)

    time.sleep(0.3)  # noqa: ASYNC251 - this is what is measured
    await asyncio.sleep(0.12)
    measuring.cancel()

    assert 0.2 < lag.highest() < 60
    assert max(observed) == lag.highest()
    assert lag.quantile(0.99) == lag.highest()


async def test_nothing_measured_is_no_lag() -> None:
    assert (LoopLag().highest(), LoopLag().quantile(0.99)) == (0.0, 0.0)


async def measured(delays: list[float], monkeypatch: pytest.MonkeyPatch) -> LoopLag:
    """Return what has measured timers that run so much later than they are due."""
    now, left = 100.0, iter(delays)

    class Clock:
        def time(self) -> float:
            return now

    async def sleep(seconds: float) -> None:
        nonlocal now
        delay = next(left, None)
        if delay is None:
            raise asyncio.CancelledError
        now += seconds + delay

    lag = LoopLag()
    with monkeypatch.context() as patched:
        # Its own name alone: a service may run in another thread of this process.
        loop = SimpleNamespace(get_running_loop=Clock, sleep=sleep)
        patched.setattr(loop_lag, "asyncio", loop)
        with pytest.raises(asyncio.CancelledError):
            await lag.run()
    return lag


async def test_a_share_of_the_delays_is_no_longer_than_their_quantile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lag = await measured([number / 8 for number in range(100, 0, -1)], monkeypatch)

    assert [lag.quantile(share) for share in (0, 0.5, 0.99, 1)] == [
        1 / 8,
        51 / 8,
        100 / 8,
        100 / 8,
    ]
    assert lag.highest() == 100 / 8


async def test_a_timer_that_runs_early_has_no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    lag = await measured([-0.03125], monkeypatch)

    assert lag.highest() == 0.0
    assert lag.quantile(1) == 0.0


async def test_the_delays_of_the_last_minute_alone_count(monkeypatch: pytest.MonkeyPatch) -> None:
    lag = await measured([9.0, 7.0, *[0.5] * 1_199], monkeypatch)

    assert lag.highest() == 7.0
