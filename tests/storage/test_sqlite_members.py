"""Members are rows of the statement, or at least the transaction, that adds their version."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import MAX_PAGE_BYTES, Version
from fhirpub.storage.criteria import encode
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.contracts.store.members import a_result, results
from fhirpub.testing.store_contract import LAB, OTHER, a_version, successor
from fhirpub.testing.webhook_contract import EVENTS, pending_keys

ROOT = Path(__file__).parents[2]

ADDING_PANELS_WITHOUT_END = """
import asyncio, sys
from pathlib import Path
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.store_contract import LAB
from tests.storage.test_sqlite_members import a_panel

async def main():
    store = SqliteStore(Path(sys.argv[1]), deadline_seconds=30)
    await store.start()
    while True:
        for count in (5, 700):
            panel = a_panel(count)
            await store.add(LAB, panel)
            print(panel.id, flush=True)

asyncio.run(main())
"""

VALUES = encode([("code", str(number), "loinc") for number in range(9)])


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(tmp_path / "fhirpub.db", deadline_seconds=30)
    await store.start()
    yield store
    await store.stop()


def writer_of(store: SqliteStore) -> sqlite3.Connection:
    assert store._file is not None
    return store._file._writer


def a_panel(count: int) -> Version:
    return a_version(members=tuple(a_result(search=VALUES) for _ in range(count)))


def panels_before_a_kill(path: Path, seconds: float) -> set[str]:
    """Return the ids that a process acknowledges which is killed so long after the first two."""
    command = [sys.executable, "-c", ADDING_PANELS_WITHOUT_END, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout is not None
        first = [writer.stdout.readline().strip() for _ in range(2)]
        time.sleep(seconds)
        writer.send_signal(signal.SIGKILL)
        return {*first, *writer.stdout.read().split("\n")[:-1]}


async def total_of_results(store: SqliteStore) -> int | None:
    return (await store.search(LAB, results(limit=0))).total


async def test_versions_with_members_that_arrive_together_are_one_statement(
    store: SqliteStore,
) -> None:
    statements: set[str] = set()
    writer_of(store).set_trace_callback(statements.add)

    await asyncio.gather(store.add(LAB, a_panel(5)), store.add(LAB, a_panel(5)))

    assert len(statements) == 1


async def test_two_thousand_members_take_no_more_parameters_than_any_sqlite_allows(
    store: SqliteStore,
) -> None:
    writer_of(store).setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766)

    added = await asyncio.gather(
        store.add(LAB, a_panel(2_000)), *(store.add(OTHER, a_version()) for _ in range(30))
    )

    assert all(added)
    assert await total_of_results(store) == 2_000


async def test_an_error_at_the_last_member_leaves_none_of_a_thousand(store: SqliteStore) -> None:
    panel = a_panel(1_000)
    *others, last = panel.members
    unwritable = replace(panel, members=(*others, replace(last, version=2**70)))

    with pytest.raises(OverflowError):
        await store.add(LAB, unwritable)

    assert await store.count() == 0
    assert await total_of_results(store) == 0
    assert await store.add(LAB, panel)


@pytest.mark.slow
async def test_a_kill_of_the_writer_leaves_all_members_of_a_version_or_none(
    tmp_path: Path,
) -> None:
    path = tmp_path / "killed.db"
    acknowledged: set[str] = set()
    for number in range(6):
        seconds = 0.03 + number * 0.017
        acknowledged |= await asyncio.to_thread(panels_before_a_kill, path, seconds)

    store = SqliteStore(path, deadline_seconds=30)
    await store.start()
    found: dict[str, Version] = {}
    after = ("", 0)
    while page := await store.scan(after=after):  # a writer may have had any time
        found |= {version.id: version for _tenant, version in page}
        after = max(found), 1
    total = await total_of_results(store)
    await store.stop()

    assert acknowledged <= found.keys()
    assert {len(version.members) for version in found.values()} == {5, 700}
    assert total == sum(len(version.members) for version in found.values())


async def test_a_refused_version_in_a_batch_takes_its_members_along_and_no_other(
    store: SqliteStore,
) -> None:
    taken = a_version()
    await store.add(LAB, taken)
    refused = replace(a_panel(3), id=taken.id)
    panels = [a_panel(3), refused, a_panel(3), a_version()]

    added = await asyncio.gather(*(store.add(LAB, panel) for panel in panels))

    assert list(added) == [True, False, True, True]
    assert await total_of_results(store) == 6
    scanned = {version.id: version for _tenant, version in await store.scan()}
    assert scanned == {version.id: version for version in (taken, *panels) if version != refused}


async def test_a_taken_key_of_a_member_harms_no_other_version_of_the_batch(
    store: SqliteStore,
) -> None:
    panel = a_panel(3)
    await store.add(LAB, panel)
    wrong, good = replace(a_panel(3), members=panel.members[1:2]), [a_panel(2), a_version()]

    outcomes = await asyncio.gather(
        *(store.add(LAB, version) for version in (good[0], wrong, good[1])),
        return_exceptions=True,
    )

    assert isinstance(outcomes.pop(1), StoreUnavailable)
    assert outcomes == [True, True]
    assert await store.latest(LAB, wrong.id) is None
    assert await total_of_results(store) == 5


async def test_members_between_versions_without_any_stay_with_their_own(
    store: SqliteStore,
) -> None:
    first, second = a_panel(2), a_panel(3)
    later = successor(first, members=(successor(first.members[1]), a_result()))
    versions = [a_version(), first, a_version(), second, later, a_version()]

    await asyncio.gather(*(store.add(LAB, version) for version in versions))

    scanned = [version for _tenant, version in await store.scan()]
    assert scanned == sorted(versions, key=lambda each: (each.id, each.version))


async def test_members_have_no_place_in_the_outbox(store: SqliteStore) -> None:
    panel = replace(a_panel(3), events=EVENTS)

    await store.add(LAB, panel)

    assert await pending_keys(store) == [(panel.id, 1)]


async def test_a_page_of_a_scan_ends_early_by_the_size_of_its_members(store: SqliteStore) -> None:
    large = a_result(body=bytes(MAX_PAGE_BYTES // 2))
    for _ in range(3):
        await store.add(LAB, a_version(members=(replace(large, id=a_result().id),)))

    assert len(await store.scan(limit=3)) == 2
