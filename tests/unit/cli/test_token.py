"""A token is revoked on the command line, by its text or by its name."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from fhirpub.app.stores import open_store
from fhirpub.auth import token_request
from fhirpub.auth.tokens import Tokens
from fhirpub.cli.commands import Reporting
from fhirpub.cli.token import _read_token
from fhirpub.cli.token import token as command
from fhirpub.config.settings import Config
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.client_activity_contract import RevokedToken

FORM = "application/x-www-form-urlencoded"


async def _tokens_of(config: Config, client: dict[str, Any]) -> str:
    async with open_store(config) as store:
        tokens = Tokens(
            access=store,
            config=config.auth,
            limits=config.limits,
            issuer=config.issuer,
            clock=now_ms,
        )
        fields = {
            "grant_type": "client_credentials",
            "client_id": client["client_id"],
            "client_secret": client["client_secret"],
            "audience": config.auth.audience,
        }
        body = json.dumps(fields).encode()
        message = token_request.Message(content_type="application/json", body=body)
        return (await tokens.grant(message, address="192.0.2.1")).access_token


async def _revoked(config: Config, client_id: str) -> list[RevokedToken]:
    async with open_store(config) as store:
        return list(await store.revoked_tokens(client_id))


@pytest.fixture
def client(run: Any) -> dict[str, Any]:
    """A client in the store of an empty folder."""
    tenant = json.loads(run("tenant", "add", "Lab Uno", "--json").stdout)["id"]
    added: dict[str, Any] = json.loads(run("client", "add", "--tenant", tenant, "--json").stdout)
    return added


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The settings of the folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    return Config()


def revoke(*words: str, stdin: str = "") -> Any:
    return CliRunner().invoke(Reporting(commands=[command]), ["token", "revoke", *words], stdin)


@pytest.mark.parametrize("before", ["", "Bearer ", "\n "])
def test_the_token_on_standard_input_is_revoked(
    client: dict[str, Any], config: Config, before: str
) -> None:
    text = asyncio.run(_tokens_of(config, client))

    done = revoke("--json", stdin=f"{before}{text}\n")

    (kept,) = asyncio.run(_revoked(config, client["client_id"]))
    shown = json.loads(done.stdout)
    assert (shown["client_id"], shown["jti"]) == (client["client_id"], kept.jti)
    assert text not in done.output


def test_a_token_is_revoked_by_its_name_for_as_long_as_it_may_be_valid(
    client: dict[str, Any], config: Config
) -> None:
    earliest = now_ms() + config.auth.token_seconds * 1000

    done = revoke("--client", client["client_id"], "--jti", "a-B_9")

    assert done.exit_code == 0
    (kept,) = asyncio.run(_revoked(config, client["client_id"]))
    assert kept.jti == "a-B_9"
    assert earliest <= kept.until <= earliest + 60_000


@pytest.mark.parametrize(
    ("words", "stdin", "status", "said"),
    [
        ([], "", 2, "there is no token on standard input"),
        ([], "a.b.c", 1, "no valid token of the service"),
        ([], "\udcff", 1, "no valid token of the service"),
        (["--client", "x"], "", 2, "--client and --jti belong together"),
        (["--jti", "x"], "", 2, "--client and --jti belong together"),
        (["--client", "x", "--jti", "a b"], "", 2, "must be the claim of a token"),
        (["--client", "x", "--jti", "j"], "", 1, "there is no client x"),
    ],
)
@pytest.mark.usefixtures("config")
def test_what_cannot_be_revoked_is_refused_with_the_reason(
    words: list[str], stdin: str, status: int, said: str
) -> None:
    sent = stdin.encode(errors="surrogateescape")
    done = CliRunner().invoke(Reporting(commands=[command]), ["token", "revoke", *words], sent)

    assert done.exit_code == status
    assert said in done.output


def test_without_standard_input_there_is_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # as Python starts with `<&-`

    with pytest.raises(click.UsageError, match="there is no token on standard input"):
        _read_token()
