"""A file of schema version 7 gets room for documents in its versions, and keeps those it has."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.contracts.store.attached import holding
from fhirpub.testing.service import RunningService
from fhirpub.testing.store_contract import (
    FOREVER,
    LAB,
    Reopen,
    a_blob,
    a_version,
    reopening,
    successor,
    whole_blobs,
)
from tests.bodies import register_body
from tests.storage.older_sqlite_files import kill_amid_upgrade, to_version_7
from tests.storage.test_sqlite_upgrade import new_file, schema_of

BLOB, UNNAMED = a_blob(), a_blob()
OLD = a_version(documents=(BLOB.sha256,))


@pytest.fixture
async def older(tmp_path: Path) -> Path:
    """A file of schema version 7 with a small document, and with one that nothing names."""
    path = tmp_path / "fhirpub.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    await store.add(LAB, OLD, [BLOB])
    await store.add(LAB, a_version(), [UNNAMED])
    await store.stop()
    to_version_7(path)
    return path


@pytest.fixture
async def reopen(older: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(older, deadline_seconds=30)) as reopen:
        yield reopen


async def test_a_file_of_version_7_gets_what_a_new_one_has(
    older: Path, tmp_path: Path, reopen: Reopen
) -> None:
    await reopen()

    assert schema_of(older) == schema_of(await new_file(tmp_path))


async def test_a_small_document_of_an_older_file_stays_where_it_is(reopen: Reopen) -> None:
    store = await reopen()
    await store.add(LAB, successor(OLD))

    assert await store.version(LAB, OLD.id, 1) == OLD
    assert await store.sweep_blobs(LAB, before=FOREVER) == 1
    assert await whole_blobs(store, LAB, [BLOB.sha256, UNNAMED.sha256]) == {BLOB.sha256: BLOB}


async def test_a_version_in_an_older_file_holds_its_documents_after_the_upgrade(
    reopen: Reopen,
) -> None:
    store, added = await reopen(), holding(a_blob())
    await store.add(LAB, added)

    assert await store.latest(LAB, added.id) == added


@pytest.mark.parametrize("steps", [1, 3, None])
async def test_a_process_that_is_killed_amid_the_upgrade_leaves_the_older_file(
    older: Path, reopen: Reopen, steps: int | None
) -> None:
    kill_amid_upgrade(older, 7, steps=steps)
    store = await reopen()

    assert await store.latest(LAB, OLD.id) == OLD
    assert await whole_blobs(store, LAB, [BLOB.sha256]) == {BLOB.sha256: BLOB}


def test_a_report_of_an_older_file_keeps_its_document_through_an_update(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        lab = service.integrator()
        registered = lab.register(register_body("old"))
        address = registered.headers["location"].removeprefix(service.base_url)
        document = lab.get(address).json["presentedForm"][0]["data"]
    to_version_7(tmp_path / "fhirpub.db")

    with RunningService(tmp_path) as service:
        again = service.another_client(lab.tenant)
        report = address.partition("/_history")[0]
        again.patch(
            f"{service.base_url}{report}",
            {"resourceType": "DiagnosticReport", "status": "amended"},
        )
        updated = again.get(report).json

    assert updated["meta"]["versionId"] == "2"
    assert updated["presentedForm"][0]["data"] == document
    assert base64.b64decode(document)
