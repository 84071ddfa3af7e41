"""``fhirpub demo``: every step works, and every printed command works when pasted."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

STATUSES = [200, 201, 200, 201, 201, 200, 200, 412, 204, 200, 200, 200, 200, 400, *[201] * 5]


def statuses_in(text: str) -> list[int]:
    return [int(item) for item in re.findall(r"^    ([2-5][0-9]{2}) \w", text, flags=re.MULTILINE)]


def step(text: str, number: int) -> str:
    """Return the output of one step."""
    return text.partition(f"\n{number}. ")[2].partition(f"\n{number + 1}. ")[0]


@contextmanager
def running(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run the demo, keep it running, yield its output up to that point."""
    program = subprocess.Popen(
        [sys.executable, "-m", "fhirpub", "demo", "--port", "0"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    lines = []
    for line in program.stdout:
        lines.append(line)
        if line.startswith("Press Ctrl-C to stop it"):
            break
    yield "".join(lines)
    program.send_signal(signal.SIGINT)
    rest = program.communicate(timeout=30)[0]
    assert program.returncode == 0
    assert "is deleted" in rest


@pytest.fixture
def shown(tmp_path: Path, environment: dict[str, str]) -> Iterator[str]:
    """The output of a demo that is running, for one test."""
    with running(tmp_path, environment) as output:
        yield output


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> str:
    """The output of a demo, for tests that only read it."""
    with running(tmp_path_factory.mktemp("demo"), environment) as output:
        return output


def test_every_step_succeeds_and_fits_the_terminal(run_program: Any) -> None:
    done = run_program("demo", "--exit", "--port", "0")

    assert done.returncode == 0, done.stderr
    assert statuses_in(done.stdout) == STATUSES
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_one_event_of_each_kind_arrives(read: str) -> None:
    arrived = re.findall(r"X-Webhook-Event: (\S+)", read)

    others = ("encounter_outpatient", "medication_request", "service_request", "device_request")
    assert arrived == [
        "diagnostic_report.created",
        "diagnostic_report.updated",
        *(f"{name}.created" for name in (*others, "observation")),
    ]


def test_a_reader_finds_the_corrected_result_and_its_report(read: str) -> None:
    patient, result, report = (step(read, number) for number in (12, 13, 14))

    found = re.findall(r"fhir/r4/Patient/([-0-9a-f]{36})\"", patient)
    assert f"--data-urlencode patient={found[0]}" in result
    assert '"status": "corrected"' in result
    assert '"value": 248' in result
    assert '"value": "NQ-2026-000417"' in report


def test_the_event_of_the_correction_names_one_result(read: str) -> None:
    event = step(read, 9)

    assert '"added": []' in event
    assert len(re.findall(r'"changed": \["Observation/[-0-9a-f]{36}"\]', event)) == 1
    assert '"value": 248' not in event


def test_the_commands_work_when_pasted(shown: str) -> None:
    commands = [
        block.replace("\n    ", "\n").strip()
        for block in re.findall(r"\n\n((?:    .+\n)+)\n", shown)
        if "curl" in block or "cd " in block
    ]
    script = "set -euo pipefail\n" + "\n".join(commands)

    pasted = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )

    answers = [int(item) for item in re.findall(r"HTTP/1\.1 (\d+)", pasted.stdout)]
    assert pasted.returncode == 0, pasted.stderr
    assert answers == STATUSES[1:]


def test_the_invitation_works_when_pasted(shown: str, environment: dict[str, str]) -> None:
    script = shown.partition("From a second terminal:\n")[2].partition("Press Ctrl-C")[0]

    pasted = subprocess.run(
        ["bash", "-ec", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert pasted.returncode == 0, pasted.stderr
    assert ": already published as DiagnosticReport " in pasted.stdout


def test_several_mistakes_are_named_at_once(run_program: Any) -> None:
    refusal = step(run_program("demo", "--exit", "--port", "0").stdout, 16)

    assert refusal.count('"severity": "error"') == 5
