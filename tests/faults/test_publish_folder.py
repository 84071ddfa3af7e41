"""``fhirpub publish`` loads a folder completely and once, whatever is killed while it does."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator
from tests.bodies import PDF, register_body
from tests.faults.load import check_store
from tests.faults.stores import mostly_on
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

FULL = variable("FHIRPUB_TEST_FULL") == "1"
HOW_MANY = 10_000 if FULL else 400
SERVICE_KILLS = 10 if FULL else 2
COMMAND_KILLS = 2 if FULL else 1


@pytest.fixture
def service(tmp_path: Path, store_url: str) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path, settings={"storage": {"url": store_url}}) as process:
        yield process


def pdf(number: int) -> bytes:
    return PDF + str(number).encode()


def write_reports(folder: Path) -> None:
    """Write reports with their documents: next to them, by path, and one that is refused."""
    for number in range(HOW_MANY):
        here = folder / f"{number % 10}"
        here.mkdir(parents=True, exist_ok=True)
        named = [{"contentType": "application/pdf", "url": f"scans/{number}.pdf"}]
        by_path = number % 2 == 0
        body = register_body(f"bulk-{number}", presentedForm=named if by_path else None)
        document = here / (f"scans/{number}.pdf" if by_path else f"r{number}.pdf")
        document.parent.mkdir(exist_ok=True)
        document.write_bytes(pdf(number))
        (here / f"r{number}.json").write_text(json.dumps(body))
    (folder / "bad.json").write_text(json.dumps(register_body("bad", category=None)))


class Command:
    """Runs of the command with the same report."""

    def __init__(self, lab: Integrator, folder: Path) -> None:
        self.report = folder / "out.ndjson"
        options = ("--url", lab.service.base_url, "--report", str(self.report), "--json")
        audience = ("--audience", lab.service.config.auth.audience)
        words = ("publish", str(folder / "in"), *options, *audience)
        self._words = [sys.executable, "-m", "fhirpub", *words]
        self._environment = {
            "PYTHONPATH": ":".join(sys.path),
            "FHIRPUB_CLIENT_ID": lab.client_id,
            "FHIRPUB_CLIENT_SECRET": lab.client_secret,
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._words, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
            text=True,
        )

    def records(self) -> list[dict[str, Any]]:
        """Return the whole lines of the report."""
        lines = self.report.read_bytes().splitlines(keepends=True) if self.report.exists() else []
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def wait_for(self, how_many: int) -> bool:
        """Wait until the report has so many lines; return whether some are still to come."""
        assert wait_until(lambda: len(self.records()) >= how_many, seconds=120)
        return len(self.records()) < HOW_MANY


def order_faults() -> list[str]:
    """Return what happens while the folder is loaded, at equal distances."""
    kills = ["service"] * SERVICE_KILLS
    for number in range(1, COMMAND_KILLS + 1):
        kills.insert(number * len(kills) // (COMMAND_KILLS + 1), "command")
    return ["interruption", *kills]


@mostly_on("sqlite")
def test_a_folder_is_loaded_once_while_service_and_command_are_killed(
    service: ServiceProcess, tmp_path: Path
) -> None:
    lab = service.integrator()
    write_reports(tmp_path / "in")
    command = Command(lab, tmp_path)
    run = command.start()

    faults, step = order_faults(), 0
    for step, fault in enumerate(faults, start=1):
        if not command.wait_for(step * HOW_MANY // (len(faults) + 1)):
            break
        if fault == "service":
            service.kill()
            service.start()
            continue
        if fault == "command":
            run.kill()
            run.communicate()
        else:
            check_interruption(run, service)
        run = command.start("--resume")
    ended = json.loads(run.communicate(timeout=300)[0])

    assert step > len(faults) // 2, "the folder was loaded before the faults came"
    assert run.returncode == 1
    assert ended["skipped"] >= HOW_MANY // 2
    assert ended["causes"][0]["code"] == "element-required"
    check_report(lab, command)
    check_store(service.config.storage.url)


def check_interruption(run: subprocess.Popen[str], service: ServiceProcess) -> None:
    """Interrupt a run, and assert that it ends by that and says what is left.

    The service is paused until then, so that the run cannot publish all before.
    """
    os.kill(service.pid, signal.SIGSTOP)
    run.send_signal(signal.SIGINT)
    os.kill(service.pid, signal.SIGCONT)
    interrupted = json.loads(run.communicate(timeout=60)[0])
    assert run.returncode == 130
    assert interrupted["left"] > 0


def check_report(lab: Integrator, command: Command) -> None:
    """Assert that the service has each report once, and that the report of the runs is true."""
    records = {record["file"]: record for record in command.records()}
    published = {
        Path(file).stem: record["location"].partition("/_history")[0]
        for file, record in records.items()
        if record["result"] in ("created", "replayed")
    }
    assert len(published) == len(set(published.values())) == HOW_MANY
    assert len(records) == HOW_MANY + 1
    assert lab.get("/fhir/r4/DiagnosticReport?_count=1&_total=accurate").json["total"] == HOW_MANY
    for number in range(0, HOW_MANY, HOW_MANY // 25):
        path = published[f"r{number}"].removeprefix(lab.service.base_url)
        (attached,) = lab.get(path).json["presentedForm"]
        assert base64.b64decode(attached["data"]) == pdf(number)
        assert attached["hash"] == hashlib.sha256(pdf(number)).hexdigest()
