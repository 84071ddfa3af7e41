"""A new plugin has the modules and tests of the hooks that were asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fhirpub import __version__
from fhirpub.cli.scaffold.hook_parts import (
    PARTS,
    check_name,
    files_of_hooks,
    files_without_type,
    with_imports,
    with_test_requirements,
    with_test_settings,
)
from fhirpub.config.settings import PluginsConfig
from fhirpub.errors import PluginError
from fhirpub.plugin_api.hookspecs import API_VERSION, group_of

SETUP = 'extras_require={"test": ["pytest>=8.3"]},\n'
MODULE = "import x\n\nfrom fhirpub_a.rules import A\n\n\ndef f(): ...\n"


def fill(name: str, words: dict[str, str]) -> str:
    """Return the words that a template gets, instead of its text."""
    return json.dumps([name, words])


@pytest.mark.parametrize("name", ["ab", "a1", "stream", "a" * 31])
def test_a_name_of_small_letters_and_digits_is_one(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    "name", ["", "a", "1a", "A1", "a-b", "a_b", "a b", "a" * 32, "ab\n", "é1"]
)
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(PluginError, match="is neither a resource type of FHIR nor a name of"):
        check_name(name)


def test_each_hook_has_a_module_and_a_test_once() -> None:
    found = files_of_hooks("a", ["event-sinks", "settings", "event-sinks"], fill)

    assert list(found) == [
        *("fhirpub_a/sinks.py", "tests/test_sinks.py"),
        *("fhirpub_a/settings.py", "tests/test_settings.py"),
    ]
    names = [json.loads(text)[0] for text in found.values()]
    assert names == ["sinks.py", "test_sinks.py", "settings.py", "test_settings.py"]


def words_of(**more: Any) -> dict[str, str]:
    found: dict[str, str] = json.loads(
        files_of_hooks("a", ["commands"], fill, **more)["fhirpub_a/commands.py"]
    )[1]
    return found


def test_templates_get_the_names_and_versions_of_the_plugin() -> None:
    words = words_of(type_name="Task")

    assert words == {
        "plugin": "a",
        "package": "fhirpub_a",
        "distribution": "fhirpub-a",
        "subject": "Task",
        "enabled": '["a"]',
        "release": __version__,
        "api": str(API_VERSION),
        "group": group_of(API_VERSION),
    }


def test_a_plugin_without_a_type_is_tried_with_those_that_are_usually_enabled() -> None:
    words = words_of()

    assert json.loads(words["enabled"]) == [*PluginsConfig().enabled, "a"]
    assert words["subject"] == "DiagnosticReport"


def test_a_plugin_without_a_type_has_all_its_hooks_in_one_place() -> None:
    found = files_without_type("a", ["lifetime", "commands"], fill)

    assert list(found) == [
        *("README.md", "setup.py", "pyproject.toml"),
        *("fhirpub_a/__init__.py", "fhirpub_a/py.typed"),
        *("fhirpub_a/lifetime.py", "tests/test_lifetime.py"),
        *("fhirpub_a/commands.py", "tests/test_commands.py"),
    ]
    name, words = json.loads(found["fhirpub_a/__init__.py"])
    assert (name, found["fhirpub_a/py.typed"]) == ("bare_hooks.py", "")
    assert words["imports"] == (
        "from fhirpub_a.commands import fhirpub_commands\n"
        "from fhirpub_a.lifetime import fhirpub_shutdown, fhirpub_startup"
    )
    assert words["names"] == (
        '    "fhirpub_commands",\n    "fhirpub_shutdown",\n    "fhirpub_startup",\n'
    )
    assert json.loads(found["setup.py"])[1]["type"] == "a"
    assert json.loads(found["README.md"])[0] == "bare_README.md"


def test_without_a_hook_the_module_of_a_type_stays_as_it_is() -> None:
    assert with_imports(MODULE, "fhirpub_a", []) == MODULE


def test_other_hooks_are_imported_beside_those_of_the_type() -> None:
    assert with_imports(MODULE, "fhirpub_a", ["terminology", "commands"]) == (
        "import x\n\n"
        "from fhirpub_a.codes import fhirpub_terminology\n"
        "from fhirpub_a.commands import fhirpub_commands\n"
        "from fhirpub_a.rules import A\n\n"
        "__all__ = [\n"
        '    "fhirpub_commands",\n'
        '    "fhirpub_resource_types",\n'
        '    "fhirpub_terminology",\n'
        "]\n"
        "\n\ndef f(): ...\n"
    )


def test_the_tests_of_sinks_need_asyncio() -> None:
    hooks = ["event-sinks"]

    assert with_test_requirements(SETUP, hooks) == (
        'extras_require={"test": ["pytest>=8.3", "pytest-asyncio>=1.0"]},\n'
    )
    assert with_test_settings("[x]\n", hooks) == '[x]\nasyncio_mode = "auto"\n'


@pytest.mark.parametrize("hook", sorted({*PARTS} - {"event-sinks"}))
def test_the_tests_of_other_hooks_need_no_asyncio(hook: str) -> None:
    assert with_test_requirements(SETUP, [hook]) == SETUP
    assert with_test_settings("[x]\n", [hook]) == "[x]\n"
