"""The mark of the embedded store passes versions without events, and leaves exceptions pending."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.storage.contract import Version
from fhirpub.storage.sqlite import outbox
from fhirpub.storage.sqlite.database import transaction
from fhirpub.storage.sqlite.files import make_tables
from fhirpub.storage.sqlite.outbox import _Key, _Step, read_page
from fhirpub.storage.sqlite.schema import VERSION_COLUMNS
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.sqlite.tables import webhooks as sql
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.samples import LAB, a_version
from fhirpub.testing.store_contract import Reopen, reopening
from fhirpub.testing.webhook_contract import EVENTS, events_added, pending_keys

PASSED = 1_000
"""So many rows the mark passes at a time: a tenth, which takes a tenth of the time."""
_REPEAT = "WITH n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is."""
    return tmp_path / "fhirpub.db"


@pytest.fixture
async def reopen(path: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(path, deadline_seconds=30)) as reopen:
        yield reopen


@pytest.fixture
async def store(reopen: Reopen) -> SqliteStore:
    """An empty store."""
    store = await reopen()
    assert isinstance(store, SqliteStore)
    return store


@pytest.fixture
def _short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the mark pass fewer rows at a time."""
    monkeypatch.setattr(outbox, "MAX_ROWS_PASSED", PASSED)


def add_silent(path: Path, count: int) -> None:
    """Add versions without events, as quickly as SQLite can."""
    values = VERSION_COLUMNS.replace("id,", "hex(randomblob(16)),", 1)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(
            f"{_REPEAT} INSERT INTO version ({VERSION_COLUMNS}) "
            f"SELECT {values} FROM n, (SELECT * FROM version WHERE events = x'5b5d' LIMIT 1)",
            (count,),
        )
        connection.commit()


def outbox_of(path: Path) -> tuple[int, list[int]]:
    """Return the mark and the exceptions."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        ((mark, _end),) = connection.execute(sql.MARK_AND_END)
        exceptions = connection.execute("SELECT number FROM relay_exception ORDER BY number")
        return mark, [number for (number,) in exceptions.fetchall()]


def loud(**changes: object) -> Version:
    return a_version(events=EVENTS, **changes)


async def add_before_silent(store: SqliteStore, path: Path) -> Version:
    """Add a version with events, and 301 without any; return the first."""
    version = loud()
    await store.add(LAB, version)
    await store.add(LAB, a_version())
    add_silent(path, 300)
    return version


def key_of(version: Version) -> tuple[str, int]:
    return version.id, version.version


