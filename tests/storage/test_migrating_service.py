"""A service moves from one store to another, and its clients notice nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Answer, Integrator
from tests.bodies import document, register_body
from tests.waiting import wait_until

UPDATE = {"resourceType": "DiagnosticReport", "status": "amended"}
WAYS = [("sqlite", "mongodb")]
if variable("FHIRPUB_TEST_FULL"):
    WAYS.append(("mongodb", "sqlite"))


class Publisher(threading.Thread):
    """Publishes until it is stopped; ``answers`` are the responses by the number of the report."""

    def __init__(self, lab: Integrator) -> None:
        super().__init__()
        self.answers: list[Answer] = []
        self._lab = lab
        self._enough = threading.Event()

    def run(self) -> None:
        while not self._enough.wait(0.01):
            self.answers.append(self._lab.register(body(len(self.answers))))

    def publish_more(self) -> None:
        """Return when one report was begun and published since the call."""
        before = len(self.answers)  # the next may have been committed already
        assert wait_until(lambda: len(self.answers) > before + 1)

    def stop(self) -> None:
        self._enough.set()
        self.join()


def body(number: int) -> Any:
    presented = [document(b"%PDF-1.4 " + str(number).encode() * 50)]
    return register_body(f"A-{number}", presentedForm=presented)


def service_on(url: str, folder: Path, *, port: int = 0) -> ServiceProcess:
    folder.mkdir()
    settings: dict[str, dict[str, Any]] = {"storage": {"url": url}, "server": {"port": port}}
    keys = folder.parent / "store.webhook-keys"  # of the store in a file, if that is the source
    if keys.exists():
        settings["storage"]["keys_file"] = str(keys)
    return ServiceProcess(folder, settings=settings)


def moved_under_load(old: ServiceProcess, target: str, publisher: Publisher) -> dict[str, Any]:
    """Transfer twice while reports are published, and return what the second time did."""
    publisher.start()
    old.command("transfer", "--to", target)
    publisher.publish_more()
    again: dict[str, Any] = old.command("transfer", "--to", target)
    publisher.stop()
    return again


@pytest.mark.parametrize("way", WAYS, ids=" to ".join)
def test_after_a_move_under_load_every_answer_is_what_it_was(
    way: tuple[str, str], tmp_path: Path, mongodb_url: str
) -> None:
    urls = {"sqlite": f"sqlite:///{tmp_path}/store.db", "mongodb": mongodb_url}
    source, target = (urls[name] for name in way)
    with service_on(source, tmp_path / "old") as old:
        lab = old.integrator()
        updated = lab.register(body(-1)).headers["location"].partition("/_history")[0]
        changed = lab.patch(updated, UPDATE)
        publisher = Publisher(lab)
        under_load = moved_under_load(old, target, publisher)
        old.terminate()
        old.wait()
    last = old.command("transfer", "--to", target)
    with service_on(target, tmp_path / "new", port=old.port) as new:
        there = replace(lab, service=new)  # with the token signed by the old store's key
        with ThreadPoolExecutor(16) as threads:
            again = list(threads.map(there.register, map(body, range(len(publisher.answers)))))
        read = there.get(updated)

    assert changed.status == 204
    assert under_load["copied"] > 0
    assert last["versions"] == len(publisher.answers) + 2
    assert {answer.status for answer in publisher.answers} == {201}
    assert [answer.body for answer in again] == [answer.body for answer in publisher.answers]
    assert [answer.headers["etag"] for answer in again] == ['W/"1"'] * len(again)
    assert (read.headers["etag"], read.json["status"]) == ('W/"2"', "amended")
