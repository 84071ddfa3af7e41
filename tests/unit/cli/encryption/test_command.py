"""``fhirpub secrets``: everything gets under the first key, and new keys are printed."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fhirpub.app.administration import open_administration
from fhirpub.app.stores import open_with
from fhirpub.cli.administration.target import Target
from fhirpub.cli.encryption.command import secrets
from fhirpub.config.loader import load
from fhirpub.config.settings import Config
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import ConfigurationError, SecretsUnavailable
from fhirpub.sealed import is_sealed
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant
from fhirpub.testing.store_contract import a_key

OLD, NEW = bytes(32), bytes(range(32))
LAB = Tenant.new("Lab", created=1)
NETWORKS = "[webhooks]\nallow_networks = ['127.0.0.1/32']\n"
ENDPOINT = {"url": "http://127.0.0.1:9/hooks"}

Ran = Callable[..., Result]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def file(tmp_path: Path, keys: Path) -> Path:
    """A configuration with a store and keys of its own."""
    file = tmp_path / "fhirpub.toml"
    url = f"sqlite:///{tmp_path}/fhirpub.db"
    file.write_text(f"[storage]\nurl = '{url}'\nkeys_file = '{keys}'\n{NETWORKS}")
    put(keys, NEW)
    return file


@pytest.fixture
def config(file: Path) -> Config:
    return load(file, environment={})


@pytest.fixture
def ran(file: Path) -> Ran:
    """Return a function that runs a command in this process."""

    def ran(*words: str) -> Result:
        return CliRunner().invoke(secrets, [*words, "--config", str(file)])

    return ran


def put(keys: Path, *lines: bytes) -> None:
    keys.write_text("\n".join(base64.b64encode(line).decode() for line in lines))


@asynccontextmanager
async def opened(config: Config, *keys: bytes) -> AsyncIterator[Store]:
    async with open_with(config, SecretCipher(keys)) as store:
        yield store


async def fill(config: Config, *keys: bytes) -> None:
    async with opened(config, *keys) as store:
        await store.put_tenant(LAB)
        await store.put_signing_key(a_key("a"))


async def add_endpoint(config: Config) -> None:
    async with open_administration(config) as open_:
        await (await open_.endpoints()).add(LAB.id, ENDPOINT, trusted=True)


async def read(config: Config, *keys: bytes) -> list[object]:
    async with opened(config, *keys) as store:
        return [*await store.tenants(), *await store.signing_keys("sandbox")]


def result_of(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    record: dict[str, Any] = json.loads(done.stdout)
    return {name: record[name] for name in ("salts", "signing_keys", "endpoints", "not_decrypted")}


def counts(salts: int, signing_keys: int, endpoints: int) -> dict[str, int]:
    return {
        "salts": salts,
        "signing_keys": signing_keys,
        "endpoints": endpoints,
        "not_decrypted": 0,
    }


def test_a_store_in_clear_is_encrypted(ran: Ran, config: Config) -> None:
    asyncio.run(fill(config))

    planned, done, again = (
        result_of(ran("reseal", "--json", *words)) for words in (["--dry-run"], [], [])
    )

    assert planned == done == counts(1, 1, 0)
    assert again == counts(0, 0, 0)
    assert asyncio.run(read(config, NEW)) == [LAB, a_key("a")]
    unread: Any = asyncio.run(read(config))
    assert is_sealed(unread[0].salt)
    assert is_sealed(unread[1].private_pem)


def test_a_dry_run_changes_nothing(ran: Ran, config: Config) -> None:
    asyncio.run(fill(config))

    ran("reseal", "--dry-run")

    assert asyncio.run(read(config)) == [LAB, a_key("a")]


def test_a_key_is_replaced_for_every_secret(ran: Ran, config: Config, keys: Path) -> None:
    put(keys, OLD)
    asyncio.run(fill(config, OLD))
    asyncio.run(add_endpoint(config))
    put(keys, NEW, OLD)

    planned = result_of(ran("reseal", "--json", "--dry-run"))
    done = result_of(ran("reseal", "--json"))
    put(keys, NEW)
    after = result_of(ran("reseal", "--json", "--dry-run"))

    assert planned == done == counts(1, 1, 1)
    assert after == counts(0, 0, 0)
    assert asyncio.run(read(config, NEW)) == [LAB, a_key("a")]


def test_what_no_key_decrypts_is_counted_and_makes_it_fail(ran: Ran, config: Config) -> None:
    asyncio.run(fill(config, OLD))

    done = ran("reseal", "--json")

    assert done.exit_code == 1
    assert json.loads(done.stdout)["not_decrypted"] == 2
    assert "fhirpub check" in done.stderr
    assert asyncio.run(read(config, OLD)) == [LAB, a_key("a")]


def test_without_a_key_it_says_how_to_create_one(
    ran: Ran, config: Config, file: Path, mongodb_url: str
) -> None:
    file.write_text(f"[storage]\nurl = '{mongodb_url}'\n")

    done = ran("reseal")

    assert isinstance(done.exception, SecretsUnavailable)
    assert "fhirpub secrets new-key" in done.exception.reason


def test_without_the_lost_key_it_says_to_put_it_back(
    ran: Ran, config: Config, file: Path, tmp_path: Path
) -> None:
    asyncio.run(fill(config, OLD))
    file.write_text(f"[storage]\nurl = 'sqlite:///{tmp_path}/fhirpub.db'\n")

    done = ran("reseal")

    assert isinstance(done.exception, ConfigurationError)
    assert "put the file that has it back" in str(done.exception)
    assert not (tmp_path / "fhirpub.webhook-keys").exists()


def test_a_new_key_is_a_line_for_the_file(ran: Ran, keys: Path) -> None:
    first, second = (ran("new-key").stdout for _time in range(2))

    assert first != second
    assert len(base64.b64decode(first)) == 32
    assert json.loads(ran("new-key", "--json").stdout).keys() == {"line"}


async def many(config: Config, *, first: int) -> list[Tenant]:
    numbers = range(first, first + 8_000)
    tenants = [Tenant.new(str(number), created=number) for number in numbers]
    async with opened(config) as store:
        for start in range(0, len(tenants), 500):
            await asyncio.gather(*map(store.put_tenant, tenants[start : start + 500]))
    return tenants


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_command_is_finished_by_the_next(
    number: signal.Signals, ran: Ran, config: Config, file: Path, environment: dict[str, str]
) -> None:
    tenants: list[Tenant] = []
    words = [sys.executable, "-m", "fhirpub", "secrets", "reseal", "--config", str(file)]
    with contextlib.closing(sqlite3.connect(file.with_suffix(".db"))) as looking:

        def left() -> int:
            question = "SELECT count(*) FROM tenant WHERE length(salt) = 32"
            return int(looking.execute(question).fetchone()[0])

        message, before = "", 0
        for _attempt in range(5):  # until the signal comes before the end of the command
            tenants += asyncio.run(many(config, first=len(tenants)))
            before = left()
            with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE) as running:
                while left() == before and running.poll() is None:
                    pass
                running.send_signal(number)
                assert running.stderr is not None
                message = running.stderr.read().decode()
            if left() > 0:
                break

        assert 0 < left() < before
        assert ("interrupted; repeat the command" in message) is (number == signal.SIGINT)
        assert asyncio.run(read(config, NEW)) == tenants
        rest = left()
        assert result_of(ran("reseal", "--json"))["salts"] == rest
        assert left() == 0
        assert asyncio.run(read(config, NEW)) == tenants


def test_an_interruption_prints_to_repeat_the_command(
    ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Target, "call", interrupted)

    done = ran("reseal")

    assert (done.exit_code, done.stdout) == (1, "")
    assert "interrupted; repeat the command to continue" in done.stderr
