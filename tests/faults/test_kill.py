"""The process is killed in the middle of its work: acknowledged writes are there afterwards.

With FHIRPUB_TEST_FULL set, there are more kills.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator
from tests.faults.load import Publisher, Sent, check_all, check_store, run_until_answers_fail
from tests.faults.nemesis import kill_one_worker
from tests.faults.stores import mostly_on
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

_KILLS, _KILLS_OF_ALL = (20, 8) if variable("FHIRPUB_TEST_FULL") else (2, 1)
_MAX_REQUESTS = 1_000
_seconds = random.Random(20261121)


@pytest.fixture
def one_process(tmp_path: Path, store_url: str) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path, settings={"storage": {"url": store_url}}) as process:
        yield process


@pytest.fixture
def two_workers(tmp_path: Path, store_url: str) -> Iterator[ServiceProcess]:
    settings = {"storage": {"url": store_url}}
    with ServiceProcess(tmp_path, workers=2, settings=settings) as process:
        yield process


def publishers_of(lab: Integrator, *, seed: int, how_many: int = 5) -> list[Publisher]:
    return [Publisher(lab, seed=seed * 100 + number) for number in range(how_many)]


def kill_under_load(process: ServiceProcess, publishers: list[Publisher]) -> list[Sent]:
    """Kill everything in the middle of the load; return what was sent."""
    threads = run_until_answers_fail(publishers, process.port, _MAX_REQUESTS)
    assert wait_until(lambda: all(publisher.acknowledged for publisher in publishers))
    time.sleep(_seconds.uniform(0.0, 0.1))
    process.kill()
    for thread in threads:
        thread.join()
    assert [publisher.refusals for publisher in publishers if publisher.refusals] == []
    return list(chain.from_iterable(publisher.sent for publisher in publishers))


@mostly_on("sqlite")
def test_a_killed_service_has_lost_nothing_that_it_acknowledged(
    one_process: ServiceProcess,
) -> None:
    lab = one_process.integrator()
    everything: list[Sent] = []
    in_doubt = 0

    for kill in range(_KILLS):
        sent = kill_under_load(one_process, publishers_of(lab, seed=kill))
        in_doubt += sum(not item.answer or item.unanswered is not None for item in sent)
        one_process.start()
        check_all(lab, sent)
        everything += sent

    check_all(lab, random.Random(1).sample(everything, min(200, len(everything))))
    check_store(one_process.config.storage.url)
    assert in_doubt > _KILLS, "the kills came when nothing was under way"


@mostly_on("mongodb")
def test_workers_killed_with_their_supervisor_have_lost_nothing(
    two_workers: ServiceProcess,
) -> None:
    lab = two_workers.integrator()

    for kill in range(_KILLS_OF_ALL):
        sent = kill_under_load(two_workers, publishers_of(lab, seed=1000 + kill))
        two_workers.start()
        check_all(lab, sent)

    check_store(two_workers.config.storage.url)


_MOST_KILLS = 10
"""On a busy machine a worker may be killed before it has a request, which no client notices."""


def _was_noticed(publishers: Sequence[Publisher]) -> bool:
    return any(publisher.failures for publisher in publishers)


def _all_went_on(publishers: Sequence[Publisher], answered: Sequence[int]) -> bool:
    return all(len(p.acknowledged) > n for p, n in zip(publishers, answered, strict=True))


@mostly_on("sqlite")
def test_a_killed_worker_is_replaced_while_clients_go_on(two_workers: ServiceProcess) -> None:
    lab = two_workers.integrator()
    publishers = publishers_of(lab, seed=2000)
    enough = threading.Event()
    threads = [
        threading.Thread(target=publisher.publish_on, args=(two_workers.port, enough))
        for publisher in publishers
    ]
    for thread in threads:
        thread.start()

    for kill in range(_MOST_KILLS):
        time.sleep(0.25)
        if kill >= 2 and _was_noticed(publishers):
            break
        kill_one_worker(two_workers, kill % 2)
    answered = [len(publisher.acknowledged) for publisher in publishers]
    went_on = partial(_all_went_on, publishers, answered)
    all_went_on = wait_until(went_on, seconds=60)
    enough.set()
    for thread in threads:
        thread.join()

    assert all_went_on
    assert [publisher.refusals for publisher in publishers if publisher.refusals] == []
    assert _was_noticed(publishers)
    sent = list(chain.from_iterable(publisher.sent for publisher in publishers))
    in_doubt = [item for item in sent if not item.answer or item.unanswered is not None]
    check_all(lab, [*in_doubt, *random.Random(1).sample(sent, min(200, len(sent)))])
    check_store(two_workers.config.storage.url)


def test_a_replaced_worker_creates_no_store_in_the_place_of_one_that_is_away(
    tmp_path: Path,
) -> None:
    data, away = tmp_path / "data", tmp_path / "away"
    settings = {"storage": {"url": f"sqlite:///{data}/fhirpub.db"}}
    with ServiceProcess(tmp_path, workers=2, settings=settings) as process:
        lab = process.integrator()
        data.rename(away)

        os.kill(process.workers[0], signal.SIGKILL)
        assert wait_until(lambda: "worker cannot start" in process.errors.read_text())
        nothing_made = not data.exists()

        away.rename(data)
        assert wait_until(lambda: len(process.workers) == 2 and _all_answer(lab))
        assert nothing_made


def _all_answer(lab: Integrator) -> bool:
    return all(lab.get("/fhir/r4/DiagnosticReport").status == 200 for _ in range(16))


@mostly_on("sqlite")
def test_a_killed_supervisor_leaves_no_workers_behind(two_workers: ServiceProcess) -> None:
    workers = two_workers.workers

    os.kill(two_workers.pid, signal.SIGKILL)

    assert wait_until(lambda: not any(is_running(worker) for worker in workers))


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
