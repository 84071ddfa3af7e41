"""``fhirpub check`` tells what a start would trip over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def test_a_fresh_folder_is_fine(run: Any) -> None:
    done = run("check", "--json")

    findings = json.loads(done.stdout)
    assert done.returncode == 0, findings
    assert [each["subject"] for each in findings] == [
        "configuration",
        "plugins",
        "store",
        "webhooks",
        "schemas",
    ]
    assert {each["level"] for each in findings} == {"ok"}


def test_people_get_one_line_for_each_finding(run: Any) -> None:
    lines = run("check").stdout.splitlines()

    assert len(lines) == 5
    assert lines[0] == "ok       configuration  built-in defaults"


@pytest.mark.parametrize(
    ("settings", "subject", "text"),
    [
        ("[sever]", "configuration", "did you mean server?"),
        ("[plugins]\nenabled = ['nothing-such']", "plugins", "there is no plugin nothing-such"),
        ("[storage]\nurl = 'sqlite:////proc/none/f.db'", "store", ""),
        ("[storage]\nurl = 'oracle://x'", "store", "must be sqlite:///"),
    ],
)
def test_trouble_is_found_and_named(
    run: Any, tmp_path: Path, settings: str, subject: str, text: str
) -> None:
    (tmp_path / "f.toml").write_text(settings)

    done = run("check", "--config", "f.toml", "--json")

    errors = [each for each in json.loads(done.stdout) if each["level"] == "error"]
    assert done.returncode == 1
    assert {each["subject"] for each in errors} == {subject}
    assert text in errors[0]["text"]


def test_production_without_tls_is_a_warning(run: Any) -> None:
    done = run("check", "--json", FHIRPUB_AUTH__ENVIRONMENT="production")

    warnings = [each for each in json.loads(done.stdout) if each["level"] == "warning"]
    assert done.returncode == 0
    assert len(warnings) == 2
    assert "base_url" in warnings[0]["text"]
