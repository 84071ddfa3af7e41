"""Nemeses: each harms a running service while clients work, and leaves it healthy."""

from __future__ import annotations

import asyncio
import os
import signal
from random import Random

from fhirpub.testing.process import ServiceProcess
from tests.faults.histories import Nemesis
from tests.mongod.replica_set import ReplicaSet
from tests.waiting import wait_until

_HEARD_SECONDS = 1.0
"""By then every worker knows the new primary, on a busy machine too."""


def kills(process: ServiceProcess, random: Random, *, workers: int, services: int) -> Nemesis:
    """Kill single workers, and all of them with their supervisor, this number of times each."""

    async def nemesis() -> None:
        victims = ["worker"] * workers + ["service"] * services
        random.shuffle(victims)
        for victim in victims:
            await asyncio.sleep(random.uniform(0.1, 0.6))
            if victim == "worker":
                await asyncio.to_thread(kill_one_worker, process, random.randrange(2))
            else:
                await asyncio.to_thread(process.kill)
                await asyncio.to_thread(process.start)
        # A replacement worker exists before it listens, and both may have been killed.
        assert await asyncio.to_thread(wait_until, lambda: _listens(process))

    return nemesis


def failovers(
    members: ReplicaSet, random: Random, *, step_downs: int, kills: int, pauses: int
) -> Nemesis:
    """Take the primary away this number of times; it returns after another has taken over."""

    async def nemesis() -> None:
        losses = [members.step_down] * step_downs
        losses += [members.kill_primary] * kills + [members.pause_primary] * pauses
        random.shuffle(losses)
        for lose_primary in losses:
            await asyncio.sleep(random.uniform(0.1, 0.6))
            await asyncio.to_thread(lose_primary)
            await asyncio.to_thread(members.primary)
            await asyncio.sleep(random.uniform(0.1, 0.4))
            if lose_primary == members.pause_primary:
                # It wakes up as a primary that does not know of the other one yet.
                await asyncio.sleep(_HEARD_SECONDS)
            await asyncio.to_thread(members.restore)

    return nemesis


def nothing(seconds: float) -> Nemesis:
    """Wait without doing harm."""
    return lambda: asyncio.sleep(seconds)


def _listens(process: ServiceProcess) -> bool:
    try:
        return process.request("GET", "/health/ready").status == 200
    except OSError:
        return False


def kill_one_worker(process: ServiceProcess, number: int) -> None:
    """Kill a worker and wait for its successor."""
    victim = process.workers[number]
    os.kill(victim, signal.SIGKILL)
    replaced = wait_until(lambda: len(process.workers) == 2 and victim not in process.workers)
    assert replaced
