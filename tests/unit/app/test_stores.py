"""The configured store is opened with its keys, and closed whatever happens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.app.stores import (
    _create_key,
    key_file,
    key_source,
    open_store,
    open_with,
    sqlite_file,
    uses_mongodb,
)
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb import store as mongodb
from fhirpub.storage.sqlite import store as sqlite
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.contracts.webhooks.records import an_endpoint

NEW = bytes(range(32))


def at(url: str) -> Config:
    return Config(storage=StorageConfig(url=url))


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return at(f"sqlite:///{tmp_path}/store.db")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mongodb://h/d", True),
        ("mongodb+srv://h/d", True),
        ("sqlite:///mongodb://", False),
        ("sqlite:////var/lib/store.db", False),
    ],
)
def test_a_url_names_its_engine(url: str, *, expected: bool) -> None:
    assert uses_mongodb(at(url)) is expected


@pytest.mark.parametrize(
    ("url", "file", "keys"),
    [
        ("sqlite:////var/lib/store.db", "/var/lib/store.db", "/var/lib/store.webhook-keys"),
        ("sqlite:///store.db", "store.db", "store.webhook-keys"),
        ("sqlite:///a/store", "a/store", "a/store.webhook-keys"),
        ("mongodb://h/d", None, None),
        ("sqlite:///", None, None),
    ],
)
def test_the_keys_of_a_file_are_beside_it(url: str, file: str | None, keys: str | None) -> None:
    assert sqlite_file(at(url)) == (file and Path(file))
    assert key_file(at(url)) == (keys and Path(keys))


def test_the_place_of_keys_is_the_one_that_is_configured(config: Config, tmp_path: Path) -> None:
    storage = replace(config.storage, keys_file=str(tmp_path / "mine"))

    assert key_source(config).file == tmp_path / "store.webhook-keys"
    assert key_source(replace(config, storage=storage)).file == tmp_path / "mine"


async def test_a_new_store_gets_a_key_that_the_next_start_reads(
    config: Config, tmp_path: Path
) -> None:
    async with open_store(config) as store:
        first = store.cipher.names
        assert first
        await store.put_tenant(Tenant.new("Lab", created=1))
    assert (tmp_path / "store.webhook-keys").exists()

    async with open_store(config) as store:
        assert store.cipher.names == first
        assert [one.name for one in await store.tenants()] == ["Lab"]


async def test_without_leave_to_make_one_a_missing_store_is_not_there(
    config: Config, tmp_path: Path
) -> None:
    with pytest.raises(StoreUnavailable):
        async with open_store(config, create=False):
            pass

    assert not (tmp_path / "store.db").exists()


async def test_without_leave_to_make_one_a_store_gets_no_key(
    config: Config, tmp_path: Path
) -> None:
    async with open_with(config, SecretCipher()):
        pass

    async with open_store(config, create=False) as store:
        assert not store.cipher
    assert not (tmp_path / "store.webhook-keys").exists()


async def test_where_something_is_encrypted_no_key_takes_the_place_of_a_lost_one(
    config: Config, tmp_path: Path
) -> None:
    async with open_with(config, SecretCipher([NEW])) as store:
        await store.put_tenant(Tenant.new("Lab", created=1))

    async with open_store(config) as store:
        assert not store.cipher

    assert not (tmp_path / "store.webhook-keys").exists()


async def test_secrets_of_endpoints_keep_a_new_key_from_taking_the_place_of_a_lost_one(
    config: Config, tmp_path: Path
) -> None:
    async with open_with(config, SecretCipher()) as store:
        await store.put_tenant(Tenant.new("Lab", created=1))
        endpoint = an_endpoint()
        assert await store.put_endpoint(endpoint.tenant, endpoint)

    async with open_store(config) as store:
        assert not store.cipher

    assert not (tmp_path / "store.webhook-keys").exists()


async def test_what_is_in_clear_does_not_keep_a_key_from_being_made(
    config: Config, tmp_path: Path
) -> None:
    async with open_with(config, SecretCipher()) as store:
        await store.put_tenant(Tenant.new("Lab", created=1))

    async with open_store(config) as store:
        assert store.cipher

    assert (tmp_path / "store.webhook-keys").exists()


async def test_a_key_that_another_process_has_made_meanwhile_is_read(
    config: Config, tmp_path: Path
) -> None:
    source = key_source(config)
    cipher = SecretCipher(source.read(), read=source.read)
    async with open_with(config, cipher) as store:
        async with open_store(config) as theirs:
            await theirs.put_tenant(Tenant.new("Lab", created=1))

        await _create_key(store, source)

        assert store.cipher.keys == source.read() != ()
        assert [one.name for one in await store.tenants()] == ["Lab"]


class Watched(SqliteStore):
    """A store that notes how it is used."""

    notes: list[str]

    async def start(self) -> None:
        self.notes.append(f"start, upgrades {self.upgrades}")
        await super().start()

    async def stop(self) -> None:
        self.notes.append("stop")
        await super().stop()


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def from_url(url: str, *, make: bool, deadline_seconds: float, cipher: Any) -> Watched:
        found.append(f"make {make}, {deadline_seconds:g} seconds")
        path = Path(url.removeprefix("sqlite:///"))
        made = Watched(path, deadline_seconds=deadline_seconds, make=make, cipher=cipher)
        made.notes = found
        return made

    monkeypatch.setattr(sqlite, "from_url", from_url)
    return found


async def test_a_store_is_stopped_also_when_what_it_is_for_fails(
    config: Config, notes: list[str]
) -> None:
    async def use() -> None:
        async with open_with(config, SecretCipher()):
            assert notes[-1] != "stop"
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await use()

    assert notes[-1] == "stop"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["make True, 7 seconds", "start, upgrades True", "stop"]),
        ({"upgrade": False}, ["make True, 7 seconds", "start, upgrades False", "stop"]),
    ],
)
async def test_a_store_has_the_deadline_of_the_settings_and_is_upgraded_with_leave(
    config: Config, notes: list[str], given: dict[str, bool], expected: list[str]
) -> None:
    config = replace(config, storage=replace(config.storage, deadline_seconds=7.0))

    async with open_store(config, **given):
        pass

    assert notes == expected


class Away:
    """A store of another engine, that is only started and stopped."""

    upgrades = True

    async def start(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(("environment", "production"), [("production", True), ("sandbox", False)])
async def test_a_server_of_mongodb_must_be_durable_in_production(
    environment: Any, monkeypatch: pytest.MonkeyPatch, *, production: bool
) -> None:
    found: list[Any] = []

    def from_url(url: str, **given: Any) -> Any:
        found.append((url, given["production"], given["deadline_seconds"]))
        return Away()

    monkeypatch.setattr(mongodb, "from_url", from_url)
    config = at("mongodb://h/d")
    config = replace(config, auth=replace(config.auth, environment=environment))

    async with open_with(config, SecretCipher()):
        pass

    assert found == [("mongodb://h/d", production, config.storage.deadline_seconds)]
