"""Endpoints and deliveries on the command line: the output, and the resulting state."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from fhirpub.app.administration import open_administration
from fhirpub.app.stores import open_store, open_with
from fhirpub.auth.tenants import add_tenant
from fhirpub.cli.check import check
from fhirpub.cli.tenant import tenant as tenant_commands
from fhirpub.cli.webhooks.deliveries import deliveries
from fhirpub.cli.webhooks.endpoint import endpoint
from fhirpub.config.loader import load
from fhirpub.config.settings import Config
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import (
    ConfigurationError,
    FhirpubError,
    InvalidContent,
    NoSuchRecord,
    SecretsUnavailable,
)
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.webhook_contract import AttemptResult, Delivery
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.webhooks import verify
from fhirpub.webhooks.transport.signing import new_secret, signed_headers
from tests.gate import gate
from tests.waiting import until

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
BODY = b'{"event_id":"evt_1","sequence":1}'

RunJson = Callable[..., Any]


@pytest.fixture(scope="module")
def receivers() -> Iterator[Receiver]:
    """One receiver for all tests."""
    with Receiver() as running:
        yield running


@pytest.fixture
def receiver(receivers: Receiver) -> Receiver:
    """The receiver, without the requests and replies of earlier tests."""
    receivers.received.clear()
    receivers.answer(Reply())
    return receivers


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration with a store of its own."""
    file = tmp_path / "fhirpub.toml"
    file.write_text(
        f"[storage]\nurl = 'sqlite:///{tmp_path}/fhirpub.db'\n"
        "[webhooks]\nallow_networks = ['127.0.0.1/32']\ntimeout_seconds = 5\n"
    )
    return file


@pytest.fixture
def config(file: Path) -> Config:
    """Its settings."""
    return load(file, environment={})


@pytest.fixture
def tenant(config: Config) -> str:
    """The id of a tenant."""

    async def added() -> str:
        async with open_store(config) as store:
            return (await add_tenant(store, "Lab", clock=now_ms)).id

    return asyncio.run(added())


@pytest.fixture
def ran(file: Path) -> Callable[..., Result]:
    """Return a function that runs a command in this process."""

    def ran(group: click.Group, *words: str, stdin: Any = None, **variables: str) -> Result:
        own = () if words[0] == "verify" else ("--config", str(file))
        return CliRunner().invoke(group, [*words, *own], input=stdin, env=variables)

    return ran


@pytest.fixture
def run_json(ran: Callable[..., Result]) -> RunJson:
    """Return a function that runs a command with ``--json`` and parses its output."""

    def run_json(group: click.Group, *words: str, **more: Any) -> Any:
        done = ran(group, *words, "--json", **more)
        if isinstance(done.exception, FhirpubError):
            raise done.exception
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return run_json


@pytest.fixture
def added(run_json: RunJson, tenant: str, receiver: Receiver) -> dict[str, Any]:
    """An endpoint with its secrets."""
    words = ("add", "--tenant", tenant, "--url", receiver.url)
    answer: dict[str, Any] = run_json(endpoint, *words)
    return answer


def sent(config: Config, endpoint_id: str, tenant: str) -> None:
    """Put three deliveries into the endpoint's queue, of which the second is given up."""

    async def put() -> None:
        async with open_store(config) as store:
            made = [
                Delivery(
                    endpoint=endpoint_id,
                    tenant=tenant,
                    sequence=number,
                    event_id=f"evt_{number}",
                    event_type="diagnostic_report.created",
                    resource="DiagnosticReport/1",
                    created=now_ms() - 3_600_000 * number,
                    body=BODY,
                )
                for number in (1, 2, 3)
            ]
            await store.append(made)
            (begun,) = await store.begin([made[1].key], now=now_ms(), until=now_ms() + 9999)
            last = replace(begun.attempts[-1], ended=now_ms(), status=500, answer=b"no\nway")
            await store.finish([AttemptResult(key=begun.key, attempt=last, state="dead")])

    asyncio.run(put())


