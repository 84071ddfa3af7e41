"""A file of schema version 3 gets a place for digests, and what it already stores has none."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.service import RunningService
from fhirpub.testing.store_contract import LAB, Reopen, a_version, reopening, successor
from tests.bodies import register_body
from tests.storage.older_sqlite_files import to_version_3
from tests.storage.test_sqlite_upgrade import schema_of, schema_of_upgraded_file

FIRST = a_version(body=b"b" * 300, response=b"r" * 20, digest=b"\x01" + bytes(32))
LARGE = a_version(body=b"b" * 300_000, response=b"r" * 20, digest=b"\x01" + bytes(32))
OLD = replace(FIRST, digest=b"")


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A file of schema version 3 with versions of a resource."""
    path = tmp_path / "fhirpub.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    await store.add(LAB, FIRST)
    await store.add(LAB, successor(FIRST))
    await store.stop()
    to_version_3(path)
    return path


@pytest.fixture
async def reopen(path: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(path, deadline_seconds=10)) as reopen:
        yield reopen


async def test_a_file_of_version_3_gets_what_a_new_one_has(
    path: Path, tmp_path: Path, reopen: Reopen
) -> None:
    await reopen()

    assert schema_of(path) == await schema_of_upgraded_file(tmp_path)


async def test_a_version_from_before_has_no_digest(reopen: Reopen) -> None:
    store = await reopen()

    assert await store.history(LAB, FIRST.id) == [successor(OLD), OLD]


@pytest.mark.parametrize("version", [FIRST, LARGE], ids=["small", "large"])
async def test_a_new_version_in_an_older_file_keeps_its_digest(
    reopen: Reopen, version: object
) -> None:
    store, added = await reopen(), replace(LARGE if version is LARGE else a_version(), digest=b"d")
    await store.add(LAB, added)

    assert await store.version(LAB, added.id, 1) == added
    assert await store.latest(LAB, added.id) == added


def test_what_was_registered_before_digests_is_replayed(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        lab = service.integrator()
        first = lab.register(register_body("old"))
    to_version_3(tmp_path / "fhirpub.db")

    with RunningService(tmp_path) as service:
        again = service.another_client(lab.tenant).register(register_body("old", conclusion="x"))

    assert again.status == 201
    assert again.body == first.body
