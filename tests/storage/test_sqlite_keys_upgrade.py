"""A file of schema version 12 gets room for keys of clients and used assertions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.storage.client_activity_contract import AssertionUse, UsedAssertion
from fhirpub.storage.contract import ClientSecret
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.store_contract import Reopen, a_client, reopening
from tests.storage.older_sqlite_files import kill_amid_upgrade, to_version_12
from tests.storage.test_sqlite_upgrade import new_file, schema_of

CLIENT = a_client(secrets=(ClientSecret(b"a", 7),), networks=("192.0.2.0/24",))


@pytest.fixture
async def older(tmp_path: Path) -> Path:
    """A file of schema version 12 with a client."""
    path = tmp_path / "fhirpub.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    await store.put_client(CLIENT)
    await store.stop()
    to_version_12(path)
    return path


@pytest.fixture
async def reopen(older: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(older, deadline_seconds=30)) as reopen:
        yield reopen


async def test_a_file_of_version_12_gets_what_a_new_one_has(
    older: Path, tmp_path: Path, reopen: Reopen
) -> None:
    await reopen()

    assert schema_of(older) == schema_of(await new_file(tmp_path))


@pytest.mark.parametrize("steps", [1, 2, None])
async def test_a_client_of_an_older_file_gets_keys_also_if_its_upgrade_was_killed(
    older: Path, reopen: Reopen, steps: int | None
) -> None:
    await asyncio.to_thread(kill_amid_upgrade, older, 12, steps=steps)
    store, with_keys = await reopen(), replace(CLIENT, jwks="{}")

    assert await store.client(CLIENT.id) == CLIENT
    assert await store.replace_client(with_keys, over=CLIENT)
    assert await store.client(CLIENT.id) == with_keys


async def test_assertions_are_used_once_in_an_older_file(reopen: Reopen) -> None:
    store, used = await reopen(), UsedAssertion(CLIENT.id, "a", 7)

    results = [await store.use_assertion(used, now=1, most=9) for _ in range(2)]

    assert results == [AssertionUse.FIRST, AssertionUse.REPEATED]
