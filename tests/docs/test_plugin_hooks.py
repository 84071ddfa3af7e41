"""The examples of hooks in the guide for plugin authors work as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fhirpub.runtime.clock import now_ms
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.receiver import Receiver, Reply
from tests.bodies import register_body
from tests.plugin_examples import GUIDE, example, install
from tests.unit.auth.assertions.signing import key_set, pair
from tests.waiting import wait_until

TEXT = GUIDE.read_text(encoding="utf-8")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the path for modules, also of processes."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.syspath_prepend(home)
    monkeypatch.setenv("PYTHONPATH", str(home), prepend=os.pathsep)
    return home


def run_pytest(home: Path, tests: str) -> str:
    """Run an example that is a test file; return the last line of the output."""
    (home / "test_example.py").write_text(tests, encoding="utf-8")
    (settings,) = re.findall(r"^```toml\n(\[tool\..*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    (home / "pyproject.toml").write_text(settings, encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(home), str(home)],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()[-1]


def test_the_sink_keeps_every_promise(home: Path) -> None:
    install(home, "file", example("A sink that appends events to files"))

    assert "9 passed" in run_pytest(home, example("The tests that every sink inherits"))


def test_the_sink_gets_what_is_committed(home: Path, tmp_path: Path) -> None:
    install(home, "file", example("A sink that appends events to files"))
    settings: dict[str, dict[str, Any]] = {
        "plugins": {"enabled": ["diagnosticreport", "file"]},
        "file": {"folder": str(tmp_path)},
    }
    with ServiceProcess(tmp_path, settings=settings) as service:
        lab = service.integrator()
        words = ["--url", "sink:file/reports", "--event", "diagnostic_report.*"]
        added = service.command("endpoint", "add", "--tenant", lab.tenant.id, *words)
        answer = lab.register(register_body("R-1"))
        file = tmp_path / "reports.jsonl"
        assert wait_until(file.exists, seconds=30.0)
        tested = service.command("endpoint", "ping", added["id"])

    event, test_event = [json.loads(line) for line in file.read_text().splitlines()]
    assert event["event_type"] == "diagnostic_report.created"
    assert event["sequence"] == 1
    assert event["data"]["id"] in answer.headers["location"]
    assert tested["passed"] is True
    assert test_event["event_type"] == "endpoint.test"


def test_a_command_and_what_runs_with_the_service(home: Path, tmp_path: Path) -> None:
    install(home, "mark", example("A command, and a file that says whether"))
    mark = tmp_path / "running"
    settings: dict[str, dict[str, Any]] = {
        "plugins": {"enabled": ["diagnosticreport", "mark"]},
        "mark": {"file": str(mark)},
    }

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "fhirpub", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with ServiceProcess(tmp_path, workers=2, settings=settings) as service:
        shown = run("mark", "--config", str(service.file))
        helped = run("mark", "--help", "--config", str(service.file))
        service.terminate()
        service.wait()

    assert shown == f"{service.base_url}\n"
    assert "Print the address" in helped
    assert not mark.exists()
    assert run("mark", f"--config={service.file}") == "not running\n"


def test_a_source_of_codes_decides_on_remarks(home: Path, tmp_path: Path) -> None:
    install(home, "tests", example("A source of codes that knows the tests"))
    settings: dict[str, dict[str, Any]] = {"plugins": {"enabled": ["diagnosticreport", "tests"]}}

    def remark(system: str, code: str) -> str:
        concept = {"text": "Test", "coding": [{"system": system, "code": code}]}
        answer = lab.register(register_body(f"R-{code}", code=concept)).json
        text = json.dumps([one for one in answer["parameter"] if one["name"] == "issues"])
        return next((word for word in ("code-unknown", "code-system-unknown") if word in text), "")

    with ServiceProcess(tmp_path, settings=settings) as service:
        lab = service.integrator()
        ours, others = "https://lab.example/tests", "https://other.example/tests"
        found = [remark(ours, "glu"), remark(ours, "x"), remark(others, "y")]

    assert found == ["", "code-unknown", "code-system-unknown"]


def test_a_token_of_another_issuer_acts_for_its_tenant(home: Path, tmp_path: Path) -> None:
    install(home, "login", example("An issuer whose tokens name a hospital"))
    key = pair("ES256", "k1")
    with ServiceProcess(tmp_path) as service:
        tenant = service.command("tenant", "add", "North")["id"]
    with Receiver() as receiver:
        issuer = receiver.url.removesuffix("/webhook")
        documents = {
            "/keys": key_set(key),
            "/.well-known/openid-configuration": json.dumps(
                {"issuer": issuer, "jwks_uri": f"{issuer}/keys"}
            ).encode(),
        }
        receiver.answer_by(lambda received: Reply(status=200, body=documents[received.path]))
        settings: dict[str, dict[str, Any]] = {
            "plugins": {"enabled": ["diagnosticreport", "login"]},
            "login": {"url": issuer, "north": tenant},
            "webhooks": {"allow_networks": ["127.0.0.1/32"]},
        }
        with ServiceProcess(tmp_path, settings=settings) as service:

            def status(**changes: Any) -> int:
                claims = {
                    "iss": issuer,
                    "aud": "https://fhir.lab.example",
                    "exp": now_ms() // 1000 + 60,
                    "client_id": "ward",
                    "hospital": "north",
                    **changes,
                }
                headers = {"Authorization": f"Bearer {key.sign(claims)}"}
                return service.request("GET", "/fhir/r4/DiagnosticReport", None, headers).status

            found = [status(), status(hospital="south"), status(exp=1), status(client_id="")]

    assert found == [200, 401, 401, 401]