async def test_what_stands_where_a_step_of_the_mark_ends_stays_pending(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MAX_ROWS_PASSED", 3)
    versions = [loud() for _ in range(5)]
    for version in versions:
        await store.add(LAB, version)

    await store.mark_published([key_of(versions[4])])

    assert await pending_keys(store) == [key_of(version) for version in versions[:4]]


async def test_what_is_published_in_order_moves_the_mark_and_leaves_nothing(
    store: SqliteStore, path: Path
) -> None:
    for count in (3, 6):
        await events_added(store, [a_version() for _ in range(3)])
        await store.mark_published(await pending_keys(store))

        assert outbox_of(path) == (count, [])


async def test_few_versions_without_events_are_passed_by_the_next_entry_only(
    store: SqliteStore, path: Path
) -> None:
    for _ in range(50):
        await store.add(LAB, a_version())

    assert await pending_keys(store) == []
    assert outbox_of(path) == (0, [])

    version = loud()
    await store.add(LAB, version)
    await store.mark_published([key_of(version)])
    assert outbox_of(path) == (51, [])


async def test_many_versions_without_events_are_passed_when_they_were_read(
    store: SqliteStore, path: Path
) -> None:
    await store.add(LAB, a_version())
    add_silent(path, 200)

    assert await pending_keys(store) == []
    assert outbox_of(path) == (201, [])


async def test_members_do_not_hold_the_mark_back(store: SqliteStore, path: Path) -> None:
    report = loud(members=tuple(a_result() for _ in range(150)))
    await store.add(LAB, report)
    await store.mark_published(await pending_keys(store))
    assert outbox_of(path) == (1, [])

    assert await pending_keys(store) == []
    assert outbox_of(path) == (151, [])


async def test_an_entry_that_is_never_published_does_not_hold_the_mark_back(
    store: SqliteStore, reopen: Reopen, path: Path
) -> None:
    faulty = await add_before_silent(store, path)

    assert await pending_keys(store) == [key_of(faulty)]
    assert outbox_of(path) == (302, [1])

    again = await reopen()
    assert await pending_keys(again) == [key_of(faulty)]
    assert await again.outbox_contains([key_of(faulty)]) == {key_of(faulty)}


@pytest.mark.parametrize("reads", [1, 2])
async def test_an_entry_that_became_an_exception_can_be_published(
    store: SqliteStore, path: Path, reads: int
) -> None:
    entry = await add_before_silent(store, path)
    for _ in range(reads):
        assert await pending_keys(store) == [key_of(entry)]

    await store.mark_published([key_of(entry)])

    assert outbox_of(path) == (302, [])
    assert await pending_keys(store) == []


@pytest.mark.usefixtures("_short_steps")
async def test_entries_far_apart_are_all_found_by_one_call(store: SqliteStore, path: Path) -> None:
    entries = [loud() for _ in range(3)]
    await store.add(LAB, a_version())
    for entry in entries:
        add_silent(path, PASSED + 10)
        await store.add(LAB, entry)
    add_silent(path, 3 * PASSED)

    async with asyncio.timeout(60):
        assert await pending_keys(store, limit=2) == [key_of(entry) for entry in entries[:2]]
        assert await pending_keys(store, limit=10) == [key_of(entry) for entry in entries]
    assert outbox_of(path)[0] == 3 * (PASSED + 11) + 3 * PASSED + 1


@pytest.mark.usefixtures("_short_steps")
async def test_a_page_that_many_entries_nearly_fill_is_filled_from_far_behind(
    store: SqliteStore, path: Path
) -> None:
    entries = [loud() for _ in range(151)]
    for entry in entries[:-1]:
        await store.add(LAB, entry)
    await store.add(LAB, a_version())
    add_silent(path, PASSED + 200)
    await store.add(LAB, entries[-1])

    async with asyncio.timeout(60):
        assert await pending_keys(store, limit=200) == [key_of(entry) for entry in entries]


@pytest.mark.usefixtures("_short_steps")
async def test_entries_far_behind_the_mark_are_published_and_those_between_stay(
    store: SqliteStore, path: Path
) -> None:
    entries = [loud() for _ in range(4)]
    await store.add(LAB, a_version())
    for entry in entries:
        await store.add(LAB, entry)
        add_silent(path, PASSED)

    await store.mark_published([key_of(entries[3]), key_of(entries[1])])

    assert outbox_of(path)[0] == 3 * PASSED + 5
    assert await pending_keys(store) == [key_of(entries[0]), key_of(entries[2])]


async def test_what_another_process_published_since_it_was_read_stays_published(
    store: SqliteStore, reopen: Reopen, path: Path
) -> None:
    await events_added(store, [a_version() for _ in range(4)])
    found = await pending_keys(store)
    await (await reopen()).mark_published([found[3], found[0]])

    await store.mark_published(found[1:2])

    assert outbox_of(path) == (4, [3])
    assert await pending_keys(store) == found[2:3]


class OvertakenStore(SqliteStore):
    """A store that another process overtakes between its first read of a step and the write."""

    def __init__(self, path: Path, other: SqliteStore, published: Sequence[_Key]) -> None:
        super().__init__(path, deadline_seconds=30)
        self._other = other
        self._published = published

    async def _take(self, step: _Step) -> bool:
        published, self._published = self._published, ()
        await self._other.mark_published(published)
        return await super()._take(step)


@pytest.mark.parametrize("theirs", [1, 2, 4])
async def test_a_step_that_another_process_overtakes_is_taken_from_where_that_has_come(
    store: SqliteStore, path: Path, theirs: int
) -> None:
    await events_added(store, [a_version() for _ in range(5)])
    keys = await pending_keys(store)
    overtaken = OvertakenStore(path, store, keys[theirs : theirs + 1])
    await overtaken.start()

    await overtaken.mark_published([keys[3], keys[0]])
    await overtaken.stop()

    left = [key for key in keys if keys.index(key) not in (0, 3, theirs)]
    assert await pending_keys(store) == left
    assert outbox_of(path)[0] == max(theirs, 3) + 1


async def test_a_page_that_another_process_overtakes_is_still_right(
    store: SqliteStore, path: Path
) -> None:
    entry = await add_before_silent(store, path)
    later = loud()
    await store.add(LAB, later)
    overtaken = OvertakenStore(path, store, [key_of(later)])
    await overtaken.start()

    found = await pending_keys(overtaken)
    await overtaken.mark_published([key_of(entry)])
    await overtaken.stop()

    assert found == [key_of(entry), key_of(later)]
    assert outbox_of(path) == (303, [])


async def test_a_store_that_was_started_again_knows_no_page(
    store: SqliteStore, path: Path
) -> None:
    await events_added(store, [a_version() for _ in range(3)])
    found = await pending_keys(store)
    await store.stop()
    await store.start()

    await store.mark_published(found[1:])

    assert outbox_of(path) == (3, [1])
    assert await pending_keys(store) == found[:1]


async def test_an_entry_that_becomes_an_exception_during_a_read_is_found_once(
    store: SqliteStore, path: Path
) -> None:
    await events_added(store, [a_version() for _ in range(2)])
    found = await pending_keys(store)
    with (
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader,
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):

        def publish_second(statement: str) -> None:
            if "relay_exception AS e" in statement:
                with transaction(other, "BEGIN IMMEDIATE"):
                    other.execute(sql.MOVE_MARK, (2, 0))
                    other.execute(sql.ADD_EXCEPTIONS, ("[1]",))

        reader.set_trace_callback(publish_second)
        _page, entries = read_page(reader, limit=10)

    assert [(entry.id, entry.version) for _tenant, entry in entries] == found
    assert outbox_of(path) == (2, [1])


async def test_the_versions_of_a_resource_stay_in_order_when_the_clock_steps_back(
    store: SqliteStore,
) -> None:
    first = loud(updated=2_000)
    second = replace(first, version=2, updated=1_000)
    await store.add(LAB, first)
    await store.add(LAB, second)

    assert await pending_keys(store) == [(first.id, 1), (first.id, 2)]


def test_versions_without_events_are_passed_over_by_the_beginning_of_their_rows(
    path: Path,
) -> None:
    only_the_size = 0x40  # OPFLAG_LENGTHARG: the column is not loaded
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        make_tables(connection)
        program = connection.execute(f"EXPLAIN {sql.NUMBERS_BEHIND}", (1, 1)).fetchall()

    assert [step[6] for step in program if step[1] == "Column"] == [only_the_size]