# Endpoints


def test_an_endpoint_from_beginning_to_end(
    run_json: RunJson, added: dict[str, Any], receiver: Receiver, tenant: str
) -> None:
    assert list(added)[:3] == ["id", "signing_secret", "token"]
    assert added["state"] == "active"

    changed = run_json(
        endpoint, "set", added["id"], "--event", "*.created", "--ordering", "strict"
    )
    assert (changed["event_types"], changed["ordering"]) == (["*.created"], "strict")
    assert run_json(endpoint, "pause", added["id"])["state"] == "paused"
    assert run_json(endpoint, "disable", added["id"])["why"] == "operator"
    assert run_json(endpoint, "enable", added["id"])["state"] == "active"
    assert receiver.received[-1].json["event_type"] == "endpoint.test"
    shown = run_json(endpoint, "show", added["id"])
    assert run_json(endpoint, "list") == run_json(endpoint, "list", "--tenant", tenant) == [shown]
    assert "signing_secret" not in shown
    assert run_json(endpoint, "rm", added["id"])["state"] == "deleted"
    assert run_json(endpoint, "list") == []


def test_a_ping_is_signed_and_prints_its_outcome(
    ran: Callable[..., Result], run_json: RunJson, added: dict[str, Any], receiver: Receiver
) -> None:
    good = run_json(endpoint, "ping", added["id"])
    receiver.answer(Reply(status=500))
    bad = ran(endpoint, "ping", added["id"])

    (first, _second) = receiver.received
    stamp = float(first.headers["webhook-timestamp"])
    verify(first.headers, first.body, added["signing_secret"], now=stamp)
    assert (good["passed"], good["status"]) == (True, 204)
    assert bad.exit_code == 1
    assert "the answer was 500, not 2xx" in bad.stdout


def test_an_endpoint_that_repeats_the_challenge_is_verified(
    run_json: RunJson, ran: Callable[..., Result], added: dict[str, Any], receiver: Receiver
) -> None:
    receiver.answer(Reply(status=200, echo=True), Reply())

    assert run_json(endpoint, "verify-endpoint", added["id"])["passed"] is True
    bad = ran(endpoint, "verify-endpoint", added["id"])
    assert bad.exit_code == 1
    assert "the answer does not repeat the challenge" in bad.stdout


def test_a_ping_before_the_challenge_is_the_challenge(
    ran: Callable[..., Result],
    run_json: RunJson,
    config: Config,
    tenant: str,
    receiver: Receiver,
) -> None:
    async def unverified() -> str:
        async with open_administration(config) as open_:
            return (await (await open_.endpoints()).add(tenant, {"url": receiver.url})).endpoint.id

    endpoint_id = asyncio.run(unverified())
    refused = ran(endpoint, "ping", endpoint_id)
    receiver.answer(Reply(status=200, echo=True))
    passed = run_json(endpoint, "ping", endpoint_id)

    assert {request.json["event_type"] for request in receiver.received} == {
        "endpoint.verification"
    }
    assert refused.exit_code == 1
    assert "the challenge was sent instead of a test event" in refused.stdout
    assert "the answer does not repeat the challenge" in refused.stdout
    assert (passed["event_type"], passed["state"]) == ("endpoint.verification", "active")


def test_the_operator_is_shown_how_an_attempt_in_a_private_network_failed(
    ran: Callable[..., Result], added: dict[str, Any], receiver: Receiver
) -> None:
    receiver.answer(Reply(misbehaviour="reset"))

    for words in (("ping", added["id"]), ("verify-endpoint", added["id"])):
        done = ran(endpoint, *words, "--json")

        shown = json.loads(done.stdout)
        assert shown["reason"] == "E_RESET"
        assert shown["milliseconds"] < 5000
    ran(endpoint, "disable", added["id"])
    assert "(E_RESET)" in str(ran(endpoint, "enable", added["id"]).exception)


