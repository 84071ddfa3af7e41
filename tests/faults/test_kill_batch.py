"""Killed in the middle of a batch: what is committed stays, a repetition registers the rest."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator
from tests.batches import BASE, TYPE, bundle, id_of, registering, send, statuses
from tests.faults.stores import mostly_on

pytestmark = pytest.mark.slow

_ENTRIES = 150
_KILLS = 8 if variable("FHIRPUB_TEST_FULL") else 2
_seconds = random.Random(20261127)


@pytest.fixture
def process(tmp_path: Path, store_url: str) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path, settings={"storage": {"url": store_url}}) as running:
        yield running


def _send_until_killed(lab: Integrator, kill: int) -> None:
    body = bundle(*[registering(f"R-{kill}-{place}") for place in range(_ENTRIES)])
    try:
        lab.request("POST", BASE, body)
    except (OSError, http.client.HTTPException):
        return


def _total(lab: Integrator) -> int:
    total: int = lab.get(f"{BASE}/{TYPE}?_summary=count").json["total"]
    return total


@mostly_on("mongodb")
def test_a_batch_that_is_repeated_after_a_kill_registers_each_entry_once(
    process: ServiceProcess,
) -> None:
    lab = process.integrator()
    halves = 0

    for kill in range(20 * _KILLS):
        if kill >= _KILLS and halves:
            break
        thread = threading.Thread(target=_send_until_killed, args=(lab, kill))
        before = _total(lab)
        thread.start()
        until = time.monotonic() + 10
        while _total(lab) == before and time.monotonic() < until:
            pass
        time.sleep(_seconds.uniform(0, 0.1))
        process.kill()
        thread.join()
        process.start()
        kept = _total(lab) - before
        halves += 0 < kept < _ENTRIES

        answers = send(lab, *[registering(f"R-{kill}-{place}") for place in range(_ENTRIES)])

        assert statuses(answers) == [201] * _ENTRIES
        repeated = [one for one in answers if "outcome" in one["response"]]
        assert len(repeated) == kept
        assert len({id_of(one) for one in answers}) == _ENTRIES
        assert _total(lab) == before + _ENTRIES

    assert halves, "no kill was in the middle of a batch"
