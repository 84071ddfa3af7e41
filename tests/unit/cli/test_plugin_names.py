"""Which plugin ``fhirpub plugin new`` creates, and where, by the words that it gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from fhirpub.cli.plugin import _hooks_in, new
from fhirpub.errors import PluginError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(*words: str) -> str:
    """Return why no plugin is created."""
    problem = CliRunner().invoke(new, words).exception
    assert isinstance(problem, PluginError)
    assert list(Path().iterdir()) == []
    return str(problem)


def test_without_a_hook_a_word_in_small_letters_is_no_plugin_but_a_mistake() -> None:
    assert refused("procedure").endswith("; did you mean Procedure?")


def test_a_type_may_have_hooks_as_well() -> None:
    done = CliRunner().invoke(new, ["Procedure", "--hook", "commands", "--json"])

    assert done.exit_code == 0
    assert '"resource_type": "Procedure"' in done.stdout
    assert Path("fhirpub-procedure/fhirpub_procedure/commands.py").exists()
    assert Path("fhirpub-procedure/fhirpub_procedure/rules.py").exists()


def test_a_plugin_without_a_type_has_no_name_that_is_installed() -> None:
    said = refused("diagnosticreport", "--hook", "commands")

    assert said.startswith("a plugin diagnosticreport is already installed: ")
    assert said.endswith("; use that one, or create one of another type or name")


@pytest.mark.parametrize("place", ["fhirpub_procedure", "x/fhirpub_procedure"])
def test_no_folder_hides_the_package_inside_wherever_it_is(place: str) -> None:
    assert refused("Procedure", "--directory", place).startswith(f"{place}: a folder of this name")


def test_the_next_step_keeps_the_plugins_that_are_enabled() -> None:
    variables = {"FHIRPUB_PLUGINS__ENABLED": "encounter,specimen"}

    done = CliRunner().invoke(new, ["Procedure"], env=variables)

    assert 'Serve it with: enabled = ["encounter", "specimen", "procedure"]' in done.stdout


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        (" , ", ()),
        ("settings", ("settings",)),
        ("commands ,settings", ("commands", "settings")),
    ],
)
def test_an_answer_names_hooks_between_commas(text: str, names: tuple[str, ...]) -> None:
    assert _hooks_in(text) == names


@pytest.mark.parametrize("text", ["setting", "settings, setting", "commands,setting,settings"])
def test_each_hook_of_an_answer_must_be_one(text: str) -> None:
    with pytest.raises(click.UsageError, match=r"^setting is not one of them; did you mean set"):
        _hooks_in(text)


def test_json_is_not_asked_for_hooks_even_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_terminal(_stream: Any) -> bool:
        return True

    monkeypatch.setattr("fhirpub.cli.plugin.is_terminal", is_terminal)

    done = CliRunner().invoke(new, ["Procedure", "--json"], input="commands\n")

    assert done.exit_code == 0
    assert (done.stderr, Path("fhirpub-procedure/fhirpub_procedure/commands.py").exists()) == (
        *("", False),
    )
