"""Warnings about the limits of a process and of its machine."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.advice.machine import advise_on_machine, memory_bytes
from fhirpub.config.settings import Config
from tests.unit.cli.advice.configs import production

GIB = 1024**3


@pytest.mark.parametrize("limit", [1024, 4351])
def test_fewer_files_than_connections_need_are_a_warning_with_the_number_to_set(
    tmp_path: Path, environment: dict[str, str], limit: int
) -> None:
    findings = checked_under(limit, tmp_path, environment)

    (warning,) = [finding["text"] for finding in findings if finding["level"] == "warning"]
    assert f"the limit of open files ({limit}) allows {limit - 256}:" in warning
    assert "LimitNOFILE=4352" in warning


def test_as_many_files_as_connections_need_are_no_warning(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    findings = checked_under(4352, tmp_path, environment)

    assert {finding["level"] for finding in findings} == {"ok"}


def checked_under(limit: int, folder: Path, environment: dict[str, str]) -> list[Any]:
    """Return the findings of a check that may open so many files; warnings leave status 0."""
    script = f'ulimit -n {limit}; exec "$0" -m fhirpub check --json'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=True,
    )
    findings: list[Any] = json.loads(done.stdout)
    return findings


def with_workers(number: int) -> Config:
    config = production()
    return replace(config, server=replace(config.server, workers=number))


def test_more_workers_than_the_memory_has_room_for_are_a_warning() -> None:
    (finding,) = advise_on_machine(with_workers(5), memory=2 * GIB)

    assert finding.level == "warning"
    assert finding.text.startswith(
        "[server] workers = 5: 2560 MiB should be planned for them, and"
    )
    assert "has 2048 MiB: give it more, or lower the setting" in finding.text


def test_as_many_workers_as_the_memory_has_room_for_are_no_warning() -> None:
    assert list(advise_on_machine(with_workers(4), memory=2 * GIB)) == []


def test_by_default_the_memory_is_that_of_this_machine() -> None:
    (finding,) = advise_on_machine(with_workers(10**6))

    assert f"has {memory_bytes() // 1024**2} MiB: " in finding.text


def test_the_limit_of_a_control_group_counts_if_it_is_less(tmp_path: Path) -> None:
    for name, text in (("least", "4096\n"), ("none", "max\n"), ("huge", f"{2**63}\n")):
        (tmp_path / name).write_text(text)

    physical = memory_bytes(())

    assert memory_bytes((tmp_path / "least",)) == 4096
    for first in ("none", "absent", "huge"):
        assert memory_bytes((tmp_path / first, tmp_path / "least")) == 4096
        assert memory_bytes((tmp_path / "least", tmp_path / first)) == 4096
    assert memory_bytes((tmp_path / "none", tmp_path / "huge", tmp_path / "absent")) == physical
    assert physical > GIB / 4
