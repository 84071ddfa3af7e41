"""Servers that could lose a write are refused at the start."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timezone
from pathlib import Path
from typing import Any, cast

import pytest

from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.mongodb import server_checks as mongodb_server
from fhirpub.storage.mongodb import store as mongodb
from fhirpub.storage.mongodb.store import MongoStore, from_url
from fhirpub.testing.store_contract import (
    FOREVER,
    LAB,
    a_blob,
    a_key,
    a_version,
    new_id,
    query,
)
from tests.storage.mongodb.helpers import (
    Admin,
    start_mongod,
    store_of,
    unused_port,
)


@pytest.fixture
async def small_store(single: str) -> AsyncGenerator[MongoStore]:
    """A store on a single server, as used for trying things out."""
    store = from_url(f"mongodb://{single}/t{new_id()}", deadline_seconds=10, production=False)
    await store.start()
    yield store
    await store.stop()


async def test_a_single_server_is_refused_in_production(single: str) -> None:
    with pytest.raises(ConfigurationError, match="no member of a replica set"):
        await store_of(f"mongodb://{single}/x").start()


async def test_a_single_server_will_do_elsewhere(small_store: MongoStore) -> None:
    store, version, blob = small_store, a_version(), a_blob()

    assert await store.add(LAB, version, [blob])
    assert not await store.add(LAB, version)
    assert await store.latest(LAB, version.id) == version
    assert (await store.search(LAB, query())).versions == (version,)
    assert await store.rotate_signing_key(a_key("a"), expected=[])
    assert await store.sweep_blobs(LAB, before=FOREVER) == 1
    await store.check()


@pytest.mark.slow
async def test_a_server_without_a_journal_is_refused(tmp_path: Path) -> None:
    server, port = start_mongod(tmp_path, "--nojournal")
    store = from_url(f"mongodb://127.0.0.1:{port}/x", deadline_seconds=10, production=False)

    with pytest.raises(ConfigurationError, match="no journal"):
        await store.start()

    server.kill()
    server.wait()


@pytest.fixture(scope="module")
def configuration(admin: Admin) -> dict[str, Any]:
    """The configuration of an acceptable set."""
    config: dict[str, Any] = admin.admin.command("replSetGetConfig")["config"]
    return config


@pytest.fixture(scope="module")
def defaults(admin: Admin) -> dict[str, Any]:
    """Its default concerns, none of them set explicitly."""
    return admin.admin.command("getDefaultRWConcern")


def test_a_set_whose_majority_acknowledges_without_its_journals_is_refused(
    configuration: dict[str, Any], defaults: dict[str, Any]
) -> None:
    unsafe = {**configuration, "writeConcernMajorityJournalDefault": False}

    with pytest.raises(ConfigurationError, match="writeConcernMajorityJournalDefault"):
        mongodb_server.check_set(unsafe, defaults)


def test_a_set_with_an_arbiter_needs_a_default_write_concern(
    configuration: dict[str, Any], defaults: dict[str, Any]
) -> None:
    member = configuration["members"][0]
    unsafe = {**configuration, "members": [member, {**member, "_id": 1, "arbiterOnly": True}]}

    with pytest.raises(ConfigurationError, match="arbiter"):
        mongodb_server.check_set(unsafe, defaults)
    mongodb_server.check_set(unsafe, {**defaults, "defaultWriteConcernSource": "global"})


@pytest.mark.parametrize(
    ("hello", "least"),
    [
        ({"maxWireVersion": 9}, "5.0"),
        ({"maxWireVersion": 13, "msg": "isdbgrid"}, "6.0"),
        ({}, "5.0"),
    ],
)
def test_an_old_server_is_refused(hello: dict[str, Any], least: str) -> None:
    with pytest.raises(ConfigurationError, match=least):
        mongodb_server._refuse_old(hello)


@pytest.mark.parametrize("zone", [UTC, None])
def test_clocks_are_compared_in_the_same_zone(zone: timezone | None) -> None:
    hello = {"localTime": datetime(2026, 1, 1, 12, tzinfo=zone)}

    assert mongodb_server.skew_ms(hello, 1_767_268_800_000 + 7_000) == 7_000


async def test_a_server_that_ignores_read_concerns_is_refused() -> None:
    class Deaf:
        """A fake MongoDB in states that a real server cannot be brought into."""

        def get_default_database(self) -> Deaf:
            return self

        async def command(self, question: dict[str, Any]) -> dict[str, Any]:
            return {"ok": 1, "asked": question}

    with pytest.raises(ConfigurationError, match="ignores read concerns"):
        await mongodb_server._refuse_without_read_concern(cast("mongodb_server.Client", Deaf()))


async def test_credentials_that_the_server_refuses_are_a_wrong_configuration(url: str) -> None:
    store = store_of(url.replace("mongodb://", "mongodb://user:secret-word@"))

    with pytest.raises(ConfigurationError, match="refuses this user") as refused:
        await store.start()

    assert "secret-word" not in str(refused.value)


async def test_a_server_that_cannot_be_reached_is_unavailable_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mongodb, "_START_SECONDS", 1.0)
    begun = time.monotonic()

    with unused_port() as port, pytest.raises(StoreUnavailable) as refused:
        await store_of(f"mongodb://127.0.0.1:{port}/x?replicaSet=rs0", seconds=1).start()

    assert time.monotonic() - begun < 60
    assert refused.value.reason == "no server that could be written to was found in time"


async def test_a_start_waits_no_longer_than_the_url_says() -> None:
    begun = time.monotonic()

    with unused_port() as port:
        store = store_of(f"mongodb://127.0.0.1:{port}/x?serverSelectionTimeoutMS=200", seconds=0.2)
        with pytest.raises(StoreUnavailable):
            await store.start()

    assert time.monotonic() - begun < mongodb._START_SECONDS / 2


def test_the_command_says_in_one_line_that_the_store_cannot_be_reached(tmp_path: Path) -> None:
    settings = tmp_path / "fhirpub.toml"
    rest = "deadline_seconds = 1.0\n[server]\nport = 0\n"
    with unused_port() as port:
        url = f"mongodb://user:secret-word@127.0.0.1:{port}/x?serverSelectionTimeoutMS=500"
        settings.write_text(f'[storage]\nurl = "{url}"\n{rest}')

        served = subprocess.run(
            [sys.executable, "-m", "fhirpub", "serve", "--config", str(settings)],
            capture_output=True,
            text=True,
            check=False,
        )

    assert served.returncode == 1
    assert served.stderr == (
        "Error: the store cannot be used: no server that could be written to was found in time; "
        "see [storage] url\n"
    )
