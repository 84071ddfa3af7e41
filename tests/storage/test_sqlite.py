"""The embedded store fulfils the contract, and its file survives what files must survive."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.contract import SMALL_BYTES, SearchQuery
from fhirpub.storage.criteria import (
    LAST_UPDATED,
    NEWEST_FIRST,
    Criterion,
    Order,
    TimeMatch,
    TokenMatch,
    encode,
)
from fhirpub.storage.sqlite import blobs
from fhirpub.storage.sqlite import schema as sql
from fhirpub.storage.sqlite.search.pages import FIRST_COUNT, best_source
from fhirpub.storage.sqlite.search.sources import Source, sources_of
from fhirpub.storage.sqlite.search.statements import SearchStatements, search_statements
from fhirpub.storage.sqlite.store import SqliteStore, from_url
from fhirpub.storage.sqlite.tables import client_activity, clients
from fhirpub.storage.store import Store
from fhirpub.storage.upgrades.versions import SchemaVersion
from fhirpub.testing.samples import new_member_id
from fhirpub.testing.store_contract import (
    LAB,
    Reopen,
    StoreContract,
    a_blob,
    a_key,
    a_version,
    add_all,
    found_by,
    has,
    match,
    new_id,
    query,
    reopening,
    text,
    token,
    wanting,
)

R = TypeVar("R")

ROOT = Path(__file__).parents[2]

PROCESS = """
import asyncio, json, os, sys
from dataclasses import replace
from pathlib import Path
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.store_contract import LAB, a_version
from fhirpub.testing.webhook_contract import a_delivery

store = SqliteStore(Path(sys.argv[1]), deadline_seconds=30)

async def main():
    await store.start()
{body}
    await store.stop()

asyncio.run(main())
"""

ADDING_THE_SAME_KEYS = """
    print("ready", flush=True)
    keys = json.loads(sys.stdin.readline())
    async def add(key):
        version = a_version(id=key, body=sys.argv[2].encode())
        return key if await store.add(LAB, version) else None
    won = await asyncio.gather(*(add(key) for key in keys))
    print(json.dumps([key for key in won if key]))
"""

APPENDING_THE_SAME_EVENTS = """
    print("ready", flush=True)
    events = json.loads(sys.stdin.readline())
    while missing := set(events) - await store.existing_deliveries("e", events):
        left = sorted(missing, key=events.index)
        last = (await store.last_sequences(["e"])).get("e", 0)
        places = enumerate(left[:5], start=last + 1)
        await store.append([a_delivery("e", n, event_id=event) for n, event in places])
    print("done")
"""

ADDING_WITHOUT_END = """
    async def add():
        while True:
            version = a_version(body=os.urandom(3000))
            if await store.add(LAB, version):
                os.write(1, version.id.encode() + b"\\n")
    await asyncio.gather(*(add() for _ in range(32)))
"""

WITHOUT_RIGHT_TO_WRITE = """
    found = await store.latest(LAB, sys.argv[2])
    print("read" if found else "nothing")
    for call in (store.add(LAB, a_version()), store.check()):
        try:
            await call
        except StoreUnavailable as refused:
            print(refused.reason)
