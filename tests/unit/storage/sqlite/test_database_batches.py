"""What is committed together: of one key the first, large documents, and into which file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import SMALL_BYTES, Blob, Version
from fhirpub.storage.sqlite.database import Database
from fhirpub.storage.sqlite.rows import Addition, OtherWrite, cost_of
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
