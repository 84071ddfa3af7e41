"""``fhirpub publish --watch`` killed again and again: every report is published, and once."""

from __future__ import annotations

import base64
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator
from tests.bodies import PDF, register_body
from tests.faults.stores import mostly_on
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

KILLS = 30 if variable("FHIRPUB_TEST_FULL") else 2
EACH = 10
_random = random.Random(20261126)


@pytest.fixture
def service(tmp_path: Path, store_url: str) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path, settings={"storage": {"url": store_url}}) as process:
        yield process


def watcher(lab: Integrator, folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that watches the folder, and appends its notes to a file next to it."""
    audience = ("--audience", lab.service.config.auth.audience)
    words = ("publish", "--watch", str(folder), "--settle", "0", *audience)
    environment = {
        "PYTHONPATH": ":".join(sys.path),
        "FHIRPUB_CLIENT_ID": lab.client_id,
        "FHIRPUB_CLIENT_SECRET": lab.client_secret,
    }
    with notes_of(folder).open("ab") as notes:
        return subprocess.Popen(
            [sys.executable, "-m", "fhirpub", *words, "--url", lab.service.base_url],
            stdout=subprocess.DEVNULL,
            stderr=notes,
            env=environment,
        )


def notes_of(folder: Path) -> Path:
    return folder.parent / "notes.txt"


def pdf(name: str) -> bytes:
    return PDF + name.encode()


def deliver(folder: Path, name: str, *, is_valid: bool = True) -> None:
    """Deliver a report as a program does that renames the report last."""
    changes = {"presentedForm": None} if is_valid else {"category": None}
    (folder / f"{name}.pdf").write_bytes(pdf(name))
    draft = folder / f"{name}.json.part"
    draft.write_text(json.dumps(register_body(name, **changes)))
    draft.rename(folder / f"{name}.json")


def names(folder: Path, pattern: str = "*.json") -> set[str]:
    return {file.name.partition(".")[0] for file in folder.glob(pattern)}


def has_more(folder: Path, than: int) -> bool:
    return len(names(folder)) > than


@mostly_on("sqlite")
def test_a_watcher_that_is_killed_publishes_each_report_once(
    service: ServiceProcess, tmp_path: Path
) -> None:
    lab = service.integrator()
    folder = tmp_path / "outbox"
    folder.mkdir()
    expected: set[str] = set()

    for kill in range(KILLS):
        for number in range(EACH):
            expected.add(f"w-{kill}-{number}")
            deliver(folder, f"w-{kill}-{number}")
        process = watcher(lab, folder)
        assert wait_until(partial(has_more, folder / "done", len(names(folder / "done"))), 60)
        time.sleep(_random.uniform(0, 0.1))
        process.kill()
        process.wait()
    deliver(folder, "bad", is_valid=False)
    both = [watcher(lab, folder), watcher(lab, folder)]
    done = wait_until(
        lambda: names(folder / "done") >= expected and names(folder / "refused") == {"bad"}, 90
    )
    second_waits = wait_until(lambda: "waiting until it ends" in notes_of(folder).read_text(), 60)
    for process in both:
        process.send_signal(signal.SIGTERM)

    assert done, sorted(expected - names(folder / "done"))
    assert second_waits
    assert [process.wait(30) for process in both] == [0, 0]
    assert names(folder / "done") == names(folder / "done", "*.pdf") == expected
    assert sorted(file.name for file in (folder / "refused").iterdir()) == [
        "bad.json",
        "bad.pdf",
        "bad.reason.json",
    ]
    assert [file.name for file in (folder / "sending").iterdir()] == [".lock"]
    check_service(lab, expected)


def check_service(lab: Integrator, expected: set[str]) -> None:
    """Assert that the service has each report once, with its document."""
    listed = lab.get("/fhir/r4/DiagnosticReport?_count=100").json
    assert listed["total"] == len(expected)
    for entry in listed["entry"]:
        report = entry["resource"]
        (attached,) = lab.get(f"/fhir/r4/DiagnosticReport/{report['id']}").json["presentedForm"]
        assert base64.b64decode(attached["data"]) == pdf(report["identifier"][0]["value"])


@mostly_on("sqlite")
def test_a_watcher_goes_on_when_the_service_is_back(
    service: ServiceProcess, tmp_path: Path
) -> None:
    lab = service.integrator()
    folder = tmp_path / "outbox"
    folder.mkdir()
    process = watcher(lab, folder)
    assert wait_until((folder / "sending" / ".lock").exists, 60)
    service.kill()
    deliver(folder, "patient")
    assert wait_until(lambda: len(list((folder / "sending").iterdir())) == 2)
    time.sleep(1)
    still_there = len(list((folder / "sending").iterdir())) == 2

    service.start()

    assert still_there
    assert wait_until(lambda: names(folder / "done") == {"patient"}, 60)
    assert "connection refused" in notes_of(folder).read_text()
    process.terminate()
    assert process.wait(30) == 0