"""

DROP_PRIVILEGES = "os.geteuid() or os.setuid(65534)\n"


def process(body: str, *arguments: str, before: str = "") -> subprocess.Popen[str]:
    code = PROCESS.format(body=body).replace("asyncio.run(", f"{before}asyncio.run(")
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
    )


def wait_until_ready(started: subprocess.Popen[str]) -> None:
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"


def send(started: subprocess.Popen[str], names: list[str]) -> None:
    assert started.stdin is not None
    started.stdin.write(json.dumps(names) + "\n")
    started.stdin.flush()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "fhirpub.db"


@pytest.fixture
async def reopen(path: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(path, deadline_seconds=10)) as reopen:
        yield reopen


@pytest.fixture
async def store(reopen: Reopen) -> Store:
    return await reopen()


@pytest.fixture
async def other_store(reopen: Reopen, store: Store) -> Store:
    return await reopen()


@pytest.fixture
async def hasty(path: Path, store: Store) -> AsyncGenerator[SqliteStore]:
    """Another store on the same data, with a short deadline."""
    hasty = SqliteStore(path, deadline_seconds=0.2)
    await hasty.start()
    yield hasty
    await hasty.stop()


class TestSqliteStore(StoreContract):
    """The contract with the fixtures of this module."""


async def test_the_version_of_the_schema_is_what_the_last_upgrade_wrote(store: Store) -> None:
    version = await store.schema_version()

    assert version == SchemaVersion(sql.SCHEMA_VERSION, sql.USABLE_FROM)


# Several processes


async def test_two_processes_that_add_the_same_keys_have_one_winner_for_each(
    path: Path, reopen: Reopen
) -> None:
    keys = [new_id() for _ in range(2_000)]
    # Neither finds a file: they also race to create the tables.
    processes = [process(ADDING_THE_SAME_KEYS, str(path), name) for name in "ab"]
    for item in processes:
        wait_until_ready(item)
    for item in processes:
        send(item, random.sample(keys, len(keys)))

    won = [set(json.loads(item.communicate(timeout=60)[0])) for item in processes]

    assert won[0] | won[1] == set(keys)
    assert not won[0] & won[1]
    store = await reopen()
    for key in keys:
        stored = await store.latest(LAB, key)
        assert stored is not None
        assert stored.body == (b"a" if key in won[0] else b"b")


async def test_two_processes_that_append_the_same_events_leave_no_gap_and_no_duplicate(
    path: Path, reopen: Reopen
) -> None:
    events = [f"evt_{number}" for number in range(300)]
    processes = [process(APPENDING_THE_SAME_EVENTS, str(path)) for _ in range(2)]
    for item in processes:
        wait_until_ready(item)
    for item in processes:
        send(item, random.sample(events, len(events)))

    done = [item.communicate(timeout=60)[0] for item in processes]

    assert done == ["done\n"] * 2
    found = await (await reopen()).scan_deliveries(limit=1_000)
    assert [delivery.sequence for delivery in found] == list(range(1, 301))
    assert {delivery.event_id for delivery in found} == set(events)


@pytest.mark.parametrize("attempt", range(5))
async def test_stores_that_start_at_once_on_no_file_all_start(path: Path, attempt: int) -> None:
    stores = [SqliteStore(path, deadline_seconds=10) for _ in range(12)]

    await asyncio.gather(*(item.start() for item in stores))

    version = a_version()
    assert await stores[0].add(LAB, version)
    assert [await item.latest(LAB, version.id) for item in stores] == [version] * 12
    for item in stores:
        await item.stop()


async def test_writes_that_read_first_wait_for_one_another(
    store: Store, other_store: Store
) -> None:
    async def rotate(own: Store, name: str) -> int:
        rotated = 0
        for number in range(100):
            unretired = [key.kid for key in await own.signing_keys("sandbox") if not key.retired]
            new = a_key(f"{name}{number}", created=number + 1)
            rotated += await own.rotate_signing_key(new, expected=unretired)
        return rotated

    rotated = await asyncio.gather(rotate(store, "a"), rotate(other_store, "b"))

    # Of two that have read the same, one wins.
    assert len(await store.signing_keys("sandbox")) == sum(rotated) >= 100


@pytest.mark.slow
async def test_what_was_acknowledged_survives_a_kill_of_the_writer(
    path: Path, reopen: Reopen
) -> None:
    acknowledged: set[str] = set()
    for number in range(10):
        with process(ADDING_WITHOUT_END, str(path)) as writer:
            assert writer.stdout is not None
            acknowledged |= {writer.stdout.readline().strip() for _ in range(60)}
            await asyncio.sleep(0.02 + number * 0.02)
            writer.send_signal(signal.SIGKILL)
            # Not with communicate(), which skips what arrived together with those lines. The
            # kill may have cut the last line.
            acknowledged |= {*writer.stdout.read().split("\n")[:-1]}
        assert writer.returncode == -signal.SIGKILL

        store = await reopen()
        lost = [name for name in acknowledged if await store.latest(LAB, name) is None]
        await store.stop()

        assert not lost
        with contextlib.closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert len(acknowledged) > 500


# The file


async def test_the_files_are_their_owners_alone(path: Path, store: Store) -> None:
    await store.add(LAB, a_version())

    modes = {item.name: stat.S_IMODE(item.stat().st_mode) for item in path.parent.iterdir()}

    assert modes == dict.fromkeys([path.name, f"{path.name}-shm", f"{path.name}-wal"], 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def size_of(path: Path) -> int:
    return path.stat().st_size


async def test_the_journal_is_moved_into_the_file_before_the_writer_has_to(
    path: Path, store: Store
) -> None:
    for number in range(9):  # 18 MB, less than what the writer moves
        assert await store.add(LAB, a_version(body=b'"%d%s"' % (number, b"x" * 2_000_000)))

    async with asyncio.timeout(20):
        while size_of(path) < 5_000_000:  # what is moved depends on when the thread begins
            await asyncio.sleep(0.01)


async def test_a_file_of_a_newer_release_is_refused(path: Path, store: Store) -> None:
    await store.stop()
    newer = sql.SCHEMA_VERSION + 6
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {newer}")

    with pytest.raises(ConfigurationError, match=f"{newer}.*{sql.SCHEMA_VERSION}"):
        await SqliteStore(path, deadline_seconds=1).start()


@pytest.fixture
def theirs(path: Path) -> Path:
    """Another program's database."""
    path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    return path