def test_an_endpoint_is_added_where_an_entry_is_for_its_tenant(
    ran: Callable[..., Result], run_json: RunJson, tenant: str, receiver: Receiver
) -> None:
    another = run_json(tenant_commands, "add", "Clinic")["id"]
    entry = f"127.0.0.1 port={receiver.port} tenant={another}"
    variables = {"FHIRPUB_WEBHOOKS__ALLOW_NETWORKS": entry}
    words = ("add", "--url", receiver.url, "--tenant")

    assert run_json(endpoint, *words, another, **variables)["state"] == "active"
    assert isinstance(ran(endpoint, *words, tenant, **variables).exception, InvalidContent)


def test_secrets_are_rotated(run_json: RunJson, added: dict[str, Any], receiver: Receiver) -> None:
    secret = run_json(endpoint, "rotate", added["id"], "--grace", "24h")["signing_secret"]
    token = run_json(endpoint, "rotate-token", added["id"])["token"]
    run_json(endpoint, "ping", added["id"])

    (ping,) = receiver.received
    stamp = float(ping.headers["webhook-timestamp"])
    for item in (secret, added["signing_secret"]):
        verify(ping.headers, ping.body, item, now=stamp)
    assert ping.headers["authorization"] == f"Bearer {token}"
    assert token != added["token"]


def test_a_secret_and_a_token_are_imported_from_the_environment(
    run_json: RunJson, tenant: str, receiver: Receiver
) -> None:
    brought = run_json(
        *(endpoint, "add", "--tenant", tenant, "--url", receiver.url),
        *("--import-secret", "--import-token"),
        FHIRPUB_SIGNING_SECRET=SECRET,
        FHIRPUB_ENDPOINT_TOKEN="mine",
    )

    assert (brought["signing_secret"], brought["token"]) == (SECRET, "mine")


def test_a_secret_is_imported_as_it_is_typed(
    run_json: RunJson, ran: Callable[..., Result], added: dict[str, Any]
) -> None:
    done = ran(endpoint, "rotate", added["id"], "--import-secret", "--json", stdin=f"{SECRET}\n")

    assert json.loads(done.stdout)["signing_secret"] == SECRET
    assert SECRET not in done.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["add", "--tenant", "{}", "--url", "http://10.0.0.1/"], InvalidContent),
        (["add", "--tenant", "{}", "--url", "{url}", "--event", "report.made"], InvalidContent),
        (["add", "--tenant", "no", "--url", "{url}"], NoSuchRecord),
        (["ping", "no"], NoSuchRecord),
        (["list", "--tenant", "no"], NoSuchRecord),
    ],
)
def test_what_cannot_be_is_refused(
    words: list[str],
    problem: type[Exception],
    run_json: RunJson,
    tenant: str,
    receiver: Receiver,
) -> None:
    with pytest.raises(problem):
        run_json(
            endpoint,
            *(word.replace("{url}", receiver.url).replace("{}", tenant) for word in words),
        )


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (endpoint, ["rotate", "x", "--grace", "soon"]),
        (endpoint, ["rotate", "x", "--grace", "8d"]),
        (deliveries, ["replay"]),
        (deliveries, ["replay", "--since", "yesterday"]),
        (deliveries, ["list", "--state", "lost"]),
    ],
)
def test_wrong_usage_is_reported_as_such(
    group: click.Group, words: list[str], ran: Callable[..., Result]
) -> None:
    assert ran(group, *words).exit_code == 2


def test_refusals_are_one_line_on_standard_error(run: Any) -> None:
    done = run("endpoint", "show", "none")

    assert done.returncode == 1
    assert "there is no endpoint none" in done.stderr
    assert "Traceback" not in done.stderr


# The key


