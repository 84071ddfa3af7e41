"""Runs one abuse as a child of ``bench.neighbours`` (see ``bench.children``)."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from time import perf_counter, process_time
from typing import Any

from bench.abuses.attack import Attack, Phases
from bench.abuses.catalogue import ABUSES
from bench.children import READY, lower_priority, read_phase, read_setup, write

_NICE = 10
"""The abuser would have a machine of its own: it must not take the service's processor."""


async def _run_for(phases: Phases, seconds: float) -> None:
    with suppress(TimeoutError, StopAsyncIteration):
        async with asyncio.timeout(seconds):
            await anext(phases)


async def run() -> None:
    setup = read_setup()
    abuse = ABUSES[setup.pop("name")]
    attack = Attack(**setup)
    async with aclosing(abuse.run(attack)) as phases:
        await anext(phases)
        write(READY)
        seconds = await asyncio.to_thread(read_phase)
        if seconds is None:
            return
        attack.statuses.clear()
        attack.requests = attack.sent = 0
        begun, cpu = perf_counter(), process_time()
        await _run_for(phases, seconds)
        took = perf_counter() - begun
        write(_result(attack, took, process_time() - cpu))
    await asyncio.to_thread(read_phase)  # until the parent has ended its measurement


def _result(attack: Attack, took: float, cpu: float) -> dict[str, Any]:
    return {
        "requests": attack.requests,
        "sent_mib": round(attack.sent / 1024**2, 1),
        "statuses": dict(attack.statuses),
        "seconds": round(took, 2),
        "busy": round(cpu / took, 2),
        "bound_reached": attack.is_over,
    }


if __name__ == "__main__":
    lower_priority(_NICE)
    asyncio.run(run())
