"""Tenants, clients and keys on the command line: the output, and the resulting state."""

from __future__ import annotations

import json
import uuid
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.unit.auth.assertions.signing import key_set, pair

SCOPES = ["--scope", "system/DiagnosticReport.rs", "--scope", "system/Patient.r"]


@pytest.fixture
def run_json(run: Any) -> Any:
    """Return a function that runs a command with ``--json`` and parses its output."""

    def run_json(*words: str) -> Any:
        done = run(*words, "--json")
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return json.loads(done.stdout)

    return run_json


def test_a_tenant_from_beginning_to_end(run_json: Any) -> None:
    empty = run_json("tenant", "list")
    added = run_json("tenant", "add", " Lab Uno ")
    disabled = run_json("tenant", "disable", added["id"])
    (listed,) = run_json("tenant", "list")

    assert empty == []
    assert added == {"id": str(uuid.UUID(added["id"])), "name": "Lab Uno"}
    assert listed == disabled
    assert listed["disabled"] is True
    assert "salt" not in listed


def test_the_first_tenant_names_the_key_of_secrets_that_is_to_be_kept(run: Any) -> None:
    first, second = run("tenant", "add", "Lab Uno"), run("tenant", "add", "Lab Dos")

    made = "Created fhirpub-data/fhirpub.webhook-keys, the key of the secrets in the store"
    assert f"\n{made}: keep a copy.\n" in first.stdout
    assert "keep a copy" not in second.stdout


def test_a_client_from_beginning_to_end(run_json: Any) -> None:
    tenant = run_json("tenant", "add", "Lab Uno")["id"]
    added = run_json("client", "add", "--tenant", tenant, "--name", "ward", *SCOPES)
    rotated = run_json("client", "rotate", added["client_id"])
    disabled = run_json("client", "disable", added["client_id"])
    (listed,) = run_json("client", "list", "--tenant", tenant)

    assert added["tenant"] == tenant
    assert added["scopes"] == SCOPES[1::2]
    assert added["environment"] == "sandbox"
    assert rotated["client_id"] == added["client_id"]
    assert rotated["client_secret"] != added["client_secret"]
    assert listed == {**disabled, "last_used": None}
    assert listed["disabled"] is True
    assert "client_secret" not in listed
    assert run_json("client", "list", "--tenant", run_json("tenant", "add", "Lab Dos")["id"]) == []


def test_a_grace_that_no_store_can_keep_is_wrong_usage(run: Any, run_json: Any) -> None:
    tenant = run_json("tenant", "add", "Lab Uno")["id"]
    client = run_json("client", "add", "--tenant", tenant)["client_id"]

    refused = run("client", "rotate", client, "--grace-seconds", str(10**20))

    assert refused.returncode == 2
    assert "--grace-seconds" in refused.stderr


def test_a_secret_has_an_end_if_the_command_or_the_settings_name_one(
    run_json: Any, tmp_path: Path
) -> None:
    tenant = run_json("tenant", "add", "Lab Uno")["id"]
    (tmp_path / "fhirpub.toml").write_text("[auth]\nsecret_days = 90\n")
    by_settings = run_json("client", "add", "--tenant", tenant)
    by_command = run_json("client", "rotate", by_settings["client_id"], "--valid-days", "400")
    without = run_json("client", "rotate", by_settings["client_id"], "--valid-days", "0")

    first, second = (
        date.fromisoformat(one["valid_until"][:10]) for one in (by_settings, by_command)
    )
    assert (second - first).days in (310, 311)  # midnight may pass in between
    assert without["valid_until"] is None


def test_the_scopes_of_a_client_are_replaced(run_json: Any) -> None:
    tenant = run_json("tenant", "add", "Lab Uno")["id"]
    added = run_json("client", "add", "--tenant", tenant, *SCOPES)

    changed = run_json("client", "scopes", added["client_id"], "--scope", "system/*.r")

    assert changed["scopes"] == ["system/*.r"]
    assert run_json("client", "list") == [{**changed, "last_used": None}]


def test_scopes_may_be_separated_by_spaces_as_in_oauth(run_json: Any) -> None:
    tenant = run_json("tenant", "add", "Lab Uno")["id"]

    added = run_json("client", "add", "--tenant", tenant, "--scope", " ".join(SCOPES[1::2]))

    assert added["scopes"] == SCOPES[1::2]


def test_the_networks_of_a_client_are_set_and_replaced(run_json: Any) -> None:
    tenant = run_json("tenant", "add", "Lab Uno")["id"]
    networks = ["--network", "192.0.2.0/24,2001:DB8::/32", "--network", "::ffff:10.1.2.3"]
    added = run_json("client", "add", "--tenant", tenant, "--name", "ward", *networks)
    edited = run_json("client", "edit", added["client_id"], "--network", "198.51.100.7")
    renamed = run_json("client", "edit", added["client_id"], "--name", "Ward 2")
    freed = run_json("client", "edit", added["client_id"], "--any-network")

    assert added["networks"] == ["192.0.2.0/24", "2001:db8::/32", "10.1.2.3/32"]
    assert edited["networks"] == ["198.51.100.7/32"]
    assert renamed == {**edited, "name": "Ward 2"}
    assert freed == {**renamed, "networks": []}


