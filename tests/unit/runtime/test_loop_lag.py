"""The lag of the event loop is what holds it."""

from __future__ import annotations

import asyncio
import time

from fhirpub.runtime.loop_lag import LoopLag


async def test_a_held_loop_shows_as_its_longest_delay() -> None:
    lag = LoopLag()
    observed: list[float] = []
    measuring = asyncio.create_task(lag.run(observed.append))
    await asyncio.sleep(0.12)

    time.sleep(0.3)  # noqa: ASYNC251 - this is what is measured
    await asyncio.sleep(0.12)
    measuring.cancel()

    assert 0.2 < lag.highest() < 5
    assert max(observed) == lag.highest()
    assert lag.quantile(0.99) == lag.highest()


async def test_nothing_measured_is_no_lag() -> None:
    assert (LoopLag().highest(), LoopLag().quantile(0.99)) == (0.0, 0.0)
