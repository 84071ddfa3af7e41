"""Pure functions run in other processes, which may die."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from fhirpub.app import compute
from fhirpub.config.settings import Config
from fhirpub.errors import (
    BrokenRule,
    Busy,
    FhirpubError,
    InvalidContent,
    Issue,
    NotExpressible,
    Throttled,
    TooLarge,
)
from fhirpub.problems import ContentProblem
from fhirpub.runtime import process_pool
from fhirpub.runtime.memory_file import MemoryFile
from fhirpub.runtime.process_pool import ProcessPool, ProcessUnavailable
from tests.unit.runtime import pool_jobs
from tests.unit.runtime.pool_jobs import (
    MODULE,
    die,
    fail,
    much,
    pid_and_body,
    refuse,
    size_of,
    wait_for_file,
    write_to_standard_output,
)
from tests.waiting import until

REFUSALS: list[FhirpubError] = [
    InvalidContent([Issue("error", "invalid", "is wrong", "Patient.name")]),
    BrokenRule.because("breaks a rule", details=ContentProblem.RULE_BROKEN),
    TooLarge.because("is too large", expression="Patient", details=ContentProblem.BODY_TOO_LARGE),
    NotExpressible("Patient.text"),
]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes find the module that they run: their path has no current folder."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


@pytest.fixture
async def pool() -> AsyncGenerator[ProcessPool]:
    pool = ProcessPool(MODULE, "nothing", max_processes=2)
    yield pool
    await pool.close()


async def pid_of(pool: ProcessPool, owner: str = "lab") -> int:
    pid, _body = await pool.run(owner, pid_and_body, [])
    return pid


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def has_begun(file: Path) -> bool:
    return Path(f"{file}.begun").exists()


async def test_a_function_gets_the_chunks_joined_in_another_process(pool: ProcessPool) -> None:
    chunks = [b"x" * 3_000_000, b"", b"y"]

    pid, body = await pool.run("lab", pid_and_body, chunks)

    assert body == b"x" * 3_000_000 + b"y"
    assert pid != os.getpid()


async def test_a_large_argument_is_handed_over_in_pieces(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    append = MemoryFile.append

    def recorded(file: MemoryFile, data: bytes | memoryview) -> None:
        sizes.append(len(data))
        append(file, data)

    monkeypatch.setattr(MemoryFile, "append", recorded)

    found = await pool.run("lab", partial(size_of, argument=bytes(1_000_000)), [b""])

    assert found == 1_000_000
    assert max(sizes) == 262_144


async def test_a_process_is_used_again(pool: ProcessPool) -> None:
    assert await pid_of(pool) == await pid_of(pool)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: type(refusal).__name__)
def test_a_refusal_is_the_same_after_pickling(refusal: FhirpubError) -> None:
    copy = pickle.loads(pickle.dumps(refusal))

    assert (type(copy), str(copy), vars(copy)) == (type(refusal), str(refusal), vars(refusal))


async def test_a_refusal_of_the_function_is_raised_with_its_issues(pool: ProcessPool) -> None:
    with pytest.raises(InvalidContent) as raised:
        await pool.run("lab", partial(refuse, refusal=REFUSALS[0]), [])

    assert raised.value.issues == (Issue("error", "invalid", "is wrong", "Patient.name"),)


async def test_a_fault_is_logged_by_its_place_without_its_text(
    pool: ProcessPool, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RuntimeError, match="failed in another process"):
        await pool.run("lab", fail, [])

    log = capfd.readouterr().err
    assert "ValueError" in log
    assert f"{pool_jobs.__file__}:" in log
    assert "patient" not in log


async def test_what_a_function_prints_is_no_answer(pool: ProcessPool) -> None:
    assert await pool.run("lab", write_to_standard_output, []) == "done"
    assert await pool.run("lab", write_to_standard_output, []) == "done"


async def test_a_process_that_dies_is_replaced_and_the_function_runs_again(
    pool: ProcessPool, tmp_path: Path
) -> None:
    assert await pool.run("lab", die, [f"{tmp_path}/died|1".encode()]) == "survived"


async def test_a_process_that_dies_is_replaced_by_a_new_one_beside_others_that_are_idle(
    pool: ProcessPool, tmp_path: Path
) -> None:
    files = [tmp_path / owner for owner in ("lab", "clinic")]
    jobs = [
        asyncio.create_task(pool.run(file.name, wait_for_file, [str(file).encode()]))
        for file in files
    ]
    await until(lambda: all(map(has_begun, files)))
    for file in files:
        file.touch()
    await asyncio.gather(*jobs)
    assert pool.running == 2

    assert await pool.run("lab", die, [f"{tmp_path / 'died'}|1".encode()]) == "survived"

    assert pool.running == 2


async def test_a_function_that_kills_its_process_twice_is_refused_for_now(
    pool: ProcessPool, tmp_path: Path
) -> None:
    with pytest.raises(Busy):
        await pool.run("lab", die, [f"{tmp_path}/died|2".encode()])

    assert await pid_of(pool)


async def test_a_process_that_was_killed_while_idle_is_replaced(pool: ProcessPool) -> None:
    first = await pid_of(pool)
    os.kill(first, signal.SIGKILL)

    assert await pid_of(pool) != first


async def test_a_process_that_has_died_while_idle_is_no_longer_counted(pool: ProcessPool) -> None:
    os.kill(await pid_of(pool), signal.SIGKILL)
    ((child, _timer),) = pool._idle
    await until(lambda: not child.is_alive)

    assert await pid_of(pool) != child.pid
    assert pool.running == 1


async def test_a_process_ignores_the_signals_that_stop_the_service(pool: ProcessPool) -> None:
    first = await pid_of(pool)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(first, number)

    assert await pid_of(pool) == first


async def test_an_owner_leaves_a_process_for_others(pool: ProcessPool, tmp_path: Path) -> None:
    files = [tmp_path / "one", tmp_path / "two"]
    running = [
        asyncio.create_task(pool.run("lab", wait_for_file, [str(file).encode()])) for file in files
    ]
    await until(lambda: has_begun(files[0]))

    of_another = await asyncio.wait_for(pid_of(pool, "clinic"), 30)
    waits = not has_begun(files[1])
    for file in files:
        file.touch()

    pid_of_first, _ = await asyncio.gather(*running)
    assert waits
    assert of_another != pid_of_first


async def test_a_cancelled_function_leaves_no_answer_for_the_next(
    pool: ProcessPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "never"
    running = asyncio.create_task(pool.run("lab", wait_for_file, [str(file).encode()]))
    await until(lambda: has_begun(file))
    with monkeypatch.context() as patched:  # not for the end of the pool
        patched.setattr(process_pool, "_STOP_SECONDS", 0.1)
        running.cancel()

        assert await pool.run("lab", pid_and_body, [b"next"]) == (await pid_of(pool), b"next")


async def test_an_idle_process_ends(pool: ProcessPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "_IDLE_SECONDS", 0.05)
    pid = await pid_of(pool)

    await until(lambda: not is_running(pid))


async def test_a_process_that_is_used_again_does_not_end_for_having_been_idle(
    pool: ProcessPool,
) -> None:
    pid = await pid_of(pool)
    [(_child, end)] = pool._idle

    assert await pid_of(pool) == pid
    assert end.cancelled()


async def test_closing_ends_a_process_that_is_at_work(tmp_path: Path) -> None:
    pool = ProcessPool(MODULE, "nothing", max_processes=1)
    pid = await pid_of(pool)
    file = tmp_path / "never"
    running = asyncio.create_task(pool.run("lab", wait_for_file, [str(file).encode()]))
    await until(lambda: has_begun(file))

    running.cancel()
    await pool.close()

    assert not is_running(pid)


async def test_a_process_that_cannot_start_is_reported_and_not_tried_again_at_once(
    capfd: pytest.CaptureFixture[str],
) -> None:
    pool = ProcessPool("fhirpub.no_such_module", Config(), max_processes=2)

    for _ in range(2):
        with pytest.raises(ProcessUnavailable):
            await pool.run("lab", pid_and_body, [])
    await pool.close()

    assert capfd.readouterr().err.count("No module named") == 1


async def test_a_process_whose_settings_are_wrong_cannot_start(
    capfd: pytest.CaptureFixture[str],
) -> None:
    pool = ProcessPool(compute.MODULE, "no configuration", max_processes=2)

    with pytest.raises(ProcessUnavailable):
        await pool.run("lab", pid_and_body, [])
    await pool.close()

    assert "Traceback" not in capfd.readouterr().err


async def test_a_function_that_takes_too_long_is_ended_and_refused_for_now(
    pool: ProcessPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = await pid_of(pool)
    monkeypatch.setattr(process_pool, "_JOB_SECONDS", 0.2)

    with pytest.raises(Busy):
        await pool.run("lab", wait_for_file, [f"{tmp_path}/never".encode()])

    await until(lambda: not is_running(pid))


async def test_an_owner_that_waits_too_long_for_itself_is_throttled(
    pool: ProcessPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_pool, "_WAIT_SECONDS", 0.2)
    file = tmp_path / "go"
    running = asyncio.create_task(pool.run("lab", wait_for_file, [str(file).encode()]))
    await until(lambda: has_begun(file))

    with pytest.raises(Throttled):
        await pid_of(pool)

    file.touch()
    await running


async def test_a_process_whose_large_answer_is_not_read_ends_all_the_same(
    pool: ProcessPool,
) -> None:
    running = asyncio.create_task(pool.run("lab", much, []))
    await until(lambda: pool.running == 1)
    await asyncio.sleep(1)  # the answer is there, or on its way
    running.cancel()

    async with asyncio.timeout(20):
        await pool.close()

    assert pool.running == 0


async def test_a_job_in_progress_when_the_pool_closes_is_refused_and_starts_nothing(
    pool: ProcessPool, tmp_path: Path
) -> None:
    file = tmp_path / "never"
    running = asyncio.create_task(pool.run("lab", wait_for_file, [str(file).encode()]))
    await until(lambda: has_begun(file))

    await pool.close()

    with pytest.raises(Busy):
        await running
    assert pool.running == 0
