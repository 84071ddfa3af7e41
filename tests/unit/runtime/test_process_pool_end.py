"""What becomes of a process whose job ends while the pool is being closed."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from fhirpub.errors import Busy
from fhirpub.runtime import process_pool
from fhirpub.runtime.process_pool import ProcessPool
from tests.unit.runtime.pool_jobs import MODULE, pid_and_body, wait_for_file
from tests.unit.runtime.test_process_pool import has_begun, importable, is_running
from tests.waiting import until

__all__ = ["importable"]


async def test_a_process_whose_job_ends_after_the_close_has_begun_is_not_kept(
    tmp_path: Path,
) -> None:
    pool, file = ProcessPool(MODULE, "nothing", max_processes=1), tmp_path / "file"
    job = asyncio.create_task(pool.run("lab", wait_for_file, [str(file).encode()]))
    await until(lambda: has_begun(file))

    pool._is_closed = True
    file.touch()
    pid = await asyncio.wait_for(job, 30)

    assert pool.running == 0
    await asyncio.wait_for(pool.close(), 30)
    assert not is_running(pid)


async def test_all_jobs_in_progress_are_abandoned_when_a_pool_is_closed(tmp_path: Path) -> None:
    pool = ProcessPool(MODULE, "nothing", max_processes=3)
    files = [tmp_path / name for name in "abc"]
    jobs = [
        asyncio.create_task(pool.run(file.name, wait_for_file, [str(file).encode()]))
        for file in files
    ]
    await until(lambda: all(map(has_begun, files)))

    await asyncio.wait_for(pool.close(), 60)

    found = await asyncio.wait_for(asyncio.gather(*jobs, return_exceptions=True), 30)
    assert [type(one) for one in found] == [Busy] * 3
    assert pool.running == 0


def memory_files() -> set[int]:
    """Return the files in memory that this process has open, also those of other pools."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            target = str(descriptor.readlink())
            if "memfd:fhirpub" in target:
                found.add(descriptor.stat().st_ino)
    return found


async def test_a_pool_that_is_closed_leaves_no_file_in_memory() -> None:
    before = memory_files()
    pool = ProcessPool(MODULE, "nothing", max_processes=1)
    await pool.run("lab", pid_and_body, [])
    own = memory_files() - before
    assert len(own) == 2

    await asyncio.wait_for(pool.close(), 30)

    assert not memory_files() & own


async def test_a_process_that_was_idle_for_too_long_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_pool, "_IDLE_SECONDS", 0.0)
    pool = ProcessPool(MODULE, "nothing", max_processes=1)
    await pool.run("lab", pid_and_body, [])

    await until(lambda: not pool.running)

    assert pool._idle == []
    await asyncio.wait_for(pool.close(), 30)