def test_the_key_is_created_next_to_an_older_store_for_its_owner_alone(
    ran: Callable[..., Result], config: Config, receiver: Receiver, tmp_path: Path
) -> None:
    async def added_before_there_were_keys() -> str:
        async with open_with(config, SecretCipher()) as store:
            return (await add_tenant(store, "Lab", clock=now_ms)).id

    tenant = asyncio.run(added_before_there_were_keys())
    add = ("add", "--tenant", tenant, "--url", receiver.url, "--json")

    messages = [ran(endpoint, *add).stderr for _time in range(2)]

    kept = tmp_path / "fhirpub.webhook-keys"
    assert messages == [f"Created {kept}, the key of the secrets in the store: keep a copy.\n", ""]
    assert kept.stat().st_mode & 0o777 == 0o600


def test_the_command_that_adds_the_first_tenant_says_where_the_key_is(
    ran: Callable[..., Result], tmp_path: Path
) -> None:
    texts = [ran(tenant_commands, "add", "Lab").stdout for _time in range(2)]

    note = f"Created {tmp_path / 'fhirpub.webhook-keys'}, the key of the secrets in the store"
    assert [note in text for text in texts] == [True, False]


def test_a_lost_key_is_not_replaced_in_silence(
    run_json: RunJson, added: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "fhirpub.webhook-keys").unlink()

    with pytest.raises(SecretsUnavailable):
        run_json(endpoint, "ping", added["id"])
    assert not (tmp_path / "fhirpub.webhook-keys").exists()


def test_a_key_is_replaced_by_one_that_comes_first(
    run_json: RunJson, added: dict[str, Any], tmp_path: Path
) -> None:
    keys = tmp_path / "fhirpub.webhook-keys"
    old, new = keys.read_text(), base64.b64encode(bytes(32)).decode()
    keys.write_text(f"{new}\n{old}")

    first, second = (run_json(endpoint, "reseal")["resealed"] for _time in range(2))
    keys.write_text(new)

    assert (first, second) == (1, 0)
    assert run_json(endpoint, "ping", added["id"])["passed"] is True


@pytest.mark.parametrize(
    ("keys", "level", "text"),
    [
        (None, "error", "name the file that has it (beside the former store, or its copy)"),
        (base64.b64encode(bytes(32)).decode(), "error", "under a key that is not here"),
        ("", "ok", "the secrets of all endpoints (1) can be decrypted"),
    ],
)
def test_a_check_finds_what_is_wrong_with_the_key(
    keys: str | None,
    level: str,
    text: str,
    added: dict[str, Any],
    file: Path,
    tmp_path: Path,
) -> None:
    assert added
    kept = tmp_path / "fhirpub.webhook-keys"
    if keys is None:
        kept.unlink()
    elif keys:
        kept.write_text(keys)

    done = CliRunner().invoke(check, ["--config", str(file), "--json"])

    findings = [item for item in json.loads(done.stdout) if item["subject"] == "webhooks"]
    assert [finding["level"] for finding in findings] == [level]
    assert text in findings[0]["text"]


def test_a_check_warns_of_a_key_that_others_can_read(
    added: dict[str, Any], file: Path, tmp_path: Path
) -> None:
    assert added
    (tmp_path / "fhirpub.webhook-keys").chmod(0o644)

    done = CliRunner().invoke(check, ["--config", str(file)])

    assert "can be read by others: chmod o-rwx" in done.stdout
    assert done.exit_code == 0


# Deliveries


def test_deliveries_are_listed_with_what_became_of_them(
    run_json: RunJson,
    ran: Callable[..., Result],
    added: dict[str, Any],
    config: Config,
    tenant: str,
) -> None:
    sent(config, added["id"], tenant)

    listed = run_json(deliveries, "list", "--tenant", tenant)
    (dead,) = run_json(deliveries, "list", "--state", "dead", "--endpoint", added["id"])

    assert [item["sequence"] for item in listed] == [3, 2, 1]
    assert (dead["event_id"], dead["attempts"][0]["why"]) == (
        *("evt_2", "the answer was 500, not 2xx"),
    )
    with pytest.raises(NoSuchRecord):
        run_json(deliveries, "list", "--tenant", "another")
    assert "evt_2" in ran(deliveries, "list").stdout


