"""Killed in the middle of a revision or a relink: a report and its results changed together.

With FHIRPUB_TEST_FULL set, there are more kills.
"""

from __future__ import annotations

import http.client
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator
from tests.bodies import patient
from tests.faults.stores import mostly_on
from tests.panels import RESULTS, panel, result, specimen
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

_NATIONAL = "https://registry.example/persons"
_BASE = "/fhir/r4"
_RESULTS = 12
_KILLS = 8 if variable("FHIRPUB_TEST_FULL") else 2
_seconds = random.Random(20261126)


@pytest.fixture
def process(tmp_path: Path, store_url: str) -> Iterator[ServiceProcess]:
    settings: dict[str, dict[str, Any]] = {
        "storage": {"url": store_url},
        "patients": {"person_systems": [_NATIONAL]},
    }
    with ServiceProcess(tmp_path, settings=settings) as running:
        yield running


def _body(value: str, measured: float, *, final: bool) -> dict[str, Any]:
    """Return a report of one person, of which all results have this value."""
    status = "final" if final else "preliminary"
    results = [
        result(
            f"r{number}",
            measured,
            identifier=[{"system": RESULTS, "value": f"{value}-{number}"}],
            status=status,
            specimen={"reference": "Specimen/blood"},
        )
        for number in range(_RESULTS)
    ]
    led_to = [{"reference": "Specimen/blood"}]
    body = panel(value, *results, specimen(), status=status, specimen=led_to)
    body["parameter"][0]["resource"] = patient(identifier=[{"system": _NATIONAL, "value": "1"}])
    return body


@dataclass
class Whole:
    """A report with what came with it, as one search shows them."""

    version: int
    subjects: set[str]
    values: set[float]
    statuses: set[str]
    number: int

    @classmethod
    def of(cls, lab: Integrator, report: str) -> Whole:
        included = "&".join(f"_include=DiagnosticReport:{name}" for name in ("result", "specimen"))
        answer = lab.get(f"{_BASE}/DiagnosticReport?_id={report}&{included}")
        found = [entry["resource"] for entry in answer.json["entry"]]
        results = [one for one in found if one["resourceType"] == "Observation"]
        (version,) = (
            int(one["meta"]["versionId"])
            for one in found
            if one["resourceType"] == "DiagnosticReport"
        )
        return cls(
            version=version,
            subjects={one["subject"]["reference"] for one in found},
            values={one["valueQuantity"]["value"] for one in results},
            statuses={one["status"] for one in found if "status" in one},
            number=len(found),
        )


def _register(lab: Integrator, value: str) -> str:
    answer = lab.register(_body(value, 1, final=False))
    assert answer.status == 201
    report: str = answer.json["parameter"][0]["resource"]["id"]
    return report


def _revise(lab: Integrator, report: str, value: str, acknowledged: list[int]) -> None:
    """Revise a report again and again, until a revision gets no answer."""
    for version in range(1, 1000):
        body = _body(value, version + 1, final=True)
        path = f"{_BASE}/DiagnosticReport/{report}/$revise"
        try:
            answer = lab.request("POST", path, body, {"If-Match": f'W/"{version}"'})
        except (OSError, http.client.HTTPException):
            return
        assert answer.status == 200
        acknowledged.append(version + 1)


@mostly_on("sqlite")
def test_a_killed_revision_has_changed_the_report_and_all_results_or_nothing(
    process: ServiceProcess,
) -> None:
    lab = process.integrator()

    for kill in range(_KILLS):
        report = _register(lab, f"R-{kill}")
        acknowledged = [1]
        words = (lab, report, f"R-{kill}", acknowledged)
        thread = threading.Thread(target=_revise, args=words)
        thread.start()
        time.sleep(_seconds.uniform(0.02, 0.25))
        process.kill()
        thread.join()
        process.start()
        whole = Whole.of(lab, report)

        assert acknowledged[-1] <= whole.version <= acknowledged[-1] + 1
        assert whole.values == {whole.version}
        assert len(whole.statuses) == len(whole.subjects) == 1
        assert whole.number == _RESULTS + 2


def _begin_relink(process: ServiceProcess, tenant: str, report: str) -> subprocess.Popen[bytes]:
    words = ["patient", "relink", report, "--tenant", tenant, "--apart", "--reason", "test"]
    return subprocess.Popen(
        [sys.executable, "-m", "fhirpub", *words, "--config", str(process.file)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _has_begun_to_change(lab: Integrator, report: str, command: subprocess.Popen[bytes]) -> bool:
    """Return whether a command shows its first effect, or has ended."""
    answer = lab.get(f"{_BASE}/DiagnosticReport/{report}")
    return answer.headers["etag"] != 'W/"1"' or command.poll() is not None


@mostly_on("mongodb")
def test_a_killed_relink_has_moved_the_report_and_all_results_or_nothing(
    process: ServiceProcess,
) -> None:
    lab = process.integrator()
    begun = time.monotonic()
    assert _begin_relink(process, lab.tenant.id, _register(lab, "R")).wait(60) == 0
    taken = time.monotonic() - begun

    for kill in range(_KILLS):
        report = _register(lab, f"R-{kill}")
        (before,) = Whole.of(lab, report).subjects
        command = _begin_relink(process, lab.tenant.id, report)
        if kill % 2:
            wait_until(partial(_has_begun_to_change, lab, report, command), seconds=60)
        else:
            time.sleep(taken * _seconds.uniform(0.5, 1.0))
        command.send_signal(signal.SIGKILL)
        command.wait()
        whole = Whole.of(lab, report)

        (after,) = whole.subjects
        assert whole.version == 1 + (after != before)
        assert whole.number == _RESULTS + 2
        assert _begin_relink(process, lab.tenant.id, report).wait(60) == 0
        moved = Whole.of(lab, report)
        assert (moved.version, moved.number) == (2, _RESULTS + 2)
        assert len(moved.subjects - {before}) == 1
