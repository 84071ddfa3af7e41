"""Memory of large work is returned to the system."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.runtime import memory
from tests.waiting import until

PROGRAM = """
import asyncio, resource, time
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
    until = time.monotonic() + 30
    while resident() - idle >= 64_000_000 and time.monotonic() < until:
        await asyncio.sleep(0.01)
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


class Libc:
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int] | tuple[str, int]] = []

    def mallopt(self, parameter: int, value: int) -> None:
        self.asked.append(("mallopt", parameter, value))

    def malloc_trim(self, pad: int) -> None:
        self.asked.append(("malloc_trim", pad))


@pytest.fixture
def libc(monkeypatch: pytest.MonkeyPatch) -> Libc:
    found = Libc()
    monkeypatch.setattr(memory, "_glibc", lambda: found)
    return found


def test_large_blocks_are_returned_at_once_and_heaps_are_few(libc: Libc) -> None:
    memory.tune_allocator()

    mebibyte = 1024 * 1024
    assert libc.asked == [
        ("mallopt", -3, 8 * mebibyte),  # M_MMAP_THRESHOLD
        ("mallopt", -1, 64 * mebibyte),  # M_TRIM_THRESHOLD
        ("mallopt", -8, 2),  # M_ARENA_MAX
    ]


def test_memory_is_returned_at_once_if_that_is_asked_for(libc: Libc) -> None:
    memory.return_memory()

    assert libc.asked == [("malloc_trim", 0)]


async def test_memory_is_returned_once_after_large_work(
    libc: Libc, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    trimmer = memory.MemoryTrimmer()
    # Its own name alone: a service may run in another thread of this process.
    own = SimpleNamespace(sleep=pause, to_thread=asyncio.to_thread)
    monkeypatch.setattr(memory, "asyncio", own)
    task = asyncio.create_task(trimmer.run())
    await until(lambda: len(pauses) > 2)
    assert libc.asked == []

    trimmer.note_large_work()
    noted = len(pauses)
    await until(lambda: len(pauses) > noted + 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert libc.asked == [("malloc_trim", 0)]
    assert {*pauses} == {10.0}


@pytest.mark.parametrize(
    ("platform", "names", "is_glibc"),
    [
        ("linux", ["malloc_trim", "mallopt"], True),
        ("linux", ["mallopt"], False),
        ("linux", ["malloc_trim"], False),
        ("darwin", ["malloc_trim", "mallopt"], False),
    ],
)
def test_nothing_is_done_where_the_library_is_another(
    monkeypatch: pytest.MonkeyPatch, platform: str, names: list[str], *, is_glibc: bool
) -> None:
    library: Any = type("Library", (), dict.fromkeys(names))
    monkeypatch.setattr(memory, "ctypes", SimpleNamespace(CDLL=lambda _name: library))
    monkeypatch.setattr(memory, "sys", SimpleNamespace(platform=platform))

    assert (memory._glibc() is library) is is_glibc
