"""What is no abuse: how much of a neighbour's latency is the machine's alone."""

from __future__ import annotations

import asyncio
import sys

from bench.abuses.attack import Attack, Phases, abuse

_COMPUTING = "while True: pass"


@abuse("computed")
async def nothing_but_one_process(attack: Attack) -> Phases:
    """Sends nothing: one process computes, as the service's own would for the abuser."""
    yield
    await _compute(attack, 1)


@abuse("computed")
async def nothing_but_two_processes(attack: Attack) -> Phases:
    """Sends nothing: two processes compute, as the abuser and the service's own would."""
    yield
    await _compute(attack, 2)


async def _compute(attack: Attack, count: int) -> None:
    """Run processes, of the abuser's low priority, until this is cancelled."""
    words = (sys.executable, "-c", _COMPUTING)
    processes = [await asyncio.create_subprocess_exec(*words) for _ in range(count)]
    attack.count("computed")
    try:
        await asyncio.Event().wait()
    finally:
        for process in processes:
            process.kill()
            await process.wait()
