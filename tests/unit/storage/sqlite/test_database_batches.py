"""What is committed together: of one key the first, large documents, and into which file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import SMALL_BYTES, Blob, Version
from fhirpub.storage.sqlite import database as module
from fhirpub.storage.sqlite.blobs import Piece
from fhirpub.storage.sqlite.database import Database
from fhirpub.storage.sqlite.rows import PIECE_BYTES, Addition, OtherWrite, cost_of
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.samples import LAB, a_version
from fhirpub.testing.store_contract import a_blob
from tests.unit.storage.sqlite.probe import put

BODIES = "SELECT body FROM version ORDER BY rowid"


def addition(version: Version, *blobs: Blob) -> Addition:
    return Addition(LAB, version, blobs, now=1)


async def rows_of(database: Database, statement: str) -> list[Any]:
    return await database.read(lambda connection: connection.execute(statement).fetchall())


@pytest.mark.parametrize("others", [[], [OtherWrite(put(5), cost=1)]], ids=["alone", "beside"])
async def test_of_several_versions_with_one_key_the_first_is_added(
    database: Database, others: list[OtherWrite]
) -> None:
    version = a_version(body=b'{"n":0}')
    several = [a_version(id=version.id, body=b'{"n":%d}' % number) for number in range(3)]

    results = database._commit_now([*map(addition, several), *others])

    assert results[:3] == [True, False, False]
    assert await rows_of(database, BODIES) == [(b'{"n":0}',)]


async def test_each_version_whose_key_is_taken_is_refused_and_the_others_are_added(
    database: Database,
) -> None:
    taken = [a_version(), a_version()]
    await database.write(addition(taken[0]))
    await database.write(addition(taken[1]))
    new = [a_version(), a_version()]

    mixed = [taken[0], new[0], taken[1], new[1]]

    assert database._commit_now([*map(addition, mixed)]) == [False, True, False, True]
    assert len(await rows_of(database, BODIES)) == 4


async def test_all_keys_that_are_taken_are_found_before_the_others_are_added(
    database: Database,
) -> None:
    taken = [a_version() for _ in range(3)]
    for version in taken:
        await database.write(addition(version))

    found = database._write_batch([*map(addition, [*taken, a_version()])])

    assert found == [False, False, False, True]


async def test_a_large_document_is_complete_with_its_version_however_many_come_together(
    database: Database,
) -> None:
    blobs = [a_blob(os.urandom(SMALL_BYTES + 1)) for _ in range(2)]
    batch = [addition(a_version(documents=(one.sha256,)), one) for one in blobs]

    assert database._commit_now(batch) == [True, True]

    stored = await rows_of(database, "SELECT data FROM blob_bytes ORDER BY number")
    assert {data for (data,) in stored} == {one.data for one in blobs}


async def test_more_rows_than_one_statement_takes_are_added_together_or_not_at_all(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ROW_BATCH_SIZE", 8)
    taken = a_version()
    await database.write(addition(taken))
    new = [a_version() for _ in range(19)]

    found = database._commit_now([*map(addition, [*new, taken])])

    assert found == [True] * 19 + [False]
    assert len(await rows_of(database, BODIES)) == 20


async def test_a_version_with_members_has_one_result(database: Database) -> None:
    versions = [a_version(members=(a_result(), a_result())), a_version()]

    assert database._commit_now([*map(addition, versions)]) == [True, True]


async def test_a_batch_that_the_disk_refuses_is_not_tried_one_by_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def refuse(batch: Sequence[Any]) -> None:
        sizes.append(len(batch))
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(database, "_write_batch", refuse)

    with pytest.raises(sqlite3.OperationalError):
        database._commit_now([addition(a_version()) for _ in range(3)])

    assert sizes == [3]


async def test_pieces_take_turns_as_writes_of_their_tenant(database: Database) -> None:
    piece = Piece(LAB, a_blob(bytes(PIECE_BYTES + 1)), 0, now=1)
    owner_of = database._group._owner_of

    assert [owner_of(each) for each in (piece, OtherWrite(put(1), cost=1))] == [LAB, ""]


class Group:
    """What collects writes: notes the size of each."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def add(self, item: Any, *, size: int) -> None:
        assert size == item.cost
        self.sizes.append(size)

    async def drain(self) -> None:
        pass


async def test_a_write_counts_in_its_batch_as_long_as_it_takes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, version = Group(), addition(a_version())
    monkeypatch.setattr(database, "_group", group)

    database.write(version)
    database.write(put(1), size=4_000, index_rows=7)
    database.write(put(2))

    assert group.sizes == [version.cost, cost_of(4_000, 7), cost_of(0)]


def delete(path: Path) -> None:
    path.unlink()


def move(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


@pytest.mark.parametrize("change", [delete, move, replace])
async def test_nothing_is_written_into_a_file_that_is_no_longer_the_one_that_was_opened(
    database: Database, path: Path, change: Callable[[Path], None]
) -> None:
    await database.write(put(1))
    change(path)

    with pytest.raises(StoreUnavailable) as failed:
        await database.write(put(2))

    assert failed.value.reason == "the file was moved, deleted or replaced: restart the service"