def test_a_client_with_keys_gets_no_secret_and_shows_its_keys(
    run_json: Any, tmp_path: Path
) -> None:
    tenant = run_json("tenant", "add", "Lab Uno")["id"]
    file = tmp_path / "public.jwks.json"
    file.write_bytes(key_set(pair("ES384"), pair("RS384", "k2")))
    added = run_json("client", "add", "--tenant", tenant, "--jwks", str(file))
    edited = run_json("client", "edit", added["client_id"], "--jwks", "https://lab.example/JWKS")

    assert added["keys"] == ["k1", "k2"]
    assert "client_secret" not in added
    assert edited["keys"] == "https://lab.example/JWKS"


def test_a_client_with_a_secret_gets_keys_and_keeps_it_for_the_grace(
    run_json: Any, tmp_path: Path
) -> None:
    (tmp_path / "fhirpub.toml").write_text("[auth]\nsecret_grace_seconds = 3600\n")
    tenant = run_json("tenant", "add", "Lab Uno")["id"]
    file = tmp_path / "public.jwks.json"
    file.write_bytes(key_set(pair("ES384")))
    added = run_json("client", "add", "--tenant", tenant)
    edited = run_json("client", "edit", added["client_id"], "--jwks", str(file))

    assert (added["keys"], added["valid_until"], edited["keys"]) == (None, None, ["k1"])
    assert edited["valid_until"] is not None


@pytest.mark.parametrize(
    ("jwks", "status", "said"),
    [
        ("missing.json", 2, "missing.json: No such file or directory"),
        ("http://lab.example.org/jwks.json", 1, "must begin with https://"),
        ("https://10.1.2.3/jwks.json", 1, "to which nothing is sent"),
        ("private.json", 1, "has members of a private key"),
        ("weak.json", 1, "must have 2048 to 8192 bits"),
    ],
)
def test_keys_that_cannot_be_used_are_refused(
    run: Any, run_json: Any, tmp_path: Path, jwks: str, status: int, said: str
) -> None:
    tenant = run_json("tenant", "add", "Lab Uno")["id"]
    private = pair("ES384").private.as_dict(private=True)
    weak = pair("RS384").public(n="AQAB" * 64)
    for name, member in (("private.json", private), ("weak.json", weak)):
        (tmp_path / name).write_text(json.dumps({"keys": [member]}))
    place = jwks if "://" in jwks else str(tmp_path / jwks)

    done = run("client", "add", "--tenant", tenant, "--jwks", place)

    assert done.returncode == status
    assert said in done.stderr
    assert private["d"] not in done.stderr
    assert run_json("client", "list") == []


def test_all_that_is_wrong_with_scopes_and_networks_is_reported_at_once(
    run: Any, run_json: Any
) -> None:
    tenant = run_json("tenant", "add", "Lab Uno")["id"]
    wrong = ["--scope", 'qu"ote', "--network", "10.1.2.3/8", "--network", "x"]

    done = run("client", "add", "--tenant", tenant, *wrong)

    assert done.returncode == 1
    assert [name in done.stderr for name in ("'qu\"ote'", "10.1.2.3/8", "'x'")] == [True] * 3
    assert run_json("client", "list") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to change"),
        (["--any-network", "--network", "10.0.0.0/8"], "exclude each other"),
        (["--name", "a\nb"], "must be one line"),
    ],
)
def test_an_edit_that_means_nothing_or_two_things_is_wrong_usage(
    run: Any, words: list[str], said: str
) -> None:
    done = run("client", "edit", "x", *words)

    assert done.returncode == 2
    assert said in done.stderr


def test_a_scope_that_gives_nothing_is_warned_of(run: Any, run_json: Any) -> None:
    tenant = run_json("tenant", "add", "Lab Uno")["id"]
    scopes = ("system/DiagnosticReport.cruds", "webhooks.read", "system/DiagnosticReport.reed")

    done = run("client", "add", "--tenant", tenant, *(f"--scope={scope}" for scope in scopes))

    assert done.returncode == 0
    assert [line.split()[3] for line in done.stderr.splitlines()] == [scopes[2]]


def test_keys_are_rotated_without_being_shown(run_json: Any) -> None:
    first = run_json("keys", "rotate")
    second = run_json("keys", "rotate")
    listed = run_json("keys", "list")

    assert [item["kid"] for item in listed][-2:] == [first["kid"], second["kid"]]
    assert listed[-2]["retired"] is not None
    assert listed[-1]["retired"] is None
    assert "private" not in json.dumps(listed)


def test_the_text_says_what_to_do_next(run: Any) -> None:
    assert "fhirpub tenant add" in run("tenant", "list").stdout
    assert "fhirpub client add" in run("client", "list").stdout

    added = run("tenant", "add", "Lab Uno").stdout

    assert "fhirpub client add --tenant" in added
    assert "Lab Uno" in run("tenant", "list").stdout


def test_the_text_says_what_becomes_of_the_old_secret(run: Any, run_json: Any) -> None:
    tenant = run_json("tenant", "add", "Lab Uno")["id"]
    client = run_json("client", "add", "--tenant", tenant)["client_id"]

    leaked = run("client", "rotate", client, "--grace-seconds", "0").stdout
    run_json("client", "disable", client)
    disabled = run("client", "rotate", client).stdout

    assert "The old secret no longer works." in leaked
    assert "The client is disabled: none of its secrets works" in disabled


def test_a_secret_is_shown_once(run: Any, run_json: Any) -> None:
    tenant = run_json("tenant", "add", "Lab Uno")["id"]

    shown = run("client", "add", "--tenant", tenant).stdout

    assert "client secret" in shown
    assert "shown only once" in shown
    assert "secret" not in run("client", "list").stdout
