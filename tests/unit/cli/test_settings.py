"""Effective settings are shown without passwords, and plugins with what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fhirpub.cli.settings import config, plugins, without_password
from fhirpub.errors import PluginError
from tests.plugin_examples import write_metadata
from tests.unit.plugin_host.installing import V2, Install, declaring


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////var/lib/me@here/x.db", "sqlite:////var/lib/me@here/x.db"),
        ("mongodb://a:1,b:2/x?replicaSet=rs0", "mongodb://a:1,b:2/x?replicaSet=rs0"),
        ("mongodb://user@a/x", "mongodb://user@a/x"),
        ("mongodb://user:word@a:1,b/x?w=1", "mongodb://user:***@a:1,b/x?w=1"),
        ("mongodb+srv://user:word@a/x", "mongodb+srv://user:***@a/x"),
        ("mongodb://user:wo@rd:wo/rd?wo@a/x", "mongodb://user:***@a/x"),
        ("mongodb:user:word@a/x", ":***@a/x"),
        (
            "mongodb://a/x?tlscertificatekeyfilepassword=word&w=1",
            "mongodb://a/x?tlscertificatekeyfilepassword=***&w=1",
        ),
        (
            "mongodb://a/x?authMechanismProperties=AWS_SESSION_TOKEN:word",
            "mongodb://a/x?authMechanismProperties=***",
        ),
    ],
)
def test_the_url_of_a_store_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize(("given", "shown"), [("a-word", "***"), ("", "")])
def test_a_secret_of_the_service_is_shown_only_as_one_that_is_set(given: str, shown: str) -> None:
    variables = {"FHIRPUB_CONSOLE__OIDC_CLIENT_SECRET": given}

    done = CliRunner().invoke(config, ["--json"], env=variables)

    assert json.loads(done.output)["console"]["oidc_client_secret"] == shown
    assert "a-word" not in done.output


@pytest.mark.parametrize(
    ("group", "source", "version", "problem"),
    [
        ("fhirpub.plugins", "raise ValueError('x')", 1, "cannot be imported: ValueError: x"),
        ("fhirpub.plugins.v3", "raise ValueError('x')", 3, "made for version 3 of the plugin API"),
    ],
)
def test_a_plugin_that_cannot_be_enabled_is_listed_with_the_reason(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    group: str,
    source: str,
    version: int,
    problem: str,
) -> None:
    write_metadata(tmp_path, "lost", {"lost": "trial_lost"}, version="1.2", group=group)
    (tmp_path / "trial_lost.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)

    text = CliRunner().invoke(plugins).output
    listed = json.loads(CliRunner().invoke(plugins, ["--json"]).output)

    (lost,) = [one for one in listed if one["plugin"] == "lost"]
    assert (lost["enabled"], lost["api_version"], lost["hooks"]) == (False, version, "")
    assert problem in lost["problem"]
    assert f"Cannot be enabled: {lost['problem']}" in text
    assert "Not enabled: " in text
    assert "lost" not in text.split("Not enabled: ")[1].splitlines()[0]


def test_what_a_plugin_that_is_off_would_serve_is_in_a_column_of_its_own() -> None:
    variables = {"FHIRPUB_PLUGINS__ENABLED": "encounter"}

    listed = json.loads(CliRunner().invoke(plugins, ["--json"], env=variables).output)

    types = {one["plugin"]: (one["resource_types"], one["types_off"]) for one in listed}
    assert types["encounter"] == ("Encounter", "")
    assert types["diagnosticreport"] == ("", "DiagnosticReport")


def test_only_plugins_that_are_off_are_named_as_not_enabled() -> None:
    variables = {"FHIRPUB_PLUGINS__ENABLED": "encounter"}

    text = CliRunner().invoke(plugins, env=variables).output

    off = text.split("Not enabled: ")[1].split(". To enable")[0].split(", ")
    assert "diagnosticreport" in off
    assert "encounter" not in off


def test_hooks_are_listed_as_words_below_their_names() -> None:
    text = CliRunner().invoke(plugins, ["--hooks"]).output

    assert text.startswith(
        "fhirpub_resource_types()\n"
        "  Return the resource types that this plugin adds.\n"
        "\n"
        "  It is called when a process starts, and by commands that need the types.\n"
        "\n"
        "  Returns:\n"
        "      The types. Several plugins may be enabled; each adds its own.\n"
        "  Version 1. Implemented by: diagnosticreport\n"
        "\n"
        "fhirpub_key_provider()\n"
    )
    assert "  Version 1. Implemented by: no enabled plugin\n" in text


def test_each_hook_is_listed_with_what_it_is_for() -> None:
    listed = json.loads(CliRunner().invoke(plugins, ["--hooks", "--json"]).output)

    text = CliRunner().invoke(plugins, ["--hooks"]).output

    for one in listed:
        first = one["documentation"].splitlines()[0]
        arguments = ", ".join(one["arguments"])
        owners = ", ".join(one["implemented_by"]) or "no enabled plugin"
        assert f"{one['hook']}({arguments})\n  {first}\n" in text
        assert f"  Version {one['since_api_version']}. Implemented by: {owners}\n" in text
    assert any("diagnosticreport" in one["implemented_by"] for one in listed)


WITH_SECRETS = """
from dataclasses import dataclass
from fhirpub.plugin_api import hookimpl, setting

@dataclass(frozen=True)
class Broker:
    'Where events go.'
    password: str = setting("", "Password.", secret=True)
    unset: str = setting("", "Another one.", secret=True)
    host: str = setting("", "Host.")

@hookimpl
def fhirpub_settings():
    return Broker
"""


def test_secrets_of_a_plugin_are_hidden_and_its_other_settings_shown(install: Install) -> None:
    install("broker", WITH_SECRETS, group=V2)
    variables = {
        "FHIRPUB_PLUGINS__ENABLED": "broker",
        "FHIRPUB_BROKER__PASSWORD": "a-word",
        "FHIRPUB_BROKER__HOST": "h",
    }

    done = CliRunner().invoke(config, ["--json"], env=variables)

    shown = json.loads(done.output)["by_plugin"]["broker"]
    assert shown == {"password": "***", "unset": "", "host": "h"}
    assert "a-word" not in done.output


def test_the_reference_has_the_settings_of_enabled_plugins(install: Install) -> None:
    install("broker", WITH_SECRETS, group=V2)

    text = CliRunner().invoke(config, env={"FHIRPUB_PLUGINS__ENABLED": "broker"}).output

    assert "# Where events go.\n[broker]\n" in text
    assert '#host = ""\n' in text


def test_an_enabled_plugin_that_does_not_exist_is_refused() -> None:
    done = CliRunner().invoke(plugins, env={"FHIRPUB_PLUGINS__ENABLED": "nowhere"})

    assert isinstance(done.exception, PluginError)
    assert "there is no plugin nowhere" in str(done.exception)


def test_of_an_enabled_plugin_the_entry_of_an_unsupported_version_is_off(install: Install) -> None:
    install("flags", declaring())
    install("flags", "raise RuntimeError", distribution="second", group="fhirpub.plugins.v3")

    done = CliRunner().invoke(plugins, ["--json"], env={"FHIRPUB_PLUGINS__ENABLED": "flags"})

    listed = [one for one in json.loads(done.output) if one["plugin"] == "flags"]
    assert {one["api_version"]: one["enabled"] for one in listed} == {1: True, 3: False}
