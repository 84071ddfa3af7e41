"""The audit trail on the command line, and what commands leave in it."""

from __future__ import annotations

import getpass
import json
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

URL = "https://93.184.216.34/hook"

Records = list[dict[str, Any]]


def listed(run: Any, *words: str) -> Records:
    """Return what `fhirpub audit list` prints, without the records of reading the trail."""
    found: Records = json.loads(run("audit", "list", *words, "--json").stdout)
    return [record for record in found if not record["action"].startswith("audit.")]


@pytest.fixture
def tenant(run: Any) -> str:
    added: dict[str, Any] = json.loads(run("tenant", "add", "Lab Uno", "--json").stdout)
    return str(added["id"])


@pytest.fixture
def client(run: Any, tenant: str) -> str:
    added: dict[str, Any] = json.loads(run("client", "add", "--tenant", tenant, "--json").stdout)
    return str(added["client_id"])


def test_a_command_leaves_a_record_before_its_change_and_one_with_the_outcome(
    run: Any, tenant: str, client: str
) -> None:
    after, before = (record for record in listed(run) if record["action"] == "client.add")

    assert (before["status"], after["status"]) == (102, 200)
    assert after["what"] == [f"Client/{client}"]
    assert {record["tenant"] for record in (before, after)} == {tenant}
    assert after["user"] == getpass.getuser()
    assert after["host"] == socket.gethostname()


@pytest.mark.parametrize(
    ("words", "action"),
    [
        (("client", "rotate", "CLIENT"), "client.rotate"),
        (("client", "scopes", "CLIENT", "--scope", "webhooks.read"), "client.scopes"),
        (("client", "edit", "CLIENT", "--name", "X"), "client.edit"),
        (("client", "disable", "CLIENT"), "client.disable"),
        (("quota", "set", "--client", "CLIENT", "--requests-per-minute", "9"), "quota.set"),
        (("token", "revoke", "--client", "CLIENT", "--jti", "abcdefghijklmnop"), "token.revoke"),
        (("tenant", "disable", "TENANT"), "tenant.disable"),
        (("endpoint", "add", "--tenant", "TENANT", "--url", URL), "endpoint.create"),
        (("keys", "rotate"), "key.rotate"),
        (("endpoint", "reseal"), "endpoint.reseal"),
    ],
)
def test_each_command_that_changes_something_leaves_its_records(
    run: Any, tenant: str, client: str, words: tuple[str, ...], action: str
) -> None:
    names = {"CLIENT": client, "TENANT": tenant}
    done = run(*(names.get(word, word) for word in words))
    assert done.returncode == 0, done.stderr

    statuses = [record["status"] for record in listed(run) if record["action"] == action]

    assert sorted(statuses) == [102, 200]


def test_a_command_that_is_refused_leaves_the_refusal(run: Any, tenant: str) -> None:
    assert run("client", "disable", "another").returncode == 1

    statuses = [one["status"] for one in listed(run) if one["action"] == "client.disable"]

    assert statuses == [400, 102]


def test_no_command_records_a_secret(run: Any, tenant: str) -> None:
    added = json.loads(run("client", "add", "--tenant", tenant, "--json").stdout)

    assert added["client_secret"] not in json.dumps(listed(run))


def test_records_are_filtered(run: Any, tenant: str, client: str) -> None:
    entity = listed(run, "--entity", f"Client/{client}")
    of_user = listed(run, "--agent", getpass.getuser(), "--action", "tenant.add")

    assert [record["action"] for record in entity] == ["client.add"]
    assert {record["action"] for record in of_user} == {"tenant.add"}
    assert listed(run, "--agent", "another") == []
    assert listed(run, "--until", "1h") == []
    assert listed(run, "--since", "1h") != []
    assert {record["tenant"] for record in listed(run, "--tenant", "service")} == {"service"}


def test_a_table_shows_who_did_what(run: Any, tenant: str) -> None:
    shown = run("audit", "list", "--tenant", tenant).stdout

    assert "tenant.add" in shown
    assert getpass.getuser() in shown
    assert f"Tenant/{tenant}" in shown


def test_an_export_has_each_record_with_its_hash(run: Any, tenant: str, tmp_path: Path) -> None:
    file = tmp_path / "audit.ndjson"
    done = run("audit", "export", "--tenant", tenant, "--out", str(file))

    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert done.returncode == 0
    assert [line["tenant"] for line in lines] == [tenant] * len(lines)
    assert all(len(bytes.fromhex(line["hash"])) == 32 for line in lines)
    assert json.loads(lines[0]["record"])["action"] == "tenant.add"


def test_an_export_overwrites_nothing(run: Any, tenant: str, tmp_path: Path) -> None:
    file = tmp_path / "there"
    file.write_text("mine")

    done = run("audit", "export", "--out", str(file))

    assert done.returncode == 1
    assert "cannot be created" in done.stderr
    assert file.read_text() == "mine"


def test_a_chain_that_was_not_touched_is_right(run: Any, tenant: str) -> None:
    done = run("audit", "verify", "--json")

    assert done.returncode == 0
    assert {verdict["verdict"] for verdict in json.loads(done.stdout)} == {"right"}


def test_a_changed_record_is_named_and_the_status_is_1(
    run: Any, tenant: str, tmp_path: Path
) -> None:
    run("audit", "verify")
    with closing(sqlite3.connect(tmp_path / "fhirpub-data" / "fhirpub.db")) as store:
        store.execute(
            "UPDATE audit_block SET records = CAST(replace(CAST(records AS TEXT), ?, ?) AS BLOB) "
            "WHERE tenant = ? AND number = 1",
            ("tenant.add", "tenant.axe", tenant),
        )
        store.commit()

    done = run("audit", "verify", "--json")

    assert done.returncode == 1
    (wrong,) = [one for one in json.loads(done.stdout) if one["verdict"] != "right"]
    assert wrong["tenant"] == tenant
    assert wrong["verdict"].startswith("block 1, record 0: ")


def test_checkpoints_outside_are_read_from_the_file_that_the_settings_name(
    run: Any, tmp_path: Path
) -> None:
    file = tmp_path / "checkpoints.ndjson"
    (tmp_path / "fhirpub.toml").write_text(f'[audit]\ncheckpoints_file = "{file}"\n')
    run("tenant", "add", "Lab Uno")
    run("audit", "verify")

    done = run("audit", "verify", "--checkpoints", str(file))

    assert file.read_text().count("\n") > 0
    assert done.returncode == 0


def test_a_file_without_checkpoints_is_refused(run: Any, tenant: str, tmp_path: Path) -> None:
    file = tmp_path / "other"
    file.write_text("{}\n")

    done = run("audit", "verify", "--checkpoints", str(file))

    assert done.returncode == 1
    assert "is not a file of checkpoints" in done.stderr


def test_nothing_is_recorded_if_the_settings_say_so(run: Any, tmp_path: Path) -> None:
    (tmp_path / "fhirpub.toml").write_text("[audit]\nenabled = false\n")
    run("tenant", "add", "Lab Uno")

    assert listed(run) == []