def test_a_delivery_is_shown_with_its_attempts(
    run_json: RunJson,
    ran: Callable[..., Result],
    added: dict[str, Any],
    config: Config,
    tenant: str,
) -> None:
    sent(config, added["id"], tenant)

    (shown,) = run_json(deliveries, "show", "evt_2")
    text = ran(deliveries, "show", "evt_2").stdout

    assert (shown["endpoint"], shown["body"]) == (added["id"], BODY.decode())
    assert shown["attempts"][0]["answer"] == "no\nway"
    assert "no way" in text
    with pytest.raises(NoSuchRecord):
        run_json(deliveries, "show", "evt_9")


@pytest.mark.parametrize(
    ("words", "reopened"),
    [
        (["evt_2", "evt_3"], 1),
        (["--dead"], 1),
        (["--since", "150m"], 1),
        (["--since", "90m"], 0),
        (["--until", "2020-01-01T00:00:00Z"], 0),
    ],
)
def test_what_is_named_is_sent_again(
    words: list[str],
    reopened: int,
    run_json: RunJson,
    added: dict[str, Any],
    config: Config,
    tenant: str,
) -> None:
    sent(config, added["id"], tenant)

    assert run_json(deliveries, "replay", *words) == {"reopened": reopened}


@pytest.mark.parametrize(
    "words", [["replay", "evt_none"], ["replay", "--dead", "--tenant", "none"]]
)
def test_what_is_not_there_is_not_said_to_be_sent_again(
    words: list[str], run_json: RunJson, added: dict[str, Any], config: Config, tenant: str
) -> None:
    sent(config, added["id"], tenant)

    with pytest.raises(NoSuchRecord):
        run_json(deliveries, *words)


def test_where_nothing_is_meant_nothing_is_said_to_be_sent_again(
    ran: Callable[..., Result], added: dict[str, Any]
) -> None:
    assert added
    assert ran(deliveries, "replay", "--dead").stdout.startswith("Nothing to replay")


def test_what_a_paused_endpoint_gets_again_is_said_to_be_held(
    ran: Callable[..., Result], added: dict[str, Any], config: Config, tenant: str
) -> None:
    sent(config, added["id"], tenant)
    ran(endpoint, "pause", added["id"])

    done = ran(deliveries, "replay", "--dead")

    assert f"Held until the endpoint is active: {added['id']}, paused" in done.stdout


def test_what_is_held_has_no_next_attempt(
    run_json: RunJson,
    ran: Callable[..., Result],
    added: dict[str, Any],
    config: Config,
    tenant: str,
) -> None:
    sent(config, added["id"], tenant)
    ran(endpoint, "pause", added["id"])
    ran(deliveries, "replay", "--dead")

    held = run_json(deliveries, "list", "--state", "held")

    assert {item["next_attempt"] for item in held} == {None}


def test_a_disabled_endpoint_that_fails_is_reported_to_stay_so(
    ran: Callable[..., Result], added: dict[str, Any], receiver: Receiver
) -> None:
    ran(endpoint, "disable", added["id"])
    receiver.answer(Reply(status=500))

    refused = ran(endpoint, "enable", added["id"]).exception

    assert str(refused) == (
        "the endpoint did not take a test event (status 500): it stays disabled"
    )


def test_the_statistics_of_an_endpoint_are_shown(
    run_json: RunJson,
    ran: Callable[..., Result],
    added: dict[str, Any],
    config: Config,
    tenant: str,
) -> None:
    sent(config, added["id"], tenant)

    assert run_json(endpoint, "stats", added["id"])["deliveries"] == {"pending": 2, "dead": 1}
    assert "2 pending" in ran(endpoint, "stats", added["id"]).stdout


def test_nothing_more_is_sent_to_a_tenant_that_is_disabled(
    run_json: RunJson, added: dict[str, Any], config: Config, tenant: str
) -> None:
    sent(config, added["id"], tenant)

    run_json(tenant_commands, "disable", tenant)

    shown = run_json(endpoint, "show", added["id"])
    assert (shown["state"], shown["why"]) == ("disabled", "operator")
    assert {item["status"] for item in run_json(deliveries, "list")} == {"held", "dead"}


