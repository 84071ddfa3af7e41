"""``fhirpub client``: what it asks for, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fhirpub.administration import clients, persons
from fhirpub.auth.assertions.key_set import MAX_BYTES
from fhirpub.cli.client import client
from tests.unit.cli.bureau import Bureau

SCOPE = "system/DiagnosticReport.rs"
ADDED = {"client_id": "c-1", "client_secret": "s-1", "keys": []}
SHOWN_ONCE = "The secret is shown only once: store it in a safe place."
SECRETS_STAY = "Its secrets stay as they are: `fhirpub client rotate` creates a new one."
ADD = ("add", "--tenant", "t-1")


def test_a_client_is_added_to_the_tenant_that_is_named(bureau: Bureau) -> None:
    bureau.answer(clients.ADD, ADDED)

    shown = bureau.json(client, *ADD, "--name", "ward", "--scope", SCOPE, "--valid-days", "3")

    assert shown == ADDED
    assert bureau.only() == (
        "client add",
        {
            "tenant": "t-1",
            "name": "ward",
            "scopes": [SCOPE],
            "networks": [],
            "valid_days": 3,
        },
    )


def test_days_that_are_not_given_are_left_to_the_service(bureau: Bureau) -> None:
    bureau.answer(clients.ADD, ADDED)

    bureau.json(client, *ADD)

    assert "valid_days" not in bureau.only()[1]


def test_scopes_and_networks_are_split_where_lists_of_them_are(bureau: Bureau) -> None:
    bureau.answer(clients.ADD, ADDED)

    bureau.json(
        client,
        *(*ADD, "--scope", f"{SCOPE} webhooks.read", "--scope", "webhooks.write"),
        *("--network", "10.0.0.0/8,::1 192.0.2.1", "--network", "192.0.2.2"),
    )

    arguments = bureau.only()[1]
    assert arguments["scopes"] == [SCOPE, "webhooks.read", "webhooks.write"]
    assert arguments["networks"] == ["10.0.0.0/8", "::1", "192.0.2.1", "192.0.2.2"]


@pytest.mark.parametrize(("option", "name"), [("--scope", "scopes"), ("--network", "networks")])
def test_a_blank_is_left_for_the_service_to_refuse(bureau: Bureau, option: str, name: str) -> None:
    bureau.answer(clients.ADD, ADDED)

    bureau.json(client, *ADD, option, " ")

    assert bureau.only()[1][name] == [" "]


def test_a_client_with_a_key_of_its_own_is_put(bureau: Bureau) -> None:
    bureau.answer(clients.PUT, ADDED)

    bureau.json(client, *ADD, "--key", "ward")

    command, arguments = bureau.only()
    assert (command, arguments["tenant"], arguments["key"]) == ("client add --key", "t-1", "ward")


@pytest.mark.parametrize(
    ("words", "answer", "heading", "advice"),
    [
        ((), ADDED, "Client added.", SHOWN_ONCE),
        (("--key", "k"), ADDED, "Client added.", SHOWN_ONCE),
        ((), {"client_id": "c-1", "keys": ["x"]}, "Client added.", ""),
        (("--key", "k"), {"client_id": "c-1", "keys": ["x"]}, "Client saved.", ""),
        (("--key", "k"), {"client_id": "c-1", "keys": []}, "Client saved.", SECRETS_STAY),
    ],
)
def test_what_is_printed_depends_on_whether_there_is_a_new_secret(
    bureau: Bureau, words: tuple[str, ...], answer: Any, heading: str, advice: str
) -> None:
    operation = clients.PUT if words else clients.ADD
    bureau.answer(operation, answer)

    lines = bureau.run(client, *ADD, *words).stdout.splitlines()

    assert lines[0] == heading
    assert lines[1 + len(answer) :] == ([advice] if advice else [])


def test_a_scope_that_allows_nothing_is_warned_of(bureau: Bureau) -> None:
    bureau.answer(clients.ADD, ADDED)

    result = bureau.run(client, *ADD, "--scope", f"{SCOPE} system/Nothing.x")

    assert result.stderr == "Warning: the scope system/Nothing.x allows nothing here.\n"


def test_keys_are_read_from_a_file(bureau: Bureau, tmp_path: Path) -> None:
    bureau.answer(clients.ADD, ADDED)
    file = tmp_path / "keys.json"
    file.write_text('{"keys": []}')

    bureau.json(client, *ADD, "--jwks", str(file))

    arguments = bureau.only()[1]
    assert arguments["jwks"] == {"keys": []}
    assert "jwks_url" not in arguments


def test_keys_are_left_where_a_client_publishes_them(bureau: Bureau) -> None:
    bureau.answer(clients.ADD, ADDED)

    bureau.json(client, *ADD, "--jwks", "https://a.example/keys")

    assert bureau.only()[1]["jwks_url"] == "https://a.example/keys"


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file or directory"), (b"{", ""), (b"[1]x", "")]
)
def test_a_file_without_keys_is_refused_by_its_name(
    bureau: Bureau, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "keys.json"
    if content is not None:
        file.write_bytes(content)

    result = bureau.run(client, *ADD, "--jwks", str(file))

    assert result.exit_code == 2
    assert f"Invalid value for --jwks: {file}: {reason}" in result.stderr
    assert bureau.asked == []


def keys_of(size: int, folder: Path) -> Path:
    """Write a set without keys, padded by blanks, and return its file."""
    file = folder / "keys.json"
    file.write_bytes(b'{"keys": []'.ljust(size - 1) + b"}")
    return file


def test_keys_of_more_bytes_than_a_set_may_have_are_not_read(
    bureau: Bureau, tmp_path: Path
) -> None:
    result = bureau.run(client, *ADD, "--jwks", str(keys_of(MAX_BYTES + 2, tmp_path)))

    assert result.exit_code == 2
    assert bureau.asked == []


@pytest.mark.parametrize("size", [MAX_BYTES, MAX_BYTES + 1])
def test_keys_of_one_byte_more_than_a_set_may_have_are_left_to_the_service(
    bureau: Bureau, tmp_path: Path, size: int
) -> None:
    bureau.answer(clients.ADD, ADDED)

    bureau.json(client, *ADD, "--jwks", str(keys_of(size, tmp_path)))

    assert bureau.only()[1]["jwks"] == {"keys": []}


def test_a_person_is_invited_by_the_link_that_is_printed(bureau: Bureau) -> None:
    bureau.answer(persons.ADD, {"client_id": "c-1", "url": "https://a.example/x"})
    words = ("add-person", "--tenant", "t-1", "--name", "Ana Silva", "--scope", SCOPE)

    result = bureau.run(client, *words, "--network", "::1")

    assert bureau.only() == (
        persons.ADD.command,
        {"tenant": "t-1", "name": "Ana Silva", "scopes": [SCOPE], "networks": ["::1"]},
    )
    assert result.stdout.splitlines()[0] == "Person added."
    assert result.stdout.splitlines()[-1] == (
        "The link is shown only once and works once: send it to that person only."
    )


def test_a_person_who_signs_in_elsewhere_may_be_invited_later(bureau: Bureau) -> None:
    bureau.answer(persons.ADD, {"client_id": "c-1"})

    result = bureau.run(client, "add-person", "--tenant", "t-1", "--name", "Ana", "--scope", "x/y")

    assert result.stdout.splitlines()[-1] == (
        "The person signs in at the provider of [console] oidc_issuer. For a passkey as well: "
        "fhirpub client invite c-1"
    )
    assert "the scope x/y allows nothing here" in result.stderr


def test_a_person_is_invited_again(bureau: Bureau) -> None:
    bureau.answer(persons.INVITE, {"url": "https://a.example/x"})

    lines = bureau.run(client, "invite", "c-1").stdout.splitlines()

    assert bureau.only() == (persons.INVITE.command, {"client": "c-1"})
    assert (lines[0], lines[-1][:28]) == ("Person invited.", "The link is shown only once ")


def test_a_passkey_is_removed_from_the_client_that_is_named(bureau: Bureau) -> None:
    bureau.answer(persons.REMOVE_PASSKEY, {"client_id": "c-1"})

    result = bureau.run(client, "remove-passkey", "c-1", "k-1", "--yes")

    assert bureau.only() == (persons.REMOVE_PASSKEY.command, {"client": "c-1", "kid": "k-1"})
    assert result.stdout.startswith("Passkey removed.\n")


@pytest.mark.parametrize(
    ("words", "arguments"), [((), {}), (("--tenant", "t-1"), {"tenant": "t-1"})]
)
def test_clients_of_all_tenants_or_of_one_are_listed(
    bureau: Bureau, words: tuple[str, ...], arguments: dict[str, str]
) -> None:
    bureau.answer(clients.LIST, [{"client_id": "c-1"}])

    assert bureau.json(client, "list", *words) == [{"client_id": "c-1"}]
    assert bureau.only() == ("client list", arguments)


def test_a_list_of_no_clients_names_how_to_add_one(bureau: Bureau) -> None:
    bureau.answer(clients.LIST, [])

    assert bureau.run(client, "list").stdout == (
        "No clients yet: fhirpub client add --tenant ID --scope SCOPE\n"
    )


@pytest.mark.parametrize(
    ("words", "operation", "heading"),
    [
        (("show", "c-1"), clients.SHOW, "Client."),
        (("disable", "c-1", "--yes"), clients.DISABLE, "Client disabled."),
    ],
)
def test_a_client_is_named_and_shown(
    bureau: Bureau, words: tuple[str, ...], operation: Any, heading: str
) -> None:
    bureau.answer(operation, {"client_id": "c-1"})

    result = bureau.run(client, *words)

    assert result.stdout == f"{heading}\n  client id  c-1\n"
    assert bureau.only() == (operation.command, {"client": "c-1"})


@pytest.mark.parametrize(
    ("grace", "is_disabled", "then"),
    [
        (60, False, [SHOWN_ONCE, "The old secret works for another 60 seconds."]),
        (0, False, [SHOWN_ONCE, "The old secret no longer works."]),
        (60, True, ["The client is disabled: none of its secrets works, not even the new one."]),
    ],
)
def test_a_rotation_prints_what_becomes_of_the_old_secret(
    bureau: Bureau, grace: int, *, is_disabled: bool, then: list[str]
) -> None:
    bureau.answer(clients.ROTATE, {**ADDED, "grace_seconds": grace, "disabled": is_disabled})

    lines = bureau.run(client, "rotate", "c-1").stdout.splitlines()

    assert lines[0] == "Client rotated."
    assert lines[1 + len(ADDED) :] == then
    assert bureau.only() == ("client rotate", {"client": "c-1"})


def test_a_rotation_may_have_a_grace_and_days_of_its_own(bureau: Bureau) -> None:
    bureau.answer(clients.ROTATE, {**ADDED, "grace_seconds": 0, "disabled": False})

    shown = bureau.json(client, "rotate", "c-1", "--grace-seconds", "0", "--valid-days", "0")

    assert shown == ADDED
    assert bureau.only()[1] == {"client": "c-1", "grace_seconds": 0, "valid_days": 0}


@pytest.mark.parametrize(
    ("option", "number"),
    [("--grace-seconds", "-1"), ("--valid-days", "-1"), ("--valid-days", "36501")],
)
def test_a_rotation_refuses_times_that_no_secret_has(
    bureau: Bureau, option: str, number: str
) -> None:
    assert bureau.run(client, "rotate", "c-1", option, number).exit_code == 2
    assert bureau.asked == []


def test_scopes_replace_those_before(bureau: Bureau) -> None:
    bureau.answer(clients.SCOPES, {"client_id": "c-1"})

    result = bureau.run(client, "scopes", "c-1", "--scope", f"{SCOPE} x/y")

    assert result.stdout.startswith("Scopes set.\n")
    assert "the scope x/y allows nothing here" in result.stderr
    assert bureau.only()[1] == {"client": "c-1", "scopes": [SCOPE, "x/y"]}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (("--name", ""), {"name": ""}),
        (("--network", "::1"), {"networks": ["::1"]}),
        (("--any-network",), {"networks": []}),
        (("--jwks", "https://a.example"), {"jwks_url": "https://a.example"}),
    ],
)
def test_only_what_is_given_is_changed(
    bureau: Bureau, words: tuple[str, ...], arguments: dict[str, Any]
) -> None:
    bureau.answer(clients.EDIT, {"client_id": "c-1"})

    result = bureau.run(client, "edit", "c-1", *words)

    assert result.stdout.startswith("Client changed.\n")
    assert bureau.only() == ("client edit", {"client": "c-1", **arguments})


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ("--network", "::1", "--any-network"),
            "--network and --any-network exclude each other",
        ),
        ((), "nothing to change: give --name, --network, --any-network or --jwks"),
    ],
)
def test_what_changes_nothing_or_contradicts_is_refused(
    bureau: Bureau, words: tuple[str, ...], problem: str
) -> None:
    result = bureau.run(client, "edit", "c-1", *words)

    assert (result.exit_code, bureau.asked) == (2, [])
    assert problem in result.stderr


def test_json_has_the_secret_and_no_advice(bureau: Bureau) -> None:
    bureau.answer(clients.ADD, ADDED)

    assert bureau.run(client, *ADD, "--json").stdout == json.dumps(ADDED) + "\n"
