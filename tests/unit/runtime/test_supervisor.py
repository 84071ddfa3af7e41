"""Workers of a supervisor, in a program without other work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_until

_PROGRAM = """
import signal, sys
from pathlib import Path
from fhirpub.errors import SecretsUnavailable, StoreUnavailable
from fhirpub.runtime import supervisor
from fhirpub.runtime.logging import configure
from fhirpub.runtime.supervisor import supervise

supervisor._PAUSE_SECONDS = float(sys.argv[1])

def work(number, ready):
    if Path("away").exists():
        raise StoreUnavailable("it is away")
    if Path("kms-away").exists():
        raise SecretsUnavailable("the KMS is away")
    with Path("started").open("a") as started:
        started.write("+")
    ready("")
    signal.pause()

configure(level="info", form="json")
sys.exit(supervise(2, work, announce=lambda: print("ready", flush=True)))
"""


@pytest.fixture
def supervisor(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Yield a supervisor of two workers, which cannot start while the file `away` exists.

    Workers that started are counted in the file `started`. The parameter is the pause in seconds
    before a worker is started again.
    """
    pause = getattr(request, "param", "2")
    with (tmp_path / "errors").open("wb") as errors:
        program = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, pause],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert program.stdout is not None
    program.stdout.readline()
    yield program
    program.stdout.close()
    if program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)
    program.wait(timeout=30)


def workers_of(supervisor: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text()
    return [int(part) for part in children.split()]


def lose_one(supervisor: subprocess.Popen[str], folder: Path) -> None:
    """Kill a worker while the store is away, and wait until its replacement could not start."""
    (folder / "away").touch()
    os.kill(workers_of(supervisor)[0], signal.SIGKILL)
    assert wait_until(lambda: "it is away" in (folder / "errors").read_text())


def test_a_worker_that_gets_no_keys_is_started_again_until_it_does(
    supervisor: subprocess.Popen[str], tmp_path: Path
) -> None:
    (tmp_path / "kms-away").touch()
    os.kill(workers_of(supervisor)[0], signal.SIGKILL)
    errors = tmp_path / "errors"
    assert wait_until(lambda: errors.read_text().count("the KMS is away") >= 2, 30)
    (tmp_path / "kms-away").unlink()

    assert wait_until(lambda: (tmp_path / "started").read_text() == "+++", 30)
    waited = [line for line in errors.read_text().splitlines() if '"status": 75' in line]
    assert len(waited) >= 2


def test_a_store_that_is_away_never_ends_the_others(
    supervisor: subprocess.Popen[str], tmp_path: Path
) -> None:
    lose_one(supervisor, tmp_path)
    time.sleep(2.5)

    assert supervisor.poll() is None


def test_what_keeps_a_worker_from_replacing_another_is_a_line_of_the_log(
    supervisor: subprocess.Popen[str], tmp_path: Path
) -> None:
    first = workers_of(supervisor)[0]
    lose_one(supervisor, tmp_path)

    lines = [json.loads(line) for line in (tmp_path / "errors").read_text().splitlines()]
    logged = [line for line in lines if line.get("reason") == "it is away"]
    assert logged[0]["event"] == "worker cannot start"
    died = [line for line in lines if line["event"] == "worker died"]
    assert (died[0]["pid"], died[0]["status"]) == (first, -signal.SIGKILL)


def test_a_worker_is_replaced_once_the_store_is_back(
    supervisor: subprocess.Popen[str], tmp_path: Path
) -> None:
    lose_one(supervisor, tmp_path)

    (tmp_path / "away").unlink()

    assert wait_until(lambda: (tmp_path / "started").read_text() == "+++")


@pytest.mark.parametrize("supervisor", ["300"], indirect=True)
def test_a_worker_that_waits_for_the_store_is_stopped_at_once(
    supervisor: subprocess.Popen[str], tmp_path: Path
) -> None:
    lose_one(supervisor, tmp_path)
    time.sleep(0.2)

    supervisor.terminate()

    assert supervisor.wait(timeout=60) == 0


def test_a_stopped_worker_does_not_hold_the_end_up(supervisor: subprocess.Popen[str]) -> None:
    os.kill(workers_of(supervisor)[0], signal.SIGSTOP)

    supervisor.terminate()

    assert supervisor.wait(timeout=60) == 0


def test_a_worker_that_a_signal_stops_is_continued_at_once(
    supervisor: subprocess.Popen[str], tmp_path: Path
) -> None:
    stopped = workers_of(supervisor)[0]

    os.kill(stopped, signal.SIGSTOP)

    log = tmp_path / "errors"
    assert wait_until(lambda: "worker was stopped by a signal" in log.read_text())
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["pid"] for line in lines if "stopped" in line["event"]] == [stopped]
    assert wait_until(lambda: state_of(stopped) != "T")
    os.kill(stopped, signal.SIGKILL)
    assert wait_until(lambda: "worker died" in log.read_text())


def test_ctrl_c_ends_no_worker_before_the_supervisor_ends_it(
    supervisor: subprocess.Popen[str], tmp_path: Path
) -> None:
    first, second = workers_of(supervisor)

    for worker in (first, second):
        os.kill(worker, signal.SIGINT)
    os.kill(second, signal.SIGKILL)

    assert wait_until(lambda: len((tmp_path / "started").read_text()) == 3)
    lines = [json.loads(line) for line in (tmp_path / "errors").read_text().splitlines()]
    assert [line["pid"] for line in lines] == [second]
    assert first in workers_of(supervisor)
    assert state_of(first) != "Z"

    os.killpg(supervisor.pid, signal.SIGINT)
    assert supervisor.wait(timeout=60) == 0


def state_of(process: int) -> str:
    """Return the letter that Linux gives to what a process is doing; T: stopped."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
