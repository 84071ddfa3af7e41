"""The processes are killed in the middle of their work: each acknowledged access has one record.

With FHIRPUB_TEST_FULL set, there are more kills.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Answer, Integrator
from tests.bodies import register_body
from tests.faults.stores import mostly_on
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

_KILLS = 12 if variable("FHIRPUB_TEST_FULL") else 2
_CLIENTS = 4
_MIN_ANSWERS = 20
"""So many accesses come before each kill, on a slow machine too."""
_seconds = random.Random(20261127)

REPORTS = "/fhir/r4/DiagnosticReport"


@pytest.fixture
def two_workers(tmp_path: Path, store_url: str) -> Iterator[ServiceProcess]:
    settings: dict[str, dict[str, object]] = {
        "storage": {"url": store_url},
        "audit": {"reads": "before_answer", "checkpoint_seconds": 0.5},
    }
    with ServiceProcess(tmp_path, workers=2, settings=settings) as process:
        yield process


class Reader:
    """Registers reports and reads them, until the service does not answer."""

    def __init__(self, lab: Integrator) -> None:
        self._lab = lab
        self.answered: list[str] = []
        """The ids of the requests that were answered."""
        self.in_doubt: list[str] = []

    def run(self) -> None:
        with suppress(OSError, HTTPException):
            while True:
                answer = self._send("POST", f"{REPORTS}/$register", register_body(_new_id()))
                location = answer.headers["location"].rpartition("/fhir/r4/")[2]
                self._send("GET", f"/fhir/r4/{location}")
                self._send("GET", f"{REPORTS}?_count=1")

    def _send(self, method: str, path: str, body: object = None) -> Answer:
        request = _new_id()
        self.in_doubt.append(request)
        answer = self._lab.request(method, path, body, {"X-Request-Id": request})
        assert answer.status in (200, 201)
        self.answered.append(self.in_doubt.pop())
        return answer


def _new_id() -> str:
    return f"r-{uuid.uuid4()}"


def kill_amid_accesses(process: ServiceProcess, lab: Integrator) -> list[Reader]:
    readers = [Reader(lab) for _ in range(_CLIENTS)]
    threads = [threading.Thread(target=reader.run) for reader in readers]
    for thread in threads:
        thread.start()
    time.sleep(_seconds.uniform(0.7, 1.2))
    assert wait_until(lambda: sum(len(reader.answered) for reader in readers) > _MIN_ANSWERS)
    process.kill()
    for thread in threads:
        thread.join()
    process.start()
    return readers


@mostly_on("mongodb")
def test_each_acknowledged_access_has_one_record_of_a_right_chain_after_kills(
    two_workers: ServiceProcess,
) -> None:
    lab = two_workers.integrator()
    readers = [reader for _ in range(_KILLS) for reader in kill_amid_accesses(two_workers, lab)]
    two_workers.terminate()  # what is durable is sealed by the next process
    two_workers.wait()

    words = ("audit", "list", "--tenant", lab.tenant.id, "--limit", "100000")
    counts = Counter(record.get("request") for record in two_workers.command(*words))
    verdicts = two_workers.command("audit", "verify")

    answered = [request for reader in readers for request in reader.answered]
    assert {counts[request] for request in answered} == {1}
    in_doubt = [request for reader in readers for request in reader.in_doubt]
    assert {counts[request] for request in in_doubt} <= {0, 1}
    (ours,) = [one for one in verdicts if one["tenant"] == lab.tenant.id]
    assert ours["verdict"] == "right"
    assert ours["checkpoints"] > 0
