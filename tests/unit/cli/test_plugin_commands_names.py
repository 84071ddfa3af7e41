"""Which names commands of plugins may have, and the settings by which they are found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from fhirpub.cli.plugin_commands import _file_in, _with_config, load_commands
from fhirpub.errors import ConfigurationError, PluginError
from tests.unit.plugin_host.installing import Install

SOURCE = """
import click
from fhirpub.plugin_api import hookimpl

@hookimpl
def fhirpub_commands(context):
    return [click.Command(name) for name in {names!r}]
"""
QUIET = """
from fhirpub.plugin_api import hookimpl

@hookimpl
def fhirpub_startup(context):
    pass
"""
Enable = Callable[..., list[str]]


@pytest.fixture
def enable(install: Install, tmp_path: Path) -> Enable:
    """Return a function that installs plugins with commands, and returns a command line."""

    def enabled(**names: list[str | None]) -> list[str]:
        for plugin, some in names.items():
            install(plugin, SOURCE.format(names=some), group="fhirpub.plugins.v2")
        file = tmp_path / "f.toml"
        file.write_text(f"[plugins]\nenabled = {[*names]!r}\n")
        return ["anything", "--config", str(file)]

    return enabled


def test_the_commands_of_all_plugins_are_found_by_their_names(enable: Enable) -> None:
    found = load_commands(enable(one=["a", "b"], two=["c"]), taken={"serve": None})

    assert sorted(found) == ["a", "b", "c"]
    assert {name: command.name for name, command in found.items()} == {n: n for n in "abc"}


@pytest.mark.parametrize(
    ("names", "shown"), [(["serve"], "'serve'"), (["a", "a"], "'a'"), ([None], "''"), ([""], "''")]
)
def test_a_name_that_is_taken_or_missing_is_refused(
    enable: Enable, names: list[str | None], shown: str
) -> None:
    words = enable(one=names)

    with pytest.raises(PluginError) as refused:
        load_commands(words, taken={"serve": None})

    assert str(refused.value) == (
        f"plugin one (trial_dist_one): the name of the command {shown} is taken"
    )


def test_a_name_that_another_plugin_has_is_refused(enable: Enable) -> None:
    words = enable(one=["a"], two=["a"])

    with pytest.raises(PluginError, match=r"^plugin two .*the name of the command 'a' is taken$"):
        load_commands(words, taken={})


def test_plugins_without_commands_add_none(install: Install, tmp_path: Path) -> None:
    install("quiet", QUIET, group="fhirpub.plugins.v2")
    (tmp_path / "f.toml").write_text("[plugins]\nenabled = ['quiet']\n")

    assert load_commands([f"--config={tmp_path}/f.toml"], taken={}) == {}


def test_a_plugin_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text("[plugins]\nenabled = ['missing']\n")

    with pytest.raises(ConfigurationError, match="there is no plugin missing"):
        load_commands([f"--config={tmp_path}/f.toml"], taken={})


# The settings


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["x", "--config", "a.toml"], "a.toml"),
        (["x", "--config=a.toml"], "a.toml"),
        (["x", "--config=a=b.toml", "y"], "a=b.toml"),
        (["--config", "a.toml", "--config", "b.toml"], "a.toml"),
        (["--config", "a.toml", "x", "y"], "a.toml"),
    ],
)
def test_the_file_of_settings_is_read_from_the_command_line(words: list[str], file: str) -> None:
    assert _file_in(words) == Path(file)


@pytest.mark.parametrize("words", [[], ["x"], ["x", "--config"], ["--configure", "a"]])
def test_a_command_line_without_a_file_names_none(words: list[str]) -> None:
    assert _file_in(words) is None


def test_a_command_takes_the_file_that_was_read_and_does_not_get_it() -> None:
    seen: list[object] = []
    command = _with_config(click.Command("x", callback=lambda **given: seen.append(given)))

    command.main(["--config", "a.toml"], standalone_mode=False)

    assert seen == [{}]


def test_the_help_of_a_command_states_what_its_settings_are() -> None:
    command = _with_config(click.Command("x"))

    shown = CliRunner().invoke(command, ["--help"], terminal_width=80).output

    assert "--config FILE  Settings; default: fhirpub.toml in the working" in shown


def test_a_command_with_such_an_option_keeps_its_own() -> None:
    own = click.Option(["--config", "chosen"])
    command = click.Command("x", params=[own])

    assert _with_config(command).params == [own]


def test_a_command_with_other_options_takes_the_file_too() -> None:
    command = _with_config(click.Command("x", params=[click.Option(["--size"], type=int)]))

    options = [word for parameter in command.params for word in parameter.opts]

    assert options == ["--size", "--config"]
