"""What becomes of a process whose job ends while the pool is being closed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fhirpub.runtime.process_pool import ProcessPool
from tests.unit.runtime.pool_jobs import MODULE, wait_for_file
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
