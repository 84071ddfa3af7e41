"""The files of containers agree with each other, with the service and with its settings."""

from __future__ import annotations

import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from fhirpub.config.loader import load, misspelt_variables
from tests.deploy.tools import run

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SETTINGS = ROOT / "deploy" / "container" / "fhirpub.toml"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
LAST_STAGE = DOCKERFILE.rpartition("\nFROM ")[2]


def copied() -> set[str]:
    """Return what the Dockerfile takes from the folder."""
    rows = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    return {name for row in rows for name in row.split()}


def test_the_base_can_be_chosen_and_is_that_of_every_stage() -> None:
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)

    assert set(stages) == {"${BASE}", "scratch"}
    assert re.search(r"^ARG BASE=\S+$", DOCKERFILE, re.MULTILINE)


def test_the_image_runs_as_a_user_without_rights_and_has_a_health_check() -> None:
    (user,) = re.findall(r"^USER (\d+):\d+$", LAST_STAGE, re.MULTILINE)

    assert int(user) >= 10_000
    assert "\nHEALTHCHECK " in LAST_STAGE
    assert "/health/live" in LAST_STAGE


def test_the_last_stage_copies_only_what_was_installed_and_the_settings() -> None:
    rows = re.findall(r"^COPY (.+)$", LAST_STAGE, re.MULTILINE)

    assert rows == [
        "--from=install /opt/fhirpub /opt/fhirpub",
        "deploy/container/fhirpub.toml /etc/fhirpub/fhirpub.toml",
    ]


def test_only_what_is_copied_is_sent_to_the_builder() -> None:
    refused, *rows = [
        row
        for row in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if row and not row.startswith("#")
    ]

    assert refused == "*"
    assert {row[1:] for row in rows if row.startswith("!")} == copied()
    assert all((ROOT / name).exists() for name in copied())
    assert any(fnmatch("fhirpub/http/__pycache__", row) for row in rows)


def test_the_settings_of_the_image_are_accepted_and_write_to_its_volume_only() -> None:
    config = load(SETTINGS, environment={})
    (volume,) = re.findall(r"^VOLUME (\S+)$", LAST_STAGE, re.MULTILINE)
    exposed = re.findall(r"^EXPOSE (.+)$", LAST_STAGE, re.MULTILINE)

    assert config.storage.url.startswith(f"sqlite:///{volume}/")
    assert exposed == [f"{config.server.port} {config.metrics.port}"]
    assert (config.server.host, config.metrics.host) == ("0.0.0.0", "0.0.0.0")


def test_the_settings_in_compose_are_settings_and_name_the_members_of_its_set() -> None:
    service = COMPOSE["services"]["fhirpub"]
    config = load(SETTINGS, environment=service["environment"])
    ports = [
        command[command.index("--port") + 1]
        for name, item in COMPOSE["services"].items()
        if name.startswith("mongo") and (command := item["command"])
    ]

    assert not misspelt_variables(service["environment"])
    members = ",".join(f"127.0.0.1:{port}" for port in ports)
    assert config.storage.url == f"mongodb://{members}/fhirpub?replicaSet=rs0"
    assert config.auth.enforce_scopes
    assert config.storage.keys_file.startswith(service["volumes"][0].partition(":")[2])


@pytest.mark.parametrize("name", ["initiate", "key", "fhirpub", "demo"])
def test_compose_gives_the_image_no_rights(name: str) -> None:
    service = COMPOSE["services"][name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "privileged" not in service


def test_compose_listens_on_this_machine_only() -> None:
    ports = [port for item in COMPOSE["services"].values() for port in item.get("ports", ())]

    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


@pytest.mark.parametrize("name", ["key", "demo"])
def test_the_scripts_in_compose_are_scripts(name: str) -> None:
    (script,) = COMPOSE["services"][name]["command"]
    shell = shutil.which("sh")
    assert shell

    done = subprocess.run([shell, "-n"], input=script.replace("$$", "$"), text=True, check=False)

    assert done.returncode == 0


def test_hadolint_has_no_remark() -> None:
    done = run("hadolint", ROOT / "Dockerfile")

    assert (done.returncode, done.stdout) == (0, "")
