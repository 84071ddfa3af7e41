"""Code of a plugin that fails is named in the log, to developers with its traceback (D-375)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.loader import load
from fhirpub.errors import ConfigurationError
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Answer
from tests.bodies import register_body
from tests.plugin_examples import write_metadata

PLUGIN = """
from dataclasses import replace

from fhirpub.plugin_api import hookimpl
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT


def look_up(text):
    return {}[text]


def unlucky(entry, _context):
    yield look_up(entry.resource["conclusion"])


@hookimpl
def fhirpub_resource_types():
    return [replace(DIAGNOSTIC_REPORT, rules=unlucky)]
"""
SECRET = "Verraeterisch"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an installed plugin, of which a rule fails."""
    home = tmp_path / "plugin"
    write_metadata(home, "unlucky", {"unlucky": "trial_unlucky"}, version="1.2")
    (home / "trial_unlucky.py").write_text(PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(home), prepend=os.pathsep)
    return tmp_path


def refused_by(
    folder: Path, body: Any, *, form: str = "json", **plugins: str
) -> tuple[Answer, str]:
    """Return the answer to a registration by a service with the plugin, and its log."""
    settings: dict[str, Mapping[str, Any]] = {
        "plugins": {"enabled": ["unlucky"], **plugins},
        "logs": {"format": form},
    }
    with ServiceProcess(folder, settings=settings) as process:
        answer = process.integrator().register(body)
        process.terminate()
        process.wait()
        return answer, process.errors.read_text(encoding="utf-8")


def fault_in(log: str) -> dict[str, Any]:
    """Return the one line that names the plugin."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    (line,) = [line for line in lines if "plugin" in line]
    found: dict[str, Any] = line
    return found


SMALL = register_body("R-1", conclusion=SECRET)
LARGE = register_body(
    "R-1",
    conclusion=SECRET,
    extension=[{"url": f"urn:x:{number}", "valueString": "x" * 20} for number in range(3_000)],
)


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "in another process"])
def test_in_production_the_log_names_the_plugin_and_nothing_of_the_patient(
    folder: Path, body: Any
) -> None:
    answer, log = refused_by(folder, body)

    line = fault_in(log)
    assert answer.status == 500
    assert (line["plugin"], line["error"]) == ("unlucky", "KeyError")
    assert line["place"].endswith("trial_unlucky.py:9")
    assert "traceback" not in line
    assert SECRET not in log
    assert SECRET.encode() not in answer.body


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "in another process"])
def test_in_development_the_log_has_the_traceback(folder: Path, body: Any) -> None:
    answer, log = refused_by(folder, body, environment="development")

    line = fault_in(log)
    *_, rule, look_up, last = line["traceback"]
    assert line["plugin"] == "unlucky"
    assert rule.endswith('in unlucky: yield look_up(entry.resource["conclusion"])')
    assert look_up.endswith("trial_unlucky.py:9 in look_up: return {}[text]")
    assert last == f"KeyError: '{SECRET}'"
    assert SECRET.encode() not in answer.body


def test_a_traceback_in_text_has_a_line_for_each_frame(folder: Path) -> None:
    _, log = refused_by(folder, SMALL, form="text", environment="development")

    lines = log.splitlines()
    begin = next(number for number, line in enumerate(lines) if "plugin=unlucky" in line)
    below = [line for line in lines[begin + 1 :] if line.startswith("    ")]
    assert below[-1] == f"    KeyError: '{SECRET}'"
    assert below[-2].endswith("trial_unlucky.py:9 in look_up: return {}[text]")


def test_development_prevents_the_start_in_production(tmp_path: Path) -> None:
    file = tmp_path / "fhirpub.toml"
    file.write_text(
        '[auth]\nenvironment = "production"\naudience = "https://x.example"\n'
        '[plugins]\nenvironment = "development"\n'
    )

    with pytest.raises(ConfigurationError, match="must not be set where"):
        load(file, environment={})
