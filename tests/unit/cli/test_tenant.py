"""``fhirpub tenant`` on a store in a file: what it changes, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fhirpub.cli.tenant import tenant


class Tenants:
    """Runs the command on a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "f.toml"
        self.file.write_text(f'[storage]\nurl = "sqlite:///{folder}/fhirpub.db"\n')

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(tenant, [*words, "--config", str(self.file)])

    def json(self, *words: str) -> Any:
        result = self.run(*words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def tenants(tmp_path: Path) -> Tenants:
    return Tenants(tmp_path)


def test_a_store_without_tenants_says_how_to_add_one(tenants: Tenants) -> None:
    tenants.json("list")

    assert 'No tenants yet: fhirpub tenant add "Lab Uno"' in tenants.run("list").stdout


def test_a_tenant_is_added_and_the_next_step_is_named(tenants: Tenants) -> None:
    result = tenants.run("add", "Lab Uno")

    (listed,) = tenants.json("list")
    assert result.stdout.startswith("Tenant added.\n")
    following = f"fhirpub client add --tenant {listed['id']} --scope system/DiagnosticReport.cruds"
    assert result.stdout.endswith(f": {following} --config {tenants.file}\n")
    assert listed["name"] == "Lab Uno"


def test_a_tenant_with_a_key_is_added_once_and_then_renamed(tenants: Tenants) -> None:
    first = tenants.json("add", "Lab Uno", "--key", "lab-uno")
    result = tenants.run("add", "Lab Dos", "--key", "lab-uno")

    (listed,) = tenants.json("list")
    assert result.stdout.startswith("Tenant saved.\n")
    assert (listed["id"], listed["name"]) == (first["id"], "Lab Dos")


def test_what_add_prints_as_json_is_id_and_name(tenants: Tenants) -> None:
    assert {*tenants.json("add", "Lab Uno")} == {"id", "name"}


def test_a_tenant_is_renamed_and_keeps_its_id(tenants: Tenants) -> None:
    added = tenants.json("add", "Lab Uno")

    renamed = tenants.json("rename", added["id"], "Lab Dos")

    assert (renamed["id"], renamed["name"]) == (added["id"], "Lab Dos")
    assert tenants.json("show", "Lab Dos")["id"] == added["id"]


def test_a_disabled_tenant_can_be_enabled(tenants: Tenants) -> None:
    added, other = tenants.json("add", "Lab Uno"), tenants.json("add", "Lab Dos")

    states = [tenants.json("show", added["id"])]
    states.append(tenants.json("disable", added["id"]))
    states.append(tenants.json("enable", added["id"]))

    assert [state["disabled"] for state in states] == [False, True, False]
    assert tenants.json("show", other["id"])["disabled"] is False


@pytest.mark.parametrize("words", [("show",), ("disable",), ("enable",), ("rename", "x")])
def test_an_unknown_tenant_is_refused(tenants: Tenants, words: tuple[str, ...]) -> None:
    tenants.json("add", "Lab Uno")

    assert tenants.run(words[0], "unknown", *words[1:]).exit_code == 1


def test_the_first_command_on_a_store_names_the_key_that_it_has_created(tenants: Tenants) -> None:
    first, second = (tenants.run("add", name).stdout for name in ("Lab Uno", "Lab Dos"))

    assert "/fhirpub.webhook-keys, the key of the secrets in the store: keep a copy." in first
    assert "keep a copy" not in second
