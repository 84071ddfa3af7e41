"""The settings of the demo are its own, and what it prints can be pasted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.cli.demo.command import _invite, _private, _write_credentials
from fhirpub.cli.demo.compositions import PLUGINS
from fhirpub.config.administration import AdminConfig
from fhirpub.config.audit import AuditConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.plugins import PluginsConfig
from fhirpub.config.settings import Config

CREDENTIALS = {"client_id": "c-1", "client_secret": "it's", "audience": "https://a"}


def test_the_demo_has_a_store_an_address_and_rights_of_its_own(tmp_path: Path) -> None:
    usual = Config()
    given = replace(
        usual,
        server=replace(usual.server, host="0.0.0.0", base_url="https://real.example"),
        auth=replace(usual.auth, enforce_scopes=False),
    )

    config = _private(given, tmp_path)

    assert (config.server.host, config.server.base_url) == ("127.0.0.1", "")
    assert config.auth.enforce_scopes is True
    assert config.storage.url == f"sqlite:///{tmp_path / 'fhirpub.db'}"
    assert list(config.webhooks.allow_networks) == ["127.0.0.1"]
    assert config.logs.level == "error"


def test_the_demo_leaves_the_ports_and_the_checkpoints_to_the_service(tmp_path: Path) -> None:
    given = Config(
        admin=AdminConfig(port=9001, bootstrap_key_hash="0" * 64),
        console=ConsoleConfig(enabled=True, port=9002),
        audit=AuditConfig(
            checkpoints_file="/var/checkpoints", checkpoints_syslog="logs.example:6514"
        ),
    )

    config = _private(given, tmp_path)

    assert (config.admin, config.console) == (AdminConfig(), ConsoleConfig())
    assert (config.audit.checkpoints_file, config.audit.checkpoints_syslog) == ("", "")


def test_the_demo_serves_its_types_and_those_of_the_settings_once(tmp_path: Path) -> None:
    given = replace(Config(), plugins=PluginsConfig(enabled=["encounter", "mine"]))

    enabled = _private(given, tmp_path).plugins.enabled

    assert enabled == list(dict.fromkeys([*PluginsConfig().enabled, *PLUGINS, "mine"]))


def test_the_variables_are_safe_from_the_shell(tmp_path: Path) -> None:
    _write_credentials(tmp_path, "http://h", CREDENTIALS)

    (file,) = tmp_path.iterdir()
    secret = "'it'\"'\"'s'"
    assert file.read_text().splitlines() == [
        "export BASE=http://h",
        "export CLIENT_ID=c-1",
        f"export CLIENT_SECRET={secret}",
        "export AUDIENCE=https://a",
        "export FHIRPUB_CLIENT_ID=c-1",
        f"export FHIRPUB_CLIENT_SECRET={secret}",
    ]


def test_the_invitation_names_the_address_the_credentials_and_the_files(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _invite("http://h", Path("/x y"), CREDENTIALS)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The service keeps running. Try it yourself:"
    assert [line.split()[-1] for line in lines[1:5]] == ["http://h", "c-1", "it's", "https://a"]
    assert lines[5] == "  files          /x y"
    assert any(line.startswith("    cd '/x y' && . ./") for line in lines)
    assert lines[-1] == "Press Ctrl-C to stop it."
