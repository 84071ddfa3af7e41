"""Options that commands share: settings, notes and the settings of plugins."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from fhirpub.cli.options import (
    EXISTING_FILE,
    plugin_groups,
    read_config,
    with_config,
    with_config_file,
    with_json,
    with_note,
)
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError
from tests.plugin_examples import install


@click.command()
@with_note
@with_json
def noted(reason: str, operator: str, *, as_json: bool) -> None:
    click.echo(f"{reason}|{operator}|{as_json}")


@click.command()
@with_config
def configured(config: Config) -> None:
    click.echo(config.server.port)


@click.command()
@with_config_file
def named(config_file: Path | None) -> None:
    click.echo(repr(config_file))


def test_a_note_has_a_reason_and_who_decided_without_blanks() -> None:
    result = CliRunner().invoke(noted, ["--reason", " why ", "--operator", " ana ", "--json"])

    assert result.stdout == "why|ana|True\n"


def test_who_runs_the_command_has_decided_unless_named() -> None:
    result = CliRunner().invoke(noted, ["--reason", "why"])

    assert result.stdout == f"why|{getpass.getuser()}|False\n"


def test_the_user_is_looked_up_when_a_command_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "someone-else")

    result = CliRunner().invoke(noted, ["--reason", "why"])

    assert result.stdout == "why|someone-else|False\n"


def test_a_reason_must_be_given() -> None:
    assert CliRunner().invoke(noted, []).exit_code == 2


@pytest.mark.parametrize("text", ["", "  ", "a\nb", "a\x1b", "x" * 501])
@pytest.mark.parametrize("option", ["--reason", "--operator"])
def test_a_text_that_no_log_line_can_hold_is_refused(option: str, text: str) -> None:
    result = CliRunner().invoke(noted, ["--reason", "why", option, text])

    assert result.exit_code == 2
    assert "must be one line of printable text, not blank, of 500" in result.output


def test_a_text_may_have_500_characters() -> None:
    assert CliRunner().invoke(noted, ["--reason", "é" * 500]).exit_code == 0


def test_settings_are_those_of_the_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text("[server]\nport = 7\n")

    result = CliRunner().invoke(configured, ["--config", str(tmp_path / "f.toml")])

    assert result.stdout == "7\n"


def test_a_file_that_is_missing_is_reported_by_the_reader(tmp_path: Path) -> None:
    result = CliRunner().invoke(configured, ["--config", str(tmp_path / "none")])

    assert isinstance(result.exception, ConfigurationError)


def test_a_file_that_is_only_named_is_not_read(tmp_path: Path) -> None:
    assert CliRunner().invoke(named, ["--config", "/x/none"]).stdout == f"{Path('/x/none')!r}\n"
    assert CliRunner().invoke(named, []).stdout == "None\n"


def test_without_a_file_settings_are_those_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fhirpub.toml").write_text("[server]\nport = 8\n")

    assert read_config(None).server.port == 8


def test_plugins_are_asked_only_if_there_are_some() -> None:
    assert plugin_groups([]) == {}
    assert plugin_groups(["diagnosticreport"]) == {}


def test_no_plugin_is_loaded_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_names: object) -> None:
        raise AssertionError("plugins were loaded")

    monkeypatch.setattr("fhirpub.plugin_host.settings.setting_groups", never)

    assert plugin_groups([]) == {}


def test_the_settings_of_plugins_are_read_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
from dataclasses import dataclass
from fhirpub.plugin_api import hookimpl, setting

@dataclass(frozen=True, kw_only=True)
class Settings:
    size: int = setting(3, "A size.")

@hookimpl
def fhirpub_settings():
    return Settings
"""
    install(tmp_path, "sized", source)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "f.toml"
    file.write_text('[plugins]\nenabled = ["sized"]\n[sized]\nsize = 5\n')

    config = read_config(file)
    del sys.modules["example_sized"]

    assert config.by_plugin["sized"].size == 5


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(click.BadParameter, match="is a directory"):
        EXISTING_FILE.convert(str(tmp_path), None, None)


def test_a_file_that_exists_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    assert EXISTING_FILE.convert(str(tmp_path / "a"), None, None) == tmp_path / "a"
