"""Settings of plugins are checked as all others are, and reach the hooks of their plugin."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fhirpub.cli.settings import config as config_command
from fhirpub.config.loader import load
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError, PluginError
from fhirpub.plugin_api import EventSink
from fhirpub.plugin_host.hooks import PluginHooks
from fhirpub.plugin_host.settings import (
    declarations,
    plugin_context,
    setting_groups,
    settings_of,
)
from tests.unit.plugin_host.installing import V2, Install, refusal_of, sinks_named

PLUGIN = """
from dataclasses import dataclass
from typing import Literal
from fhirpub.plugin_api import hookimpl, setting

@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    '''Where events go.'''
    url: str = setting("amqp://localhost", "URL of the broker.", secret=True)
    seconds: float = setting(5.0, "Time in seconds.")
    kind: Literal["topic", "fanout"] = setting("topic", "Kind of exchange.")
    hosts: list[str] = setting([], "Hosts.")

    def __post_init__(self):
        if self.seconds == 0:
            raise ValueError("seconds must be above 0")

@hookimpl
def fhirpub_settings():
    return %s
"""


def read(tmp_path: Path, text: str, **environment: str) -> Config:
    file = tmp_path / "f.toml"
    file.write_text(f"[plugins]\nenabled = ['broker']\n{text}")
    return load(file, environment=environment, plugin_groups=setting_groups)


def group_in(config: Config) -> Any:
    """Return the settings that hooks of the plugin get."""
    hooks = PluginHooks(["broker"])
    (group,) = setting_groups(["broker"]).values()
    return plugin_context(config, hooks).settings(group)


@pytest.fixture
def broker(install: Install) -> str:
    return install("broker", PLUGIN % "Broker", group=V2)


@pytest.mark.usefixtures("broker")
def test_a_plugin_gets_what_is_set_and_the_defaults_of_the_rest(tmp_path: Path) -> None:
    config = read(tmp_path, "[broker]\nseconds = 2\n", FHIRPUB_BROKER__HOSTS="a,b")

    group = group_in(config)

    assert (group.url, group.seconds, group.hosts) == ("amqp://localhost", 2.0, ["a", "b"])


@pytest.mark.usefixtures("broker")
def test_without_settings_a_plugin_gets_its_defaults(tmp_path: Path) -> None:
    config = read(tmp_path, "")

    assert config.by_plugin == {}
    assert group_in(config).kind == "topic"


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[broker]\nsecnds = 2", "secnds in [broker]: unknown key; did you mean seconds?"),
        ("[broker]\nseconds = 'x'", "seconds in [broker]: must be a number"),
        ("[broker]\nkind = 'x'", "must be one of topic, fanout"),
        ("[broker]\nseconds = 0", "[broker] seconds must be above 0"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        read(tmp_path, text)

    assert words in str(refusal.value)


@pytest.mark.usefixtures("broker")
def test_what_several_plugins_refuse_is_named_at_once(install: Install, tmp_path: Path) -> None:
    install("other", PLUGIN % "Broker", group=V2)
    text = "[broker]\nseconds = 0\n[other]\nseconds = 0\n"

    with pytest.raises(ConfigurationError) as refusal:
        read(tmp_path, text, FHIRPUB_PLUGINS__ENABLED="broker,other")

    lines = [f"[{name}] seconds must be above 0" for name in ("broker", "other")]
    assert str(refusal.value).splitlines() == lines


def test_a_plugin_is_not_imported_for_settings_that_it_does_not_have(
    install: Install, tmp_path: Path
) -> None:
    install("broker", "raise RuntimeError('imported')", group=V2)

    assert read(tmp_path, "[broker]\nstate_flow = 'clinical'").by_type

    with pytest.raises(PluginError, match=r"plugin broker .* RuntimeError: imported"):
        read(tmp_path, "[broker]\nseconds = 1")


@pytest.mark.usefixtures("broker")
def test_the_reference_has_the_group_and_secrets_are_not_printed(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_text("[plugins]\nenabled = ['broker']\n[broker]\nurl = 'amqp://u:geheim@h'\n")

    reference = CliRunner().invoke(config_command, ["--config", str(file)]).output
    shown = CliRunner().invoke(config_command, ["--config", str(file), "--json"]).output

    assert "# Where events go.\n[broker]" in reference
    assert "# Time in seconds.\n#seconds = 5.0" in reference
    assert json.loads(shown)["by_plugin"]["broker"]["url"] == "***"
    assert "geheim" not in shown


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("7", "must return a dataclass"),
        ("type('Loose', (), {})", "must return a dataclass"),
        ("dataclass(type('Loose', (), {}))", "Loose, which must be frozen and have a docstring"),
        (
            (
                "dataclass(frozen=True)(type('Bare', (), {'__doc__': 'x', "
                "'__annotations__': {'x': int}, 'x': 1}))"
            ),
            "Bare: x must be made by `setting`",
        ),
        (
            (
                "dataclass(frozen=True)(type('Odd', (), {'__doc__': 'x', "
                "'__annotations__': {'x': bytes}, 'x': setting(b'', 'x')}))"
            ),
            "Odd: x has a type that no setting can have",
        ),
        (
            (
                "dataclass(frozen=True)(type('Own', (), {'__doc__': 'x', "
                "'__annotations__': {'updatable': str}, 'updatable': setting('', 'x')}))"
            ),
            "Own: updatable is an option of every resource type",
        ),
    ],
)
def test_a_class_that_cannot_be_a_group_is_reported(
    install: Install, returned: str, words: str
) -> None:
    install("broker", PLUGIN % returned, group=V2)

    with pytest.raises(PluginError, match="plugin broker") as refusal:
        setting_groups(["broker"])

    assert words in str(refusal.value)


def test_a_plugin_whose_settings_would_be_hidden_by_ours_is_reported(install: Install) -> None:
    install("limits", PLUGIN % "Broker", group=V2)

    with pytest.raises(PluginError, match=r"another name: \[limits\] has settings of the service"):
        setting_groups(["limits"])


def test_the_reference_can_be_read_whatever_a_plugin_writes(
    install: Install, tmp_path: Path
) -> None:
    quoted = "setting(r'C:\\new \"quoted\"'"
    own = (PLUGIN % "Broker").replace('setting("amqp://localhost"', quoted)
    own = own.replace("go.'''", "go.\n\n    Attributes:\n        url: The broker.\n    '''")
    install("broker", own, group=V2)
    file = tmp_path / "f.toml"
    file.write_text("[plugins]\nenabled = ['broker']\n")

    text = CliRunner().invoke(config_command, ["--config", str(file)]).output
    all_set = re.sub("(?m)^#(?=[a-z_]+ = )", "", text)

    assert tomllib.loads(all_set)["broker"]["url"] == 'C:\\new "quoted"'


@pytest.mark.usefixtures("broker")
def test_a_traceback_with_the_settings_shows_no_secret(tmp_path: Path) -> None:
    config = read(tmp_path, "[broker]\nurl = 'amqp://u:geheim@h'\n")

    shown = f"{group_in(config)!r} {config!r}"

    assert "seconds=5.0" in shown
    assert "geheim" not in shown


def test_defaults_that_are_no_valid_settings_are_reported_with_their_group(
    install: Install,
) -> None:
    install("broker", (PLUGIN % "Broker").replace("setting(5.0", "setting(0.0"), group=V2)

    with pytest.raises(PluginError, match=r"^\[broker\] seconds must be above 0$"):
        plugin_context(Config(), PluginHooks(["broker"]))


@pytest.mark.usefixtures("broker")
def test_a_wrong_group_is_reported_and_left_out_and_that_of_another_plugin_stays(
    install: Install,
) -> None:
    install("other", PLUGIN % "7", group=V2)
    hooks = PluginHooks(["other", "broker"])

    groups = settings_of(hooks)

    assert list(groups) == ["broker"]
    assert list(hooks.problems) == ["other"]


def test_all_that_is_wrong_with_a_field_is_named(install: Install) -> None:
    fields = "{'__doc__': 'x', '__annotations__': {'updatable': bytes}, 'updatable': b''}"
    install("broker", PLUGIN % f"dataclass(frozen=True)(type('Odd', (), {fields}))", group=V2)

    with pytest.raises(PluginError) as refusal:
        setting_groups(["broker"])

    assert [line.partition(": updatable ")[2] for line in str(refusal.value).splitlines()] == [
        "is an option of every resource type",
        "must be made by `setting`",
        "has a type that no setting can have",
    ]


def test_what_is_found_wrong_with_declarations_is_raised_with_what_plugins_raise(
    install: Install,
) -> None:
    install("one", sinks_named("a"), group=V2)
    install("two", sinks_named("b").replace("return [", "return 7, ["), group=V2)

    def read(config: Config) -> None:
        with declarations(config, "fhirpub_event_sinks", EventSink) as (hooks, found):
            assert [sink.name for _plugin, sink in found] == ["a"]
            hooks.report("one", ["the name is not ours"])

    lines = refusal_of(read, "one", "two")

    assert sorted(line.rpartition(": ")[2] for line in lines) == [
        "fhirpub_event_sinks must return a list of EventSink, not int",
        "the name is not ours",
    ]
