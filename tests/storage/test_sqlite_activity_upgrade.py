"""A file of schema version 9 gets room for networks and revoked tokens, and keeps its clients."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.storage.client_activity_contract import RevokedToken
from fhirpub.storage.contract import ClientSecret
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.store_contract import Reopen, a_client, reopening
from tests.storage.older_sqlite_files import kill_amid_upgrade, to_version_9
from tests.storage.test_sqlite_upgrade import new_file, schema_of

CLIENT = a_client(secrets=(ClientSecret(b"a", 7),), scopes=("system/*.rs",))


@pytest.fixture
async def older(tmp_path: Path) -> Path:
    """A file of schema version 9 with a client."""
    path = tmp_path / "fhirpub.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    await store.put_client(CLIENT)
    await store.stop()
    to_version_9(path)
    return path


@pytest.fixture
async def reopen(older: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(older, deadline_seconds=30)) as reopen:
        yield reopen


async def test_a_file_of_version_9_gets_what_a_new_one_has(
    older: Path, tmp_path: Path, reopen: Reopen
) -> None:
    await reopen()

    assert schema_of(older) == schema_of(await new_file(tmp_path))


async def test_a_client_of_an_older_file_may_call_from_everywhere_until_it_gets_networks(
    reopen: Reopen,
) -> None:
    store = await reopen()
    limited = replace(CLIENT, networks=("192.0.2.0/24",))

    assert await store.client(CLIENT.id) == CLIENT
    assert await store.replace_client(limited, over=CLIENT)
    assert await store.client(CLIENT.id) == limited


async def test_tokens_are_revoked_in_an_older_file(reopen: Reopen) -> None:
    store, token = await reopen(), RevokedToken(CLIENT.id, "a", 7)

    assert await store.revoke_token(token, most=1)
    assert await store.revoked_tokens(CLIENT.id) == [token]


@pytest.mark.parametrize("steps", [1, 2, None])
async def test_a_process_that_is_killed_amid_the_upgrade_leaves_the_older_file(
    older: Path, reopen: Reopen, steps: int | None
) -> None:
    kill_amid_upgrade(older, 9, steps=steps)

    assert await (await reopen()).client(CLIENT.id) == CLIENT
