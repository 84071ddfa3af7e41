"""Memory of large work is returned to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, resource
from fhirpub.runtime import memory

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()

async def main():
    memory.tune_allocator()
    memory._TRIM_SECONDS = 0.05
    trimmer = memory.MemoryTrimmer()
    task = asyncio.create_task(trimmer.run())
    idle = resident()
    work = [asyncio.to_thread(lambda: [bytes(900) for _ in range(60_000)]) for _ in range(4)]
    await asyncio.gather(*work)
    trimmer.note_large_work()
    await asyncio.sleep(1.0)
    task.cancel()
    print((resident() - idle) // 1_000_000)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is what is tuned")
def test_what_large_work_took_is_returned() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )

    assert int(done.stdout) < 64