@pytest.fixture
def letter(path: Path) -> Path:
    """A file that is no database."""
    path.parent.mkdir()
    path.write_bytes(b"Dear Sir or Madam, " * 100)
    return path


@pytest.mark.parametrize(
    ("file", "reason"), [("theirs", "another program"), ("letter", "not an SQLite database")]
)
def test_a_file_that_is_not_ours_is_refused_and_left_alone(
    request: pytest.FixtureRequest, file: str, reason: str
) -> None:
    path: Path = request.getfixturevalue(file)
    before = path.read_bytes()

    with pytest.raises(ConfigurationError, match=reason):
        asyncio.run(SqliteStore(path, deadline_seconds=1).start())

    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("place", ["file/x.db", "directory"])
def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()

    with pytest.raises(ConfigurationError, match="cannot be made or opened"):
        asyncio.run(SqliteStore(tmp_path / place, deadline_seconds=1).start())


def test_a_relative_url_in_a_folder_that_was_deleted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()

    with pytest.raises(ConfigurationError, match="the working directory was deleted"):
        from_url("sqlite:///x.db", deadline_seconds=1)


# Faults of the machine


@pytest.fixture
def public_path() -> Iterator[Path]:
    """A file in a directory that another user may enter."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory / "fhirpub.db"
    shutil.rmtree(directory)


async def test_a_file_that_cannot_be_written_is_read_and_otherwise_unavailable(
    public_path: Path,
) -> None:
    store, version = SqliteStore(public_path, deadline_seconds=5), a_version()
    await store.start()
    await store.add(LAB, version)
    for item in public_path.parent.iterdir():
        item.chmod(0o444)

    child = process(WITHOUT_RIGHT_TO_WRITE, str(public_path), version.id, before=DROP_PRIVILEGES)
    output = await asyncio.to_thread(child.communicate)

    await store.stop()
    assert output[0].splitlines() == ["read", "SQLITE_READONLY", "SQLITE_READONLY"]


async def test_a_file_that_was_moved_takes_no_writes(path: Path, store: Store) -> None:
    version = a_version()
    moved = await asyncio.to_thread(path.rename, path.with_name("moved.db"))

    with pytest.raises(StoreUnavailable) as refused:
        await store.add(LAB, version)
    await asyncio.to_thread(moved.rename, path)

    assert refused.value.reason.startswith("the file was moved, deleted or replaced")
    assert await store.latest(LAB, version.id) is None
    assert await store.add(LAB, version)


async def test_a_file_that_was_moved_is_seen_by_a_check(path: Path, store: Store) -> None:
    await asyncio.to_thread(path.rename, path.with_name("moved.db"))

    with pytest.raises(StoreUnavailable):
        await store.check()


@pytest.mark.parametrize("instead", ["nothing", "another store"])
async def test_a_file_that_was_deleted_or_replaced_takes_no_writes(
    path: Path, store: Store, instead: str
) -> None:
    await store.check()
    await asyncio.to_thread(path.unlink)
    if instead == "another store":
        await asyncio.to_thread(path.touch)

    with pytest.raises(StoreUnavailable):
        await store.add(LAB, a_version())


async def test_a_full_disk_is_unavailable_and_passes(store: SqliteStore) -> None:
    assert store._file is not None
    writer = store._file._writer
    kept = a_version()
    await store.add(LAB, kept)
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StoreUnavailable) as refused:
        await store.add(LAB, a_version(body=bytes(100_000)))
    writer.execute("PRAGMA max_page_count = 1000000")

    assert refused.value.reason == "SQLITE_FULL"
    assert await store.latest(LAB, kept.id) == kept
    assert await store.add(LAB, a_version(body=bytes(100_000)))


async def test_an_error_of_the_disk_is_unavailable_and_passes(path: Path, store: Store) -> None:
    kept, lost = a_version(), a_version(body=bytes(100_000), value="secret")
    await store.add(LAB, kept)
    limit, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (path.with_name(path.name + "-wal").stat().st_size, hard)
    )

    try:
        with pytest.raises(StoreUnavailable) as refused:
            await store.add(LAB, lost)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))

    assert refused.value.reason.startswith("SQLITE_IOERR")
    assert await store.latest(LAB, kept.id) == kept
    assert await store.latest(LAB, lost.id) is None
    assert await store.add(LAB, lost)


async def when_possible(call: Callable[[], Awaitable[R]]) -> R:
    """Call a store again and again where one call takes longer than its short deadline."""
    until = time.monotonic() + 60
    while True:
        try:
            return await call()
        except StoreUnavailable:
            if time.monotonic() > until:
                raise


async def test_a_file_locked_for_too_long_is_unavailable_for_writes_alone(
    path: Path, store: Store, hasty: SqliteStore
) -> None:
    version = a_version()
    await store.add(LAB, version)

    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as blocking:
        blocking.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await hasty.add(LAB, a_version())
        with pytest.raises(StoreUnavailable):
            await hasty.check()
        waited = time.monotonic() - begun
        assert await when_possible(lambda: hasty.latest(LAB, version.id)) == version
        page = await when_possible(lambda: hasty.search(LAB, query()))
        assert page.versions == (version,)
        blocking.execute("ROLLBACK")

    assert waited < 20
    assert await when_possible(lambda: hasty.add(LAB, a_version()))


async def test_a_write_beyond_the_deadline_is_unavailable_and_happens_all_the_same(
    store: Store, hasty: SqliteStore
) -> None:
    version, written = a_version(), threading.Event()
    assert hasty._file is not None
    slow = asyncio.ensure_future(hasty._file.write(lambda _connection: written.wait(60)))
    await asyncio.sleep(0.05)

    begun = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await hasty.add(LAB, version)
    waited = time.monotonic() - begun
    written.set()
    await asyncio.gather(slow, return_exceptions=True)
    await hasty.stop()

    assert waited < 20
    assert await store.latest(LAB, version.id) == version


async def test_reads_beyond_the_deadline_end_and_free_their_threads(hasty: SqliteStore) -> None:
    def endless(connection: sqlite3.Connection) -> object:
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        return connection.execute(f"{numbers} SELECT count(*) FROM n").fetchall()

    assert hasty._file is not None
    ended = await asyncio.gather(
        *(hasty._file.read(endless) for _ in range(12)), return_exceptions=True
    )

    assert all(isinstance(value, StoreUnavailable) for value in ended)
    assert await when_possible(hasty.count) == 0


async def test_a_version_that_cannot_be_written_harms_no_other(store: Store) -> None:
    good = [a_version() for _ in range(10)]
    bad = a_version(version=2**70)

    results = await asyncio.gather(
        *(store.add(LAB, version) for version in (*good[:5], bad, *good[5:])),
        return_exceptions=True,
    )

    assert isinstance(results.pop(5), OverflowError)
    assert results == [True] * 10


async def test_versions_that_arrive_together_are_one_statement(store: SqliteStore) -> None:
    blobs = [a_blob() for _ in range(20)]
    statements: set[str] = set()  # the callback gets one again for each step of a trigger
    assert store._file is not None
    store._file._writer.set_trace_callback(statements.add)

    await asyncio.gather(
        *(store.add(LAB, a_version(documents=(blob.sha256,)), [blob]) for blob in blobs)
    )

    assert len(statements) == 1


async def test_of_one_key_twice_in_a_batch_the_first_wins(store: Store) -> None:
    first = a_version(body=b"first")

    added = await asyncio.gather(
        store.add(LAB, first), store.add(LAB, replace(first, body=b"second"))
    )

    assert list(added) == [True, False]
    assert await store.latest(LAB, first.id) == first


async def test_no_statement_takes_more_parameters_than_any_sqlite_allows(
    store: SqliteStore,
) -> None:
    assert store._file is not None
    store._file._writer.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766)
    blobs = [a_blob(b"%d" % number) for number in range(7_000)]
    names = tuple(blob.sha256 for blob in blobs)

    added = await asyncio.gather(
        store.add(LAB, a_version(documents=names), blobs),
        *(store.add(LAB, a_version()) for _ in range(300)),
    )

    assert all(added)


async def test_megabytes_are_read_away_from_the_event_loop(store: SqliteStore) -> None:
    large = a_version(body=bytes(SMALL_BYTES + 1))
    await store.add(LAB, large)

    assert store._file is not None
    rows = store._file.at_once(sql.LATEST_IF_SMALL, (large.id, LAB))

    assert rows is not None
    assert rows[0][-4:] == (None, None, None, None)


# Query plans

ID = new_id()
MIXED = (TokenMatch("s", None), TokenMatch(None, "v"))


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (query(), "version_by_time (tenant=? AND type=?"),
        (query(ids=[ID]), "version_key (id=?"),
        (query(ids=[ID, new_id()]), "version_key (id=?"),
        (query(match("s"), ids=[ID]), "version_key (id=?"),
        (query(match("s")), "version_by_system (tenant=? AND type=? AND system=?"),
        (query(match("s") + match("t")), "version_by_system (tenant=? AND type=? AND system=?"),
        (query(match(None, "v")), "version_by_value (tenant=? AND type=? AND value=?"),
        (query(match("s", "v")), "version_by_value (tenant=? AND type=? AND value=?"),
        (
            query(match("s", "v") + match("t", "w")),
            "version_by_value (tenant=? AND type=? AND value",
        ),
        (query(match("s"), match(None, "v")), "version_by_value (tenant=? AND type=? AND value=?"),
        (query(MIXED), "version_by_time (tenant=? AND type=?"),
    ],
)
@pytest.mark.parametrize("after", [None, (1, ID)])
async def test_searches_go_through_an_index(
    path: Path, store: Store, wanted: SearchQuery, index: str, after: tuple[int, str] | None
) -> None:
    statements = search_statements(LAB, replace(wanted, after=after))
    for statement in (statements.page, statements.total):
        plan = plan_of(path, statement, statements.parameters)

        assert any(index in step for step in plan)
        assert not scans_in(plan)
        if statement is statements.page:
            assert any("n USING INDEX version_key (id=? AND version=?)" in step for step in plan)


CODE, OTHER_CODE = has("code", token("a")), has("code", token("a"), token("b", "s"))
PERSON = has("subject", TokenMatch("Patient", "x"), TokenMatch("Patient", "", ID))
RESULT = has("result", TokenMatch("Observation", new_member_id()))
BY_VALUE = "PRIMARY KEY (field=? AND value"


@pytest.mark.parametrize(
    ("criteria", "index"),
    [
        ([CODE], BY_VALUE),
        ([OTHER_CODE], BY_VALUE),
        ([CODE, has("status", token("x"), negated=True)], BY_VALUE),
        ([has("date", TimeMatch(from_=1, until=9))], "PRIMARY KEY (field=? AND value>"),
        ([has("date", TimeMatch(after=9), TimeMatch(from_=1))], "PRIMARY KEY (field=? AND value>"),
        ([has("name", text("ash"))], "PRIMARY KEY (field=? AND value>? AND value<?)"),
        (
            [has("name", text("a"), text("b", "x"))],
            "PRIMARY KEY (field=? AND value>? AND value<?)",
        ),
        ([has("name", text("\U0010ffff"))], "PRIMARY KEY (field=? AND value>? AND value<?)"),
        ([has("name", text("a"), token("b"))], "version_by_time (tenant=? AND type=?"),
        ([has("name", text("a"), negated=True)], "version_by_time (tenant=? AND type=?"),
        ([PERSON], BY_VALUE),
        ([PERSON], "w USING COVERING INDEX version_key (id=?"),
        ([RESULT], BY_VALUE),
        ([RESULT], "w USING COVERING INDEX version_key (id=?"),
        ([RESULT], "m USING INTEGER PRIMARY KEY (rowid<?)"),
        ([has("date", TimeMatch(before=9))], "version_by_time (tenant=? AND type=?"),
        ([has("code", token(None, "s"))], "version_by_time (tenant=? AND type=?"),
        ([has("code", token("a"), negated=True)], "version_by_time (tenant=? AND type=?"),
        ([has(LAST_UPDATED, TimeMatch(from_=1))], "version_by_time (tenant=? AND type=?"),
    ],
)
@pytest.mark.parametrize("order", [NEWEST_FIRST, (Order("date"),)])
async def test_criteria_are_answered_from_an_index(
    path: Path, store: Store, criteria: list[Criterion], index: str, order: tuple[Order, ...]
) -> None:
    wanted = wanting(*criteria, order=order)
    source = next(iter(sources_of(LAB, wanted)), None)
    statements = search_statements(LAB, wanted, source)

    for statement in (statements.page, statements.total):
        plan = plan_of(path, statement, statements.parameters)

        assert any(index in step for step in plan), plan
        assert not scans_in(plan), plan


async def test_the_newest_of_one_value_are_found_without_sorting_all_of_them(
    path: Path, store: Store
) -> None:
    wanted = wanting(CODE)
    (source,) = sources_of(LAB, wanted)

    plan = plan_of(path, *_page_of(search_statements(LAB, wanted, source)))

    sorting = [step for step in plan if "TEMP B-TREE" in step]
    assert sorting == ["USE TEMP B-TREE FOR RIGHT PART OF ORDER BY"]


def _page_of(statements: SearchStatements) -> tuple[str, object]:
    return statements.page, statements.parameters


async def test_the_newest_since_a_moment_are_met_by_going_back_in_time(store: SqliteStore) -> None:
    versions = [found_by(("date", n, n + 1), updated=10_000 + n) for n in range(FIRST_COUNT + 5)]
    await add_all(store, versions)

    for since in (0, 3, FIRST_COUNT):
        page = await store.search(LAB, wanting(has("date", TimeMatch(after=since)), limit=10))

        assert list(page.versions) == versions[since:][::-1][:10]
        assert page.total == len(versions) - since


async def test_replaced_values_leave_nothing_behind(path: Path, store: Store) -> None:
    version = found_by(("code", "a", ""), ("date", 1, 2))
    await store.add(LAB, version)

    await store.replace_search(LAB, version.id, 1, encode([("code", "b", "")]))

    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT value FROM search_value").fetchall() == [("b",)]


async def test_of_several_criteria_the_rarest_leads(store: SqliteStore) -> None:
    await add_all(store, [found_by(("code", "a", ""), ("status", "x", "")) for _ in range(20)])
    rare = found_by(("code", "a", ""), ("status", "y", ""))
    await store.add(LAB, rare)
    wanted = wanting(CODE, has("status", token("y")))

    def chosen(connection: sqlite3.Connection) -> Source | None:
        return best_source(connection, LAB, wanted)[0]

    assert store._file is not None
    source = await store._file.read(chosen)

    assert source is not None
    assert source.parameters["sought"] == "y"
    assert (await store.search(LAB, wanted)).versions == (rare,)


@pytest.mark.parametrize("wanted", [query(), query(match("s"))])
async def test_lists_of_everything_are_not_sorted(
    path: Path, store: Store, wanted: SearchQuery
) -> None:
    statements = search_statements(LAB, wanted)

    plan = plan_of(path, statements.page, statements.parameters)

    assert not [step for step in plan if "TEMP B-TREE" in step]


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (sql.LATEST, "version_key (id=?)"),
        (sql.LATEST_IF_SMALL, "version_key (id=?)"),
        (sql.EXACT, "version_key (id=? AND version=?)"),
        (sql.EXACT_IF_SMALL, "version_key (id=? AND version=?)"),
        (sql.HISTORY, "version_key (id=? AND version<?)"),
        (sql.WALK, "version_key ((id,version)>(?,?))"),
        (sql.WALK, "members USING INTEGER PRIMARY KEY (rowid<?)"),
        (sql.MEMBERS, "members USING INTEGER PRIMARY KEY (rowid=?)"),
        (sql.MEMBERS, "version USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (blobs.BLOBS, "(tenant=? AND sha256=?)"),
        (blobs._FIND, "(tenant=? AND sha256=?)"),
        (blobs._STORED_PLACES, "blob_piece USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (blobs._UNNAMED, "blob_unnamed (tenant=? AND added<?)"),
        (blobs._SWEEP_PIECES, "blob_piece USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (sql.TENANT, "(id=?)"),
        (clients.CLIENT, "(id=?)"),
        (client_activity.COUNT_USED, "(owner=?)"),
    ],
)
async def test_every_other_question_goes_through_an_index(
    path: Path, store: Store, statement: str, index: str
) -> None:
    plan = plan_of(path, statement, ["1"] * statement.count("?"))

    assert any(index in step for step in plan)
    assert not scans_in(plan)
    assert not [step for step in plan if "TEMP B-TREE" in step]


def plan_of(path: Path, statement: str, parameters: object) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)  # type: ignore[arg-type]
        return [row[3] for row in rows]


def scans_in(plan: Sequence[str]) -> list[str]:
    """Return the steps that read a whole table, not a list or the result of another step."""
    harmless = ("VIRTUAL TABLE", "(subquery")
    scans = [name for name in plan if name.startswith("SCAN")]
    return [scan for scan in scans if not any(one in scan for one in harmless)]
