"""Commands of plugins are commands of ``fhirpub`` like its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugin_examples import install

SOURCE = """
import gc
import click
from fhirpub.plugin_api import hookimpl

asked = []

@hookimpl
def fhirpub_commands(context):
    asked.append(context.base_url)

    @click.command("waste", short_help="Say whether garbage is collected.")
    def waste():
        click.echo(gc.isenabled())

    return [waste]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with an installed plugin that has a command, and settings that enable it."""
    install(tmp_path, "waste", SOURCE)
    (tmp_path / "fhirpub.toml").write_text("[plugins]\nenabled = ['waste']")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("example_waste", None)


def test_garbage_is_collected_while_a_command_runs(
    home: Path, run_program: Any, environment: dict[str, str]
) -> None:
    path = f"{home}{os.pathsep}{environment['PYTHONPATH']}"

    assert run_program("waste", PYTHONPATH=path).stdout == "True\n"


@pytest.mark.usefixtures("home")
def test_help_lists_the_command_and_asks_the_plugin_once(run: Any) -> None:
    shown = run("--help").stdout

    assert "Say whether garbage is collected." in shown
    assert len(sys.modules["example_waste"].asked) == 1


def test_help_is_there_while_the_plugin_cannot_be_imported(home: Path, run: Any) -> None:
    (home / "example_waste.py").write_text("1 / 0")

    done = run("--help")

    assert done.returncode == 0
    assert "serve" in done.stdout
    assert "Say whether" not in done.stdout