def test_an_endpoint_of_a_disabled_tenant_stays_disabled(
    run_json: RunJson, added: dict[str, Any], tenant: str
) -> None:
    run_json(tenant_commands, "disable", tenant)

    with pytest.raises(ConfigurationError, match="is disabled"):
        run_json(endpoint, "enable", added["id"])


def test_what_was_sent_to_a_removed_endpoint_is_cancelled(
    run_json: RunJson, added: dict[str, Any], config: Config, tenant: str
) -> None:
    sent(config, added["id"], tenant)
    run_json(endpoint, "rm", added["id"])

    states = {item["status"] for item in run_json(deliveries, "list")}
    assert states == {"cancelled", "dead"}
    assert run_json(deliveries, "replay", "--dead") == {"reopened": 0}


# Verifying by hand


def verified(
    ran: Callable[..., Result], folder: Path, headers: Any, body: bytes, **more: Any
) -> Any:
    lines = ["POST /webhook HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items())]
    (folder / "headers").write_text("\r\n".join(lines))
    done = ran(
        *(endpoint, "verify", "--headers", str(folder / "headers"), "--json"),
        *("--at", str(more.pop("at", 1_795_242_954))),
        stdin=body,
        FHIRPUB_SIGNING_SECRET=more.pop("secret", SECRET),
    )
    assert done.exit_code in (0, 1), done.output
    return json.loads(done.stdout)


HEADERS = signed_headers("evt_1", 1_795_242_954, BODY, secrets=[SECRET])


def test_a_delivery_that_verifies_is_reported_as_such(
    ran: Callable[..., Result], tmp_path: Path
) -> None:
    verdict = verified(ran, tmp_path, HEADERS, BODY, secret=f"{new_secret()} {SECRET}")

    assert (verdict["verified"], verdict["seconds_behind_clock"]) == (True, 0)


@pytest.mark.parametrize(
    ("body", "more", "reason"),
    [
        (BODY, {"at": 1_795_242_954 + 301}, "clock"),
        (BODY, {"secret": new_secret()}, "no-match"),
        (b'{"event_id": "evt_1", "sequence": 1}\n', {}, "rewritten-body"),
        (BODY + b"\n", {}, "rewritten-body"),
    ],
)
def test_the_reason_why_a_delivery_does_not_verify_is_shown(
    body: bytes, more: dict[str, Any], reason: str, ran: Callable[..., Result], tmp_path: Path
) -> None:
    assert verified(ran, tmp_path, HEADERS, body, **more)["reason"] == reason


def test_a_header_that_is_missing_is_reported(ran: Callable[..., Result], tmp_path: Path) -> None:
    assert verified(ran, tmp_path, {"webhook-id": "evt_1"}, BODY)["reason"] == "headers"


def test_a_secret_that_is_none_is_reported(ran: Callable[..., Result]) -> None:
    done = ran(endpoint, "verify", stdin=BODY, FHIRPUB_SIGNING_SECRET="whsec_short")

    assert done.exit_code == 1
    assert "base64" in done.stderr
    assert "short" not in done.stderr


def test_many_trials_at_once_have_to_wait(config: Config, tenant: str) -> None:
    async def tried() -> list[str]:
        with gate() as receiver:
            async with open_administration(config) as open_:
                fields = {"url": receiver.url}
                service = await open_.endpoints()
                one = (await service.add(tenant, fields, trusted=True)).endpoint
                trials = [
                    asyncio.create_task(service.test(tenant, one.id)) for _number in range(5)
                ]
                await asyncio.wait(trials, return_when=asyncio.FIRST_COMPLETED)
                await until(lambda: len(receiver.received) == 4)
                receiver.may_answer.set()
                found = await asyncio.gather(*trials, return_exceptions=True)
            return [type(item).__name__ for item in found]

    assert sorted(asyncio.run(tried())) == [*["TestDelivery"] * 4, "Throttled"]
