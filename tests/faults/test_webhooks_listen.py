"""``fhirpub webhooks listen`` killed amid its work, and the service: no event is lost."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.receiver import Receiver, Reply
from tests.bodies import register_body
from tests.faults.stores import mostly_on
from tests.listening import listening

pytestmark = pytest.mark.slow

KILLS = 30 if variable("FHIRPUB_TEST_FULL") else 2
EACH = 20
_random = random.Random(20261127)


@pytest.fixture
def service(tmp_path: Path, store_url: str) -> Iterator[ServiceProcess]:
    keys = tmp_path / "keys"
    keys.write_text("A" * 43 + "=\n")
    settings = {"storage": {"url": store_url}, "webhooks": {"keys_file": str(keys)}}
    with ServiceProcess(tmp_path, settings=settings) as process:
        yield process


@mostly_on("mongodb")
def test_a_listener_that_is_killed_loses_nothing_and_keeps_the_order(
    service: ServiceProcess, tmp_path: Path
) -> None:
    lab = service.integrator()
    with Receiver() as receiver:
        receiver.answer(Reply(delay=0.01))
        words = ("--forward-to", receiver.url)
        for kill in range(KILLS):
            with listening(lab, tmp_path, *words):  # it is killed at the end
                for number in range(EACH):
                    lab.register(register_body(f"l-{kill}-{number}"))
                time.sleep(_random.uniform(0, 0.3))
        with listening(lab, tmp_path, *words) as run:
            run.wait_for_notes("Waiting")
            total = KILLS * EACH
            deadline = time.monotonic() + 30
            while not any(each.json["sequence"] == total for each in receiver.received):
                assert time.monotonic() < deadline
                time.sleep(0.05)

    sequences = [each.json["sequence"] for each in receiver.received]
    assert sequences == sorted(sequences)
    assert set(sequences) == set(range(1, total + 1))
    assert len(sequences) <= total + KILLS


@mostly_on("sqlite")
def test_a_listener_outlasts_a_service_that_is_killed_and_started_again(
    service: ServiceProcess, tmp_path: Path
) -> None:
    lab = service.integrator()
    with (
        Receiver() as receiver,
        listening(lab, tmp_path, "--forward-to", receiver.url) as run,
    ):
        lab.register(register_body("before"))
        receiver.wait(1)
        service.kill()
        run.wait_for_notes("cannot be reached")
        service.start()
        lab.register(register_body("after"))
        sent = receiver.wait(2, seconds=60)

    assert [each.json["sequence"] for each in sent] == [1, 2]
