"""What is installed is read once, and again when it has changed."""

from __future__ import annotations

import importlib.metadata
import shutil
from pathlib import Path
from typing import Any

import pytest

from fhirpub.plugin_host.sources import installed
from tests.plugin_examples import write_metadata


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for packages in which something is installed."""
    write_metadata(tmp_path, "lab-flags", {"flags": "lab_flags"})
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def names() -> set[str]:
    return {source.name for source in installed()}


def test_what_is_installed_while_the_process_runs_is_found(site: Path) -> None:
    assert "goals" not in names()

    write_metadata(site, "lab-goals", {"goals": "lab_goals"})

    assert {"flags", "goals"} <= names()


def test_what_is_uninstalled_while_the_process_runs_is_gone(site: Path) -> None:
    assert "flags" in names()

    shutil.rmtree(site / "lab_flags-1.0.dist-info")

    assert "flags" not in names()


@pytest.mark.usefixtures("site")
def test_what_has_not_changed_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = installed()
    reads: list[Any] = []
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda: reads.append(1))

    assert installed() == before
    assert reads == []


def test_a_caller_cannot_change_what_the_next_one_gets(site: Path) -> None:
    installed().clear()

    assert "flags" in names()
    assert site.exists()
