"""``fhirpub transfer`` on the command line."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from fhirpub.app.stores import open_store, open_with
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.sealed import is_sealed
from fhirpub.storage.contract import Version
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant
from fhirpub.testing.store_contract import a_key, a_version, add_all

MANY = 3_000
_TRIES = 10


def opened(url: str) -> AbstractAsyncContextManager[Store]:
    return open_store(Config(storage=StorageConfig(url=url)))


async def versions_of(url: str) -> Sequence[tuple[str, Version]]:
    async with opened(url) as store:
        return await store.scan(limit=MANY + 1)


@pytest.fixture
async def many(tmp_path: Path) -> str:
    """A store of which a copy takes a while."""
    url = f"sqlite:///{tmp_path}/many.db"
    async with opened(url) as store:
        await add_all(store, [a_version(body=b"{}" * 1000) for _ in range(MANY)])
    return url


def test_a_store_is_copied_into_another_and_can_be_used_there(run: Any, tmp_path: Path) -> None:
    tenant = json.loads(run("tenant", "add", "Lab Uno", "--json").stdout)["id"]

    done = run("transfer", "--to", "sqlite:///other/copy.db", "--json")
    listed = run("tenant", "list", "--json", FHIRPUB_STORAGE__URL="sqlite:///other/copy.db")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["versions"] == 0
    assert [load["id"] for load in json.loads(listed.stdout)] == [tenant]


def test_the_older_name_of_the_command_still_works(run: Any) -> None:
    run("tenant", "add", "Lab Uno")

    done = run("migrate", "--to", "sqlite:///copy.db", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["versions"] == 0


def test_help_lists_only_the_present_name_of_the_command(run: Any) -> None:
    listed = run("--help").stdout

    assert "  transfer " in listed
    assert "  migrate " not in listed


def test_the_other_store_may_be_named_by_a_file_of_settings(run: Any, tmp_path: Path) -> None:
    (tmp_path / "new.toml").write_text('[storage]\nurl = "sqlite:///new.db"\n')
    run("tenant", "add", "Lab Uno")

    done = run(
        "transfer", "--to", "new.toml", FHIRPUB_STORAGE__URL="sqlite:///fhirpub-data/fhirpub.db"
    )

    assert done.returncode == 0, done.stderr
    assert "All 0 versions are in the other store" in done.stdout
    assert (tmp_path / "new.db").exists()


async def test_a_store_with_one_version_is_copied_in_the_singular(
    run: Any, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/one.db"
    async with opened(url) as store:
        await add_all(store, [a_version()])

    done = await asyncio.to_thread(
        run, "transfer", "--to", "sqlite:///copy.db", FHIRPUB_STORAGE__URL=url
    )

    words = "The only version is in the other store: 1 copied, 0 already there and equal.\n"
    assert done.stdout.startswith(words)


def test_a_store_is_not_copied_into_itself(run: Any) -> None:
    run("tenant", "add", "Lab Uno")

    done = run("transfer", "--to", "sqlite:///./fhirpub-data/fhirpub.db")

    assert done.returncode == 1
    assert done.stderr == "Error: the target is the store that is to be copied\n"


def test_an_empty_store_is_no_backup(run: Any) -> None:
    done = run("transfer", "--to", "sqlite:///backup.db")

    assert done.returncode == 1
    assert "is empty; is it the right one?" in done.stderr


def test_of_two_stores_it_is_said_which_one_cannot_be_reached(run: Any) -> None:
    away = "mongodb://user:secret-word@127.0.0.1:1/x?serverSelectionTimeoutMS=500"
    soon = {"FHIRPUB_STORAGE__DEADLINE_SECONDS": "0.5"}

    target = run("transfer", "--to", away, **soon)
    source = run("transfer", "--to", "sqlite:///x.db", FHIRPUB_STORAGE__URL=away, **soon)

    why = "no server that could be written to was found in time"
    assert target.returncode == source.returncode == 1
    assert target.stderr == f"Error: the store to copy to cannot be used: {why}\n"
    assert source.stderr == f"Error: the store to copy from cannot be used: {why}\n"


@pytest.mark.parametrize("collection", ["version", "store", "patients"])
def test_another_programs_database_is_no_target_and_is_left_alone(
    run: Any, mongodb_url: str, collection: str
) -> None:
    run("tenant", "add", "Lab Uno")
    with MongoClient[dict[str, Any]](mongodb_url) as client:
        client.get_default_database()[collection].insert_one({"theirs": True})

        done = run("transfer", "--to", mongodb_url)

        left = client.get_default_database().list_collection_names()
    assert done.returncode == 1
    assert done.stderr.endswith("[storage] url: the database is another program's\n")
    assert left == [collection]


def test_without_a_terminal_progress_is_lines_and_json_is_alone_on_its_stream(
    run: Any, many: str
) -> None:
    done = run("transfer", "--to", "sqlite:///copy.db", "--json", FHIRPUB_STORAGE__URL=many)

    assert json.loads(done.stdout)["copied"] == MANY
    assert done.stdout.count("\n") == 1
    assert "\r" not in done.stderr
    assert done.stderr.startswith(f"200 of {MANY:,} versions, ")


def everything_on(terminal: int) -> str:
    """Return all that was written to a terminal whose other end is closed, and close it.

    A read returns what has arrived; after the last byte it fails.
    """
    pieces = []
    with os.fdopen(terminal, "rb", buffering=0) as stream, suppress(OSError):
        while piece := stream.read(4_096):
            pieces.append(piece)
    return b"".join(pieces).decode()


def test_on_a_terminal_progress_is_one_line(
    many: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    ours, theirs = pty.openpty()

    done = subprocess.run(
        [sys.executable, "-m", "fhirpub", "transfer", "--to", f"sqlite:///{tmp_path}/copy.db"],
        env={**environment, "FHIRPUB_STORAGE__URL": many},
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=tmp_path,
        check=True,
    )

    os.close(theirs)
    output = everything_on(ours)
    assert output.count("\n") == 1
    assert output.endswith("\r\n")
    assert output.count("\r") > 2
    assert done.stdout.startswith(b"All 3,000 versions are in the other store: 3,000 copied")


@contextmanager
def a_copy_in_progress(target: str, cwd: Path, environment: dict[str, str]) -> Generator[Any]:
    """Yield the process of a copy in progress; wait for its end."""
    with subprocess.Popen(
        [sys.executable, "-m", "fhirpub", "transfer", "--to", target],
        env=environment,
        stderr=subprocess.PIPE,
        cwd=cwd,
    ) as copying:
        assert copying.stderr is not None
        assert copying.stderr.readline().startswith(b"200 of")
        yield copying


def test_an_interrupted_copy_says_to_repeat_it(
    many: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    settings = {**environment, "FHIRPUB_STORAGE__URL": many}
    numbers = iter(range(_TRIES))
    while True:  # until the signal comes before the end of the command
        number = next(numbers)
        target = f"sqlite:///{tmp_path}/copy-{number}.db"
        with a_copy_in_progress(target, tmp_path, settings) as copying:
            copying.send_signal(signal.SIGINT)
            lines = copying.stderr.read().decode().splitlines()
        if copying.returncode != 0:
            break

    assert copying.returncode == 1
    assert lines == ["Error: interrupted; the copied data is safe, repeat the command to continue"]


def test_a_copy_that_was_killed_is_finished_by_the_next(
    run: Any, many: str, mongodb_url: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    settings = {**environment, "FHIRPUB_STORAGE__URL": many}
    for _ in range(_TRIES):  # until it comes before the end of the command
        with a_copy_in_progress(mongodb_url, tmp_path, settings) as killed:
            killed.kill()
        if len(asyncio.run(versions_of(mongodb_url))) < MANY:
            break
        with MongoClient[dict[str, object]](mongodb_url) as client:
            client.drop_database(client.get_default_database().name)

    again = json.loads(
        run("transfer", "--to", mongodb_url, "--json", FHIRPUB_STORAGE__URL=many).stdout
    )

    assert again["there_already"] >= 200
    assert again["copied"] > 0
    assert again["versions"] == MANY
    assert asyncio.run(versions_of(mongodb_url)) == asyncio.run(versions_of(many))


async def secrets_in(url: str, *keys: bytes) -> list[Any]:
    config = Config(storage=StorageConfig(url=url))
    async with open_with(config, SecretCipher(keys)) as store:
        return [*await store.tenants(), *await store.signing_keys("sandbox")]


@pytest.fixture
async def encrypted(tmp_path: Path) -> str:
    """A store with a tenant and a signing key, encrypted under a key next to it."""
    url = f"sqlite:///{tmp_path}/encrypted.db"
    async with opened(url) as store:
        await store.put_tenant(Tenant.new("Lab", created=1))
        await store.put_signing_key(a_key("a"))
    return url


def test_secrets_get_under_the_key_of_the_source_if_the_target_has_none(
    run: Any, encrypted: str, mongodb_url: str, tmp_path: Path
) -> None:
    done = run("transfer", "--to", mongodb_url, FHIRPUB_STORAGE__URL=encrypted)

    assert done.returncode == 0, done.stderr
    assert "name its file in [storage] keys_file there" in done.stdout
    key = base64.b64decode((tmp_path / "encrypted.webhook-keys").read_text())
    found = asyncio.run(secrets_in(mongodb_url))
    assert is_sealed(found[0].salt)
    assert is_sealed(found[1].private_pem)
    assert asyncio.run(secrets_in(mongodb_url, key)) == asyncio.run(secrets_in(encrypted, key))


@pytest.mark.parametrize("group", ["storage", "webhooks"])
def test_secrets_get_under_the_own_key_of_the_target(
    group: str, run: Any, encrypted: str, tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text(base64.b64encode(b"t" * 32).decode())
    (tmp_path / "new.toml").write_text(
        f'storage.url = "sqlite:///{tmp_path}/new.db"\n{group}.keys_file = "{tmp_path}/keys"\n'
    )

    done = run("transfer", "--to", "new.toml", FHIRPUB_STORAGE__URL=encrypted)

    assert done.returncode == 0, done.stderr
    key = base64.b64decode((tmp_path / "encrypted.webhook-keys").read_text())
    found = asyncio.run(secrets_in(f"sqlite:///{tmp_path}/new.db", b"t" * 32))
    assert found == asyncio.run(secrets_in(encrypted, key))
    assert not (tmp_path / "new.webhook-keys").exists()


def test_a_backup_of_which_the_key_is_not_here_is_copied_as_it_is_stored(
    run: Any, encrypted: str, tmp_path: Path
) -> None:
    kept = tmp_path / "encrypted.webhook-keys"
    key = base64.b64decode(kept.read_text())
    kept.rename(tmp_path / "elsewhere")

    for _time in range(2):
        done = run("transfer", "--to", "sqlite:///copy.db", FHIRPUB_STORAGE__URL=encrypted)
        assert done.returncode == 0, done.stderr

    copied = asyncio.run(secrets_in(f"sqlite:///{tmp_path}/copy.db", key))
    assert copied == asyncio.run(secrets_in(encrypted, key))
    assert not kept.exists()


def test_a_copy_under_a_key_that_is_not_here_is_not_taken_for_another_tenant(
    run: Any, encrypted: str, tmp_path: Path
) -> None:
    (tenant, _key) = asyncio.run(secrets_in(encrypted))
    (tmp_path / "encrypted.webhook-keys").unlink()

    async def fill_the_target() -> None:
        config = Config(storage=StorageConfig(url=f"sqlite:///{tmp_path}/copy.db"))
        async with open_with(config, SecretCipher([b"o" * 32])) as store:
            await store.put_tenant(replace(tenant, salt=bytes(32)))

    asyncio.run(fill_the_target())
    done = run("transfer", "--to", "sqlite:///copy.db", FHIRPUB_STORAGE__URL=encrypted)

    assert done.returncode == 1
    assert "its salt cannot be decrypted: name the file of its key" in done.stderr
