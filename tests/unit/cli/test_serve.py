"""``fhirpub serve`` from its first line to its end, and ``fhirpub publish`` against it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(params=[1, 2], ids=["one process", "two workers"])
def service(
    request: pytest.FixtureRequest, tmp_path: Path, environment: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the program on a free port; yield it and its address."""
    words = [sys.executable, "-m", "fhirpub", "serve", "--port", "0"]
    program = subprocess.Popen(
        [*words, "--workers", str(request.param)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    yield program, program.stdout.readline().rpartition(" ")[2].strip()
    program.terminate()
    program.wait(timeout=30)
    program.stdout.close()


def test_a_report_is_published_once_and_the_service_ends_well(
    service: tuple[subprocess.Popen[str], str], run_program: Any, tmp_path: Path
) -> None:
    program, address = service
    tenant = json.loads(run_program("tenant", "add", "Lab Uno", "--json").stdout)["id"]
    client = json.loads(run_program("client", "add", "--tenant", tenant, "--json").stdout)
    sample = files("fhirpub.cli.demo") / "sample"
    (tmp_path / "register.json").write_bytes((sample / "register.json").read_bytes())
    (tmp_path / "report.pdf").write_bytes((sample / "report.pdf").read_bytes())
    words = ["publish", "register.json", "--document", "report.pdf", "--url", address, "--json"]
    credentials = {
        "FHIRPUB_CLIENT_ID": client["client_id"],
        "FHIRPUB_CLIENT_SECRET": client["client_secret"],
    }

    first = run_program(*words, **credentials)
    again = run_program(*words, **credentials)
    program.send_signal(signal.SIGTERM)

    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["version"] == "1"
    assert json.loads(first.stdout) | {"replayed": True} == json.loads(again.stdout)
    assert program.wait(timeout=30) == 0


@pytest.mark.parametrize("service", [1], indirect=True)
def test_a_port_that_is_taken_is_reported(
    service: tuple[subprocess.Popen[str], str], run_program: Any
) -> None:
    port = service[1].rpartition(":")[2]

    done = run_program("serve", "--port", port)

    assert done.returncode == 1
    assert f"port {port}" in done.stderr
    assert "--port" in done.stderr


def test_an_address_of_another_machine_is_reported(run_program: Any) -> None:
    done = run_program("serve", "--host", "192.0.2.1", "--port", "0")

    assert done.returncode == 1
    assert "choose another with --host" in done.stderr
