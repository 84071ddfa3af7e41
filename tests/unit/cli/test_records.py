"""Tenants, clients and keys, from a shell: what is printed, and what holds afterwards."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

SCOPES = ["--scope", "system/DiagnosticReport.rs", "--scope", "system/Patient.r"]


@pytest.fixture
def told(run: Any) -> Any:
    """Return a function that runs a command with ``--json`` and reads its answer."""

    def told(*words: str) -> Any:
        done = run(*words, "--json")
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return json.loads(done.stdout)

    return told


def test_a_tenant_from_beginning_to_end(told: Any) -> None:
    empty = told("tenant", "list")
    added = told("tenant", "add", " Lab Uno ")
    disabled = told("tenant", "disable", added["id"])
    (listed,) = told("tenant", "list")

    assert empty == []
    assert added == {"id": str(uuid.UUID(added["id"])), "name": "Lab Uno"}
    assert listed == disabled
    assert listed["disabled"] is True
    assert "salt" not in listed


def test_a_client_from_beginning_to_end(told: Any) -> None:
    tenant = told("tenant", "add", "Lab Uno")["id"]
    added = told("client", "add", "--tenant", tenant, "--name", "ward", *SCOPES)
    rotated = told("client", "rotate", added["client_id"])
    disabled = told("client", "disable", added["client_id"])
    (listed,) = told("client", "list", "--tenant", tenant)

    assert added["tenant"] == tenant
    assert added["scopes"] == SCOPES[1::2]
    assert added["environment"] == "sandbox"
    assert rotated["client_id"] == added["client_id"]
    assert rotated["client_secret"] != added["client_secret"]
    assert listed == disabled
    assert listed["disabled"] is True
    assert "client_secret" not in listed
    assert told("client", "list", "--tenant", told("tenant", "add", "Lab Dos")["id"]) == []


def test_a_grace_that_no_store_can_keep_is_wrong_usage(run: Any, told: Any) -> None:
    tenant = told("tenant", "add", "Lab Uno")["id"]
    client = told("client", "add", "--tenant", tenant)["client_id"]

    refused = run("client", "rotate", client, "--grace-seconds", str(10**20))

    assert refused.returncode == 2
    assert "--grace-seconds" in refused.stderr


def test_the_scopes_of_a_client_are_replaced(told: Any) -> None:
    tenant = told("tenant", "add", "Lab Uno")["id"]
    added = told("client", "add", "--tenant", tenant, *SCOPES)

    changed = told("client", "scopes", added["client_id"], "--scope", "system/*.r")

    assert changed["scopes"] == ["system/*.r"]
    assert told("client", "list") == [changed]


def test_a_scope_that_gives_nothing_is_warned_of(run: Any, told: Any) -> None:
    tenant = told("tenant", "add", "Lab Uno")["id"]
    scopes = ("system/DiagnosticReport.cruds", "webhooks.read", "system/DiagnosticReport.reed")

    done = run("client", "add", "--tenant", tenant, *(f"--scope={scope}" for scope in scopes))

    assert done.returncode == 0
    assert [line.split()[3] for line in done.stderr.splitlines()] == [scopes[2]]


def test_keys_are_rotated_without_being_shown(told: Any) -> None:
    first = told("keys", "rotate")
    second = told("keys", "rotate")
    listed = told("keys", "list")

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


def test_the_text_says_what_becomes_of_the_old_secret(run: Any, told: Any) -> None:
    tenant = told("tenant", "add", "Lab Uno")["id"]
    client = told("client", "add", "--tenant", tenant)["client_id"]

    leaked = run("client", "rotate", client, "--grace-seconds", "0").stdout
    told("client", "disable", client)
    disabled = run("client", "rotate", client).stdout

    assert "The old secret no longer works." in leaked
    assert "The client is disabled: none of its secrets works" in disabled


def test_a_secret_is_shown_once(run: Any, told: Any) -> None:
    tenant = told("tenant", "add", "Lab Uno")["id"]

    shown = run("client", "add", "--tenant", tenant).stdout

    assert "client secret" in shown
    assert "shown only once" in shown
    assert "secret" not in run("client", "list").stdout
