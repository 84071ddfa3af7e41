"""How a command is found by its name, and what becomes of what it raises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from fhirpub.cli.commands import ALIASES, COMMANDS, Reporting, fhirpub
from fhirpub.errors import NoSuchRecord, SecretsUnavailable, StoreUnavailable
from tests.unit.plugin_host.installing import V2, Install

NAMED = """
import click
from fhirpub.plugin_api import hookimpl

@hookimpl
def fhirpub_commands(context):
    return [click.Command(%r)]
"""


def test_an_older_name_leads_to_the_command() -> None:
    context = click.Context(fhirpub)

    for older, name in ALIASES.items():
        assert fhirpub.get_command(context, older) is fhirpub.get_command(context, name)
        assert older not in fhirpub.list_commands(context)


def test_help_is_there_while_the_settings_are_wrong(run: Any, tmp_path: Path) -> None:
    (tmp_path / "fhirpub.toml").write_text("[sever]\n")

    done = run("--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", ["serve", *ALIASES])
def test_no_plugin_has_the_name_of_a_command_or_an_older_one(
    run: Any, install: Install, tmp_path: Path, name: str
) -> None:
    install("one", NAMED % name, group=V2)
    (tmp_path / "fhirpub.toml").write_text("[plugins]\nenabled = ['one']\n")

    done = run("nothing-of-ours")

    assert done.returncode == 1
    assert f"the name of the command {name!r} is taken" in done.stderr


def raising(problem: BaseException) -> Result:
    """Return what becomes of a command that raises something."""

    @click.command()
    def command() -> None:
        raise problem

    return CliRunner().invoke(Reporting(commands=[command]), ["command"])


@pytest.mark.parametrize(
    "problem",
    [
        PermissionError(1, "Operation not permitted"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        ValueError("a mistake of ours"),
    ],
)
def test_what_no_operator_can_mend_is_not_reported_as_something_else(problem: Exception) -> None:
    result = raising(problem)

    assert result.exception is problem
    assert "Error: " not in result.output


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (NoSuchRecord("tenant", "x"), "there is no tenant x; `fhirpub tenant list` shows the"),
        (NoSuchRecord("client", "x"), "there is no client x; `fhirpub client list` shows the"),
        (NoSuchRecord("endpoint", "x"), "no endpoint x; `fhirpub endpoint list` shows the"),
        (NoSuchRecord("delivery", "x"), "no delivery x; `fhirpub deliveries list` shows the"),
        (StoreUnavailable("SQLITE_FULL"), "the store cannot be used: the disk is full (SQLITE"),
        (SecretsUnavailable("the key is gone"), "Error: the key is gone\n"),
    ],
)
def test_a_refusal_is_one_line_with_what_to_do(problem: Exception, said: str) -> None:
    result = raising(problem)

    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(("value", "is_bold"), [("", True), ("1", False), ("yes", False)])
def test_any_value_of_no_color_turns_colours_off(value: str, *, is_bold: bool) -> None:
    words = ["plugins", "--hooks"]

    shown = CliRunner().invoke(fhirpub, words, env={"NO_COLOR": value}, color=True).stdout

    assert ("\x1b[1m" in shown) is is_bold
