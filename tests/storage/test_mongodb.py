"""The store on MongoDB keeps the contract, and is certain of what it says, on a real server."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timezone
from pathlib import Path
from typing import Any, cast

import pymongo
import pymongo.monitoring
import pytest
from pymongo.synchronous.database import Database as PymongoDatabase

from fhirpub.errors import ConfigurationError, InvalidContent, StoreUnavailable, TooLarge
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.contract import MAX_PAGE_BYTES, SMALL_BYTES, SearchQuery, Version
from fhirpub.storage.criteria import LAST_UPDATED, Criterion, TimeMatch, TokenMatch
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb import server_checks as mongodb_server
from fhirpub.storage.mongodb import store as mongodb
from fhirpub.storage.mongodb.documents import MOST_BYTES
from fhirpub.storage.mongodb.search import page_and_total
from fhirpub.storage.mongodb.store import MongoStore, from_url
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import OutboxEntry
from fhirpub.tenant import Tenant
from fhirpub.testing.store_contract import (
    FOREVER,
    LAB,
    OTHER,
    Reopen,
    StoreContract,
    a_blob,
    a_key,
    a_version,
    add_all,
    found,
    found_by,
    has,
    keep,
    match,
    new_id,
    query,
    reopening,
    successor,
    token,
    wanting,
    whole_blobs,
)
from fhirpub.testing.webhook_contract import EVENTS
from tests.mongod.executable import executable
from tests.mongod.replica_set import ReplicaSet
from tests.mongodb_proxy import Fault, Proxy

Database = PymongoDatabase[dict[str, Any]]
Admin = pymongo.MongoClient[dict[str, Any]]


def start_mongod(folder: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start a server that is not as a member of a set should be; return it and its port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    command = [str(executable()), "--dbpath", str(folder), "--port", str(port)]
    command += ["--bind_ip", "127.0.0.1", "--setParameter", "enableTestCommands=1"]
    command += ["--wiredTigerCacheSizeGB", "0.5", *arguments]
    with (folder / "mongod.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log), port


@pytest.fixture(scope="session")
def address(replica_set: ReplicaSet) -> str:
    """The address of a replica set of one."""
    return replica_set.addresses[0]


@pytest.fixture(scope="session")
def admin(address: str) -> Iterator[Admin]:
    admin: Admin
    with pymongo.MongoClient(address, replicaSet="rs0") as admin:
        yield admin


@pytest.fixture
def url(address: str, admin: Admin) -> Iterator[str]:
    """A database with nothing in it."""
    name = f"t{new_id()}"
    yield f"mongodb://{address}/{name}?replicaSet=rs0"
    admin.drop_database(name)


def store_of(url: str, *, seconds: float = 10) -> MongoStore:
    return from_url(url, deadline_seconds=seconds, production=True)


@pytest.fixture
async def reopen(url: str) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: store_of(url)) as reopen:
        yield reopen


@pytest.fixture
async def store(reopen: Reopen) -> Store:
    return await reopen()


@pytest.fixture
async def other_store(reopen: Reopen, store: Store) -> Store:
    return await reopen()


@pytest.fixture(scope="module")
def shared(admin: Admin) -> Iterator[Database]:
    """The database of all tests of the contract."""
    shared = admin[f"t{new_id()}"]
    yield shared
    admin.drop_database(shared.name)


class TestMongoStore(StoreContract):
    """Its fixtures are those of this module, but for the database.

    Collections and indexes take far longer to make than anything that is done with them here.
    """

    @pytest.fixture
    def url(self, address: str, shared: Database) -> Iterator[str]:
        """Return where it is, with nothing in it."""
        yield f"mongodb://{address}/{shared.name}?replicaSet=rs0"
        for name in {*schema.COLLECTIONS} - {schema.STORE}:
            shared[name].delete_many({})
        shared[schema.STORE].update_one({"_id": schema.KEYS}, {"$set": {"keys": []}})


# What the URL says


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://",
        "mongodb://host",
        "mongodb://host/",
        "mongodb://host/?replicaSet=rs0",
        "mongodb://host:port/x",
        "mongodb://host/a b",
        "mongodb://host/x?replicaSt=rs0",
        "mongodb://host/x?maxPoolSize=many",
        "mongodb+srv://host:27017/x",
        "mongodb://user:pass:word@host/x",
        "mongodb://user:pass@word@host/x",
    ],
)
def test_a_url_that_names_no_database_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^\[storage\] url: must be mongodb:") as refused:
        from_url(url, deadline_seconds=1, production=True)

    assert "word" not in str(refused.value)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(
    "option",
    ["tlsCAFile=/no/such/file", f"tlsCAFile={__file__}", "tlsCertificateKeyFile=/no/such/file"],
)
def test_a_file_of_a_url_that_cannot_be_used_is_said_to_be_the_fault(option: str) -> None:
    with pytest.raises(ConfigurationError, match=r"a file that tlsCAFile, .* cannot be read"):
        from_url(f"mongodb://host/x?tls=true&{option}", deadline_seconds=1, production=True)


WEAK = (
    "w=1&journal=false&readConcernLevel=local&readPreference=secondary&retryWrites=false"
    "&retryReads=false&directConnection=true&wTimeoutMS=1&timeoutMS=1"
)


class Commands(pymongo.monitoring.CommandListener):
    """What the driver sends, from any client, while somebody wants to know."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] | None = None
        self.then: dict[str, Callable[[], object]] = {}
        """What happens before the driver hands on the first answer to a command."""
        self.unanswered: list[int] = []
        self.most_unanswered = 0

    @contextmanager
    def recorded(self) -> Iterator[list[dict[str, Any]]]:
        sent: list[dict[str, Any]] = []
        self.sent, self.unanswered, self.most_unanswered = sent, [], 0
        yield sent
        self.sent = None

    def started(self, event: pymongo.monitoring.CommandStartedEvent) -> None:
        if self.sent is not None:
            self.sent.append({**event.command, "command": event.command_name})
        if event.command_name == "find":
            self.unanswered.append(event.request_id)
            self.most_unanswered = max(self.most_unanswered, len(self.unanswered))

    def succeeded(self, event: pymongo.monitoring.CommandSucceededEvent) -> None:
        self.then.pop(event.command_name, lambda: None)()
        if event.request_id in self.unanswered:
            self.unanswered.remove(event.request_id)

    def failed(self, event: pymongo.monitoring.CommandFailedEvent) -> None:
        """See nothing in it."""


COMMANDS = Commands()
pymongo.monitoring.register(COMMANDS)


async def test_no_url_weakens_what_is_sent(url: str) -> None:
    store, version, blob = store_of(f"{url}&{WEAK}"), a_version(), a_blob()
    await store.start()

    with COMMANDS.recorded() as sent:
        await store.add(LAB, version, [blob])
        await store.add(LAB, version)
        await store.latest(LAB, version.id)
        await store.search(LAB, query())
        await store.put_signing_key(a_key("a"))
        await store.check()

    await store.stop()

    writes = [each for each in sent if each["command"] in ("insert", "update")]
    reads = [each for each in sent if each["command"] in ("find", "aggregate")]
    assert len(writes) == 5
    assert len(reads) == 5
    assert len(sent) == 10
    for each in writes:
        assert each["writeConcern"] == {"w": "majority", "j": True}
        assert "txnNumber" in each  # the driver's own retries count once
        assert "startTransaction" not in each  # whose commit would have an outcome of its own
    levels = [each["readConcern"]["level"] for each in reads]
    assert levels == ["majority", "majority", "snapshot", "majority", "majority"]
    for each in sent:
        assert each.get("$readPreference", {"mode": "primary"}) == {"mode": "primary"}
        assert each["maxTimeMS"] > 1_000


@pytest.mark.parametrize(
    ("options", "overruled"),
    [
        ("replicaSet=rs0&appName=w", []),
        ("W=Majority&journal=true&readpreference=PRIMARY", []),
        ("w=2", ["w"]),
        ("j=false", ["journal"]),
        ("serverMonitoringMode=poll", ["serverMonitoringMode"]),
        (
            WEAK,
            "w journal readConcernLevel readPreference retryWrites retryReads "
            "directConnection".split(),
        ),
    ],
)
def test_what_of_a_url_is_overruled_is_known(options: str, overruled: list[str]) -> None:
    assert mongodb._overruled(f"mongodb://host/x?{options}") == overruled


# Which servers are good enough


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server without a replica set."""
    server, port = start_mongod(tmp_path_factory.mktemp("single"))
    yield f"127.0.0.1:{port}"
    server.kill()
    server.wait()


@pytest.fixture
async def small_store(single: str) -> AsyncGenerator[MongoStore]:
    """A store on a single server, as one has it to try things."""
    store = from_url(f"mongodb://{single}/t{new_id()}", deadline_seconds=10, production=False)
    await store.start()
    yield store
    await store.stop()


async def test_a_single_server_is_refused_in_production(single: str) -> None:
    with pytest.raises(ConfigurationError, match="no member of a replica set"):
        await store_of(f"mongodb://{single}/x").start()


async def test_a_single_server_will_do_elsewhere(small_store: MongoStore) -> None:
    store, version, blob = small_store, a_version(), a_blob()

    assert await store.add(LAB, version, [blob])
    assert not await store.add(LAB, version)
    assert await store.latest(LAB, version.id) == version
    assert (await store.search(LAB, query())).versions == (version,)
    assert await store.rotate_signing_key(a_key("a"), expected=[])
    assert await store.sweep_blobs(LAB, before=FOREVER) == 1
    await store.check()


@pytest.mark.slow
async def test_a_server_without_a_journal_is_refused(tmp_path: Path) -> None:
    server, port = start_mongod(tmp_path, "--nojournal")
    store = from_url(f"mongodb://127.0.0.1:{port}/x", deadline_seconds=10, production=False)

    with pytest.raises(ConfigurationError, match="no journal"):
        await store.start()

    server.kill()
    server.wait()


@pytest.fixture(scope="module")
def configuration(admin: Admin) -> dict[str, Any]:
    """The configuration of a set that is good enough."""
    config: dict[str, Any] = admin.admin.command("replSetGetConfig")["config"]
    return config


@pytest.fixture(scope="module")
def defaults(admin: Admin) -> dict[str, Any]:
    """Its default concerns, which nobody has set."""
    return admin.admin.command("getDefaultRWConcern")


def test_a_set_whose_majority_acknowledges_without_its_journals_is_refused(
    configuration: dict[str, Any], defaults: dict[str, Any]
) -> None:
    unsafe = {**configuration, "writeConcernMajorityJournalDefault": False}

    with pytest.raises(ConfigurationError, match="writeConcernMajorityJournalDefault"):
        mongodb_server.judge(unsafe, defaults)


def test_a_set_with_an_arbiter_needs_a_default_write_concern(
    configuration: dict[str, Any], defaults: dict[str, Any]
) -> None:
    member = configuration["members"][0]
    unsafe = {**configuration, "members": [member, {**member, "_id": 1, "arbiterOnly": True}]}

    with pytest.raises(ConfigurationError, match="arbiter"):
        mongodb_server.judge(unsafe, defaults)
    mongodb_server.judge(unsafe, {**defaults, "defaultWriteConcernSource": "global"})


@pytest.mark.parametrize(
    ("hello", "least"),
    [
        ({"maxWireVersion": 9}, "5.0"),
        ({"maxWireVersion": 13, "msg": "isdbgrid"}, "6.0"),
        ({}, "5.0"),
    ],
)
def test_an_old_server_is_refused(hello: dict[str, Any], least: str) -> None:
    with pytest.raises(ConfigurationError, match=least):
        mongodb_server._refuse_old(hello)


@pytest.mark.parametrize("zone", [UTC, None])
def test_clocks_are_compared_in_the_same_zone(zone: timezone | None) -> None:
    hello = {"localTime": datetime(2026, 1, 1, 12, tzinfo=zone)}

    assert mongodb_server.skew_ms(hello, 1_767_268_800_000 + 7_000) == 7_000


async def test_a_server_that_ignores_read_concerns_is_refused() -> None:
    class Deaf:
        """No MongoDB: one that a real server cannot be made to be."""

        def get_default_database(self) -> Deaf:
            return self

        async def command(self, question: dict[str, Any]) -> dict[str, Any]:
            return {"ok": 1, "asked": question}

    with pytest.raises(ConfigurationError, match="ignores read concerns"):
        await mongodb_server._refuse_deaf(cast("mongodb_server.Client", Deaf()))


async def test_credentials_that_the_server_refuses_are_a_wrong_configuration(url: str) -> None:
    store = store_of(url.replace("mongodb://", "mongodb://user:secret-word@"))

    with pytest.raises(ConfigurationError, match="refuses this user") as refused:
        await store.start()

    assert "secret-word" not in str(refused.value)


async def test_a_server_that_cannot_be_reached_is_unavailable_in_time() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    begun = time.monotonic()

    with pytest.raises(StoreUnavailable) as refused:
        await store_of(f"mongodb://127.0.0.1:{port}/x?replicaSet=rs0", seconds=1).start()

    assert time.monotonic() - begun < 5
    assert refused.value.reason == "no server that could be written to was found in time"


def test_the_command_says_in_one_line_that_the_store_cannot_be_reached(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    settings = tmp_path / "fhirpub.toml"
    url = f"mongodb://user:secret-word@127.0.0.1:{port}/x"
    settings.write_text(f'[storage]\nurl = "{url}"\ndeadline_seconds = 1.0\n[server]\nport = 0\n')

    served = subprocess.run(
        [sys.executable, "-m", "fhirpub", "serve", "--config", str(settings)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert served.returncode == 1
    assert served.stderr == (
        "Error: the store cannot be used: no server that could be written to was found in time; "
        "see [storage] url\n"
    )


# What is in the database


async def test_stores_that_start_at_once_on_no_database_all_start(url: str) -> None:
    stores = [store_of(url) for _ in range(12)]

    await asyncio.gather(*(each.start() for each in stores))

    version = a_version()
    assert await stores[0].add(LAB, version)
    assert [await each.latest(LAB, version.id) for each in stores] == [version] * 12
    for each in stores:
        await each.stop()


@pytest.fixture
def database(url: str, admin: Admin) -> Database:
    return admin[url.rpartition("/")[2].partition("?")[0]]


async def test_a_database_of_a_newer_release_is_refused(
    url: str, database: Database, store: Store
) -> None:
    newer = schema.SCHEMA_VERSION + 6
    database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": newer}})

    with pytest.raises(ConfigurationError, match=f"{newer}.*{schema.SCHEMA_VERSION}"):
        await store_of(url).start()


@pytest.fixture
async def old(store: Store, database: Database) -> list[Version]:
    """What is in the database, which is as release 0.1.0 left it: two versions with events."""
    first = a_version(events=EVENTS)
    kept = [first, successor(first), a_version()]
    await add_all(store, kept)
    database[schema.VERSION].drop_index(schema.UNRELAYED)
    database[schema.VERSION].update_many({}, {"$unset": {"unrelayed": ""}})
    for name in (schema.ENDPOINT, schema.DELIVERY):
        database[name].drop()
    database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": 1}})
    return kept


async def test_an_older_database_keeps_everything_and_all_events_are_still_to_be_told(
    old: list[Version], reopen: Reopen, database: Database
) -> None:
    store = await reopen()

    assert await store.unrelayed(limit=10) == [(LAB, OutboxEntry.of(each)) for each in old[:2]]
    assert await store.latest(LAB, old[2].id) == old[2]
    assert await store.waiting(new_id()) == []
    found = database[schema.STORE].find_one({"_id": schema.SCHEMA})
    assert found == {"_id": schema.SCHEMA, "version": schema.SCHEMA_VERSION}


async def test_what_was_told_stays_told_however_often_a_database_is_brought_up_to_date(
    old: list[Version], reopen: Reopen, database: Database
) -> None:
    store = await reopen()
    await store.mark_published([(old[0].id, 1)])
    # Another process that began to bring it up to date ends only now.
    database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": 1}})

    again = await reopen()

    assert await again.unrelayed(limit=10) == [(LAB, OutboxEntry.of(old[1]))]


async def test_stores_that_start_at_once_on_an_older_database_all_start(
    old: list[Version], reopen: Reopen
) -> None:
    stores = await asyncio.gather(*(reopen() for _ in range(6)))

    assert {len(await each.unrelayed(limit=10)) for each in stores} == {2}


async def test_another_programs_database_is_refused_and_left_alone(
    url: str, database: Database
) -> None:
    database[schema.CLIENT].insert_one({"theirs": True})

    with pytest.raises(ConfigurationError, match="another program"):
        await store_of(url).start()

    assert database.list_collection_names() == [schema.CLIENT]


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ([("id", 1), ("version", 1)], {}),
        ([("version", 1), ("id", 1)], {"unique": True}),
        ([("id", 1), ("version", -1)], {"unique": True}),
        ([("id", 1), ("version", 1)], {"unique": True, "sparse": True}),
        ([("id", 1), ("version", 1)], {"unique": True, "hidden": True}),
        ([("id", 1), ("version", 1)], {"unique": True, "collation": {"locale": "en"}}),
    ],
)
async def test_an_index_of_our_name_that_is_another_is_refused(
    url: str,
    database: Database,
    store: Store,
    keys: list[tuple[str, int]],
    options: dict[str, Any],
) -> None:
    database[schema.VERSION].drop_index(schema.VERSION_KEY)
    database[schema.VERSION].create_index(keys, name=schema.VERSION_KEY, **options)

    with pytest.raises(ConfigurationError, match=r"version_key is not as .* drop it"):
        await store_of(url).start()


async def test_an_index_in_the_way_of_ours_is_refused(
    url: str, database: Database, store: Store
) -> None:
    database[schema.VERSION].drop_index(schema.VERSION_KEY)
    database[schema.VERSION].create_index([("id", 1), ("version", 1)], name="theirs", unique=True)

    with pytest.raises(ConfigurationError, match="in the way"):
        await store_of(url).start()


async def test_an_index_that_was_lost_is_made_again(
    url: str, database: Database, store: Store
) -> None:
    database[schema.VERSION].drop_index(schema.VERSION_KEY)
    again = store_of(url)

    await again.start()

    assert schema.VERSION_KEY in database[schema.VERSION].index_information()
    await again.stop()


async def test_a_page_is_never_short_of_a_version_that_an_election_took(
    database: Database, store: Store
) -> None:
    # As behind a router, where the second question may come to another primary.
    lost, kept = a_version(), a_version()
    await add_all(store, [lost, kept])
    COMMANDS.then["aggregate"] = lambda: database[schema.VERSION].delete_one({"id": lost.id})

    with pytest.raises(StoreUnavailable) as refused:
        await store.search(LAB, query())

    assert refused.value.reason == "a version is missing"
    assert (await store.search(LAB, query())).versions == (kept,)


# Outcomes that the driver does not know


@pytest.fixture
async def tried(url: str) -> AsyncGenerator[MongoStore]:
    """A store that the server can be told to fail, alone."""
    store = store_of(f"{url}&appName=tried&heartbeatFrequencyMS=500", seconds=2)
    await store.start()
    yield store
    await store.stop()


@contextmanager
def failing(admin: Admin, *commands: str, times: int | None = None, **how: Any) -> Iterator[None]:
    """Let commands of the store that is tried fail, so often or always."""
    data = {"failCommands": list(commands), "appName": "tried", **how}
    mode = "alwaysOn" if times is None else {"times": times}
    admin.admin.command({"configureFailPoint": "failCommand", "mode": mode, "data": data})
    try:
        yield
    finally:
        admin.admin.command({"configureFailPoint": "failCommand", "mode": "off"})


BEFORE: list[dict[str, Any]] = [
    {"closeConnection": True},
    {"errorCode": 10107},  # NotWritablePrimary
    {"errorCode": 189},  # PrimarySteppedDown
    {"errorCode": 91},  # ShutdownInProgress
    {"errorCode": 11600},  # InterruptedAtShutdown
    {"errorCode": 50},  # MaxTimeMSExpired
    {"errorCode": 8000},  # what a hosted service says to anything
    {"blockConnection": True, "blockTimeMS": 1_500},
]
AFTER: list[dict[str, Any]] = [
    {"writeConcernError": {"code": code, "errmsg": "secret words", **labels}}
    for code in (64, 91, 100, 189)
    for labels in ({}, {"errorLabels": ["RetryableWriteError"]})
]


@pytest.mark.parametrize("how", [*BEFORE, *AFTER], ids=str)
async def test_what_is_unknown_for_a_while_is_found_out(
    tried: MongoStore, database: Database, admin: Admin, how: dict[str, Any]
) -> None:
    taken, free = a_version(), a_version()
    await tried.add(LAB, taken)

    with failing(admin, "insert", times=1, **how):
        added = await asyncio.gather(
            tried.add(LAB, free), tried.add(LAB, replace(taken, body=b"other"))
        )

    assert list(added) == [True, False]
    assert await tried.latest(LAB, taken.id) == taken
    assert await tried.latest(LAB, free.id) == free
    assert database[schema.VERSION].count_documents({}) == 2


@pytest.mark.parametrize("how", BEFORE, ids=str)
async def test_what_stays_unknown_is_unavailable_in_time_and_may_be_repeated(
    tried: MongoStore, admin: Admin, how: dict[str, Any]
) -> None:
    version = a_version(value="a secret value")
    begun = time.monotonic()

    with failing(admin, "insert", "find", **how):
        with pytest.raises(StoreUnavailable) as refused:
            await tried.add(LAB, version)
        waited = time.monotonic() - begun

    assert waited < 4
    assert "secret" not in refused.value.reason
    await tried.add(LAB, version)
    assert await tried.latest(LAB, version.id) == version


@pytest.mark.parametrize("how", AFTER, ids=str)
async def test_what_is_never_acknowledged_is_success_only_if_a_read_confirms_it(
    tried: MongoStore, admin: Admin, how: dict[str, Any]
) -> None:
    version = a_version()

    with failing(admin, "insert", **how), COMMANDS.recorded() as sent:
        assert await tried.add(LAB, version)

    # What a majority has will stay; the linearizable question is for what it does not have yet.
    levels = [each["readConcern"]["level"] for each in sent if each["command"] == "find"]
    assert levels in (["majority"], ["majority", "linearizable"])


async def test_a_new_primary_is_asked_for_one_proof_whoever_gives_up_waiting(
    tried: MongoStore, admin: Admin
) -> None:
    version = a_version()
    await tried.add(LAB, version)
    tried._primary._trusted = None

    with (
        failing(admin, "find", blockConnection=True, blockTimeMS=300),
        COMMANDS.recorded() as sent,
    ):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(tried.history(LAB, version.id), 0.1)
        assert await tried.history(LAB, version.id) == [version]

    levels = [each["readConcern"]["level"] for each in sent if each["command"] == "find"]
    assert levels == ["linearizable", "majority"]


async def test_a_proof_that_fails_is_told_and_the_next_read_asks_again(
    tried: MongoStore, admin: Admin
) -> None:
    tried._primary._trusted = None

    with failing(admin, "find", times=1, errorCode=8000), pytest.raises(StoreUnavailable):
        await tried.tenants()

    assert await tried.tenants() == []


async def test_a_write_that_nobody_will_take_is_unavailable_at_once(
    url: str, admin: Admin
) -> None:
    store = store_of(f"{url}&appName=tried", seconds=20)
    await store.start()
    begun = time.monotonic()

    # Nobody says what became of it, either: who asks again and again does so for 20 seconds.
    certain = failing(admin, "insert", "find", errorCode=8000, errorLabels=["NoWritesPerformed"])
    with certain, pytest.raises(StoreUnavailable):
        await store.add(LAB, a_version())

    waited = time.monotonic() - begun
    await store.stop()
    assert waited < 2


async def test_documents_are_written_again_until_they_are_kept(
    tried: MongoStore, database: Database, admin: Admin
) -> None:
    blob = a_blob()
    version = a_version(documents=(blob.sha256,))
    of_blobs = f"{database.name}.{schema.BLOB}"

    with failing(admin, "insert", "update", times=2, errorCode=8000, namespace=of_blobs):
        assert await tried.add(LAB, version, [blob])

    assert await whole_blobs(tried, LAB, [blob.sha256]) == {blob.sha256: blob}


async def test_without_its_documents_no_version_is_added_and_others_are(
    tried: MongoStore, database: Database, admin: Admin
) -> None:
    blob = a_blob()
    version = a_version(documents=(blob.sha256,))
    of_blobs = f"{database.name}.{schema.BLOB}"

    with failing(admin, "insert", "update", errorCode=8000, namespace=of_blobs):
        results = await asyncio.gather(
            tried.add(LAB, version, [blob]), tried.add(LAB, a_version()), return_exceptions=True
        )

    assert isinstance(results[0], StoreUnavailable)
    assert results[1] is True
    assert await tried.latest(LAB, version.id) is None


@pytest.fixture
def proxy(single: str) -> Iterator[Proxy]:
    """A way to a single server, where the driver itself tries no write again."""
    with Proxy(int(single.rpartition(":")[2])) as proxy:
        yield proxy


@pytest.fixture
async def far(proxy: Proxy) -> AsyncGenerator[MongoStore]:
    """A store behind the proxy."""
    url = f"mongodb://{proxy.address}/t{new_id()}"
    store = from_url(url, deadline_seconds=2, production=False)
    await store.start()
    yield store
    proxy.heal()
    await store.stop()


async def test_a_write_whose_answer_was_lost_is_found_to_be_ours(
    far: MongoStore, proxy: Proxy
) -> None:
    versions = [a_version() for _ in range(10)]
    proxy.inject(Fault.CUT_REPLY, "insert", times=1)

    added = await asyncio.gather(*(far.add(LAB, each) for each in versions))

    assert proxy.hits == 1
    assert all(added)
    assert await found(far, query()) == {each.id for each in versions}


async def test_a_lost_answer_makes_no_write_ours_that_was_anothers(
    far: MongoStore, proxy: Proxy
) -> None:
    version = a_version()
    await far.add(LAB, version)
    proxy.inject(Fault.CUT_REPLY, "insert", times=1)

    assert await far.add(LAB, replace(version, body=b"other")) is False
    assert proxy.hits == 1


async def test_a_write_that_arrives_twice_because_it_was_late_is_ours(
    far: MongoStore, proxy: Proxy
) -> None:
    version = a_version()
    proxy.inject(Fault.STALL, "insert")
    adding = asyncio.create_task(far.add(LAB, version))
    async with asyncio.timeout(2):
        while proxy.hits < 2:  # the first try has been given up
            await asyncio.sleep(0.01)

    proxy.heal()

    assert await adding is True
    assert await far.history(LAB, version.id) == [version]


async def test_a_first_try_that_arrives_after_the_second_changes_nothing(
    far: MongoStore, proxy: Proxy
) -> None:
    version = a_version()
    proxy.inject(Fault.STALL, "insert", times=1)

    added = await far.add(LAB, version)
    proxy.heal()
    await far.add(LAB, a_version())

    assert added is True
    assert await far.history(LAB, version.id) == [version]


async def test_a_write_for_which_there_is_no_server_has_not_happened(
    far: MongoStore, proxy: Proxy
) -> None:
    version = a_version()
    proxy.inject(Fault.REFUSE)
    with pytest.raises(StoreUnavailable):  # by which the driver knows that it is gone
        await far.latest(LAB, version.id)

    with pytest.raises(StoreUnavailable) as refused:
        await far.add(LAB, version)
    proxy.heal()

    assert refused.value.reason == "no server that could be written to was found in time"
    assert await far.latest(LAB, version.id) is None


async def test_a_write_for_which_there_is_no_connection_has_not_happened(proxy: Proxy) -> None:
    url = f"mongodb://{proxy.address}/t{new_id()}?maxPoolSize=1"
    store = from_url(url, deadline_seconds=3, production=False)
    await store.start()
    version = a_version()
    proxy.inject(Fault.STALL, "ping")
    holding = asyncio.ensure_future(store._client.admin.command("ping"))
    while not proxy.hits:
        await asyncio.sleep(0.01)

    begun = time.monotonic()
    with pytest.raises(StoreUnavailable) as refused:
        await store.add(LAB, version)
    tried = time.monotonic() - begun
    proxy.heal()
    await holding

    # It was tried until the end, which the driver or the loop sees first.
    assert tried > 2.5
    assert refused.value.reason in ("deadline exceeded", "WaitQueueTimeoutError")
    assert await store.latest(LAB, version.id) is None
    await store.stop()


async def test_a_server_that_falls_silent_is_unavailable_in_time(
    far: MongoStore, proxy: Proxy
) -> None:
    proxy.inject(Fault.STALL)
    begun = time.monotonic()

    ended = await asyncio.gather(
        far.add(LAB, a_version()),
        far.latest(LAB, new_id()),
        far.version(LAB, new_id(), 1),
        far.history(LAB, new_id()),
        far.search(LAB, query()),
        far.blobs(LAB, [new_id()]),
        far.sweep_blobs(LAB, before=1),
        far.tenants(),
        far.put_tenant(Tenant.new("t", created=1)),
        far.put_signing_key(a_key("a")),
        far.check(),
        return_exceptions=True,
    )

    assert time.monotonic() - begun < 5
    assert all(isinstance(each, StoreUnavailable) for each in ended)
    proxy.heal()
    assert await far.add(LAB, a_version())


# What a document can be


async def test_what_cannot_be_stored_is_refused_and_harms_no_other(store: Store) -> None:
    good = [a_version() for _ in range(10)]
    bad = [
        (a_version(version=2**70), [], InvalidContent),
        (a_version(value="\ud800"), [], InvalidContent),
        (a_version(), [replace(a_blob(), content_type="\ud800")], InvalidContent),
        (a_version(body=bytes(16 * 1024 * 1024)), [], TooLarge),
    ]

    results = await asyncio.gather(
        *(store.add(LAB, version, blobs) for version, blobs, _refusal in bad),
        *(store.add(LAB, each) for each in good),
        return_exceptions=True,
    )

    assert [type(each) for each in results[: len(bad)]] == [refusal for *_, refusal in bad]
    assert results[len(bad) :] == [True] * 10


async def test_the_largest_version_is_read_in_every_way(store: Store) -> None:
    largest = a_version(body=bytes(MOST_BYTES - 1_000))
    await store.add(LAB, largest)

    assert await store.latest(LAB, largest.id) == largest
    assert await store.version(LAB, largest.id, 1) == largest
    assert (await store.search(LAB, query())).versions == (largest,)


async def test_of_one_key_twice_in_a_batch_the_first_wins(store: Store) -> None:
    first = a_version(body=b"first")

    added = await asyncio.gather(
        store.add(LAB, first), store.add(LAB, replace(first, body=b"second"))
    )

    assert list(added) == [True, False]
    assert await store.latest(LAB, first.id) == first


# What it asks of the server


async def test_writes_that_arrive_together_are_one_command(store: Store) -> None:
    with COMMANDS.recorded() as sent:
        await add_all(store, [a_version() for _ in range(20)])

    (insert,) = sent
    assert len(insert["documents"]) == 20


async def test_reads_that_arrive_together_are_one_command(store: Store) -> None:
    versions = [a_version() for _ in range(20)]
    await add_all(store, versions)

    with COMMANDS.recorded() as sent:
        read = await asyncio.gather(*(store.latest(LAB, each.id) for each in versions))

    assert list(read) == versions
    assert len(sent) == 1


async def test_documents_that_arrive_together_are_one_command(store: Store) -> None:
    blobs = [a_blob() for _ in range(20)]

    with COMMANDS.recorded() as written:
        await asyncio.gather(
            *(store.add(LAB, a_version(documents=(each.sha256,)), [each]) for each in blobs)
        )
    with COMMANDS.recorded() as sent:
        read = await asyncio.gather(*(whole_blobs(store, LAB, [each.sha256]) for each in blobs))

    assert [len(each["documents"]) for each in written] == [20, 20]
    assert list(read) == [{each.sha256: each} for each in blobs]
    assert len(sent) == 1


async def test_few_pages_are_on_their_way_at_the_same_time(store: Store) -> None:
    for _ in range(2):
        await store.add(LAB, a_version(body=b"x" * (MAX_PAGE_BYTES // 2 - 5000)))

    with COMMANDS.recorded():
        pages = await asyncio.gather(*(store.search(LAB, query(limit=2)) for _ in range(16)))

    assert [len(each.versions) for each in pages] == [2] * 16
    assert COMMANDS.most_unanswered <= 6


async def test_few_large_versions_are_on_their_way_at_the_same_time(store: Store) -> None:
    versions = [a_version(body=b"x" * SMALL_BYTES) for _ in range(16)]
    await add_all(store, versions)

    with COMMANDS.recorded() as sent:
        read = await asyncio.gather(*(store.latest(LAB, each.id) for each in versions))

    assert list(read) == versions
    assert len(sent) == 1 + 16
    assert COMMANDS.most_unanswered <= 6


@pytest.mark.parametrize("name", ["latest", "shown", "version"])
async def test_a_large_version_holds_up_nobody_who_reads_a_small_one(
    store: Store, name: str
) -> None:
    large, small = a_version(body=b"x" * SMALL_BYTES), a_version(body=b"x" * (SMALL_BYTES // 2))
    await add_all(store, [large, small])
    read = getattr(store, name)
    more = (1,) if name == "version" else ()

    with COMMANDS.recorded() as sent:
        found = await asyncio.gather(*(read(LAB, each.id, *more) for each in (large, small)))

    assert [each.body for each in found] == [large.body, small.body]
    assert len(sent) == 2  # both together, and then the large one


@pytest.mark.parametrize("name", ["latest", "shown", "version"])
@pytest.mark.parametrize("size", [1, SMALL_BYTES])
async def test_another_tenants_version_is_one_question_as_one_that_is_not_there(
    store: Store, name: str, size: int
) -> None:
    theirs = a_version(body=b"x" * size)
    await add_all(store, [theirs], OTHER)
    read = getattr(store, name)
    more = (1,) if name == "version" else ()

    with COMMANDS.recorded() as sent:
        answers = [await read(LAB, each, *more) for each in (theirs.id, new_id())]

    assert answers == [None, None]
    assert len(sent) == 2


async def test_a_large_document_holds_up_nobody_who_reads_a_small_one(store: Store) -> None:
    large, small = a_blob(bytes(64 * 1024 + 1)), a_blob(bytes(64 * 1024))
    for each in (large, small):
        await store.add(LAB, a_version(documents=(each.sha256,)), [each])

    with COMMANDS.recorded() as sent:
        read = await asyncio.gather(
            store.blobs(LAB, [large.sha256]), store.blobs(LAB, [small.sha256])
        )

    assert [each.data for one in read for each in one.values()] == [None, small.data]
    assert len(sent) == 1


async def test_a_large_document_is_fetched_piece_by_piece(store: Store) -> None:
    blob = a_blob(os.urandom(600_000))
    await store.add(LAB, a_version(documents=(blob.sha256,)), [blob])
    (known,) = (await store.blobs(LAB, [blob.sha256])).values()

    with COMMANDS.recorded() as sent:
        pieces = store.blob_pieces(LAB, known, slice(0, known.size))
        first = await anext(pieces)
        await pieces.aclose()

    assert first == blob.data[: len(first)]
    assert len(first) < 300_000
    assert len(sent) == 1


async def test_pieces_that_a_crash_left_without_their_blob_are_swept(
    store: Store, database: Database
) -> None:
    blob = a_blob(os.urandom(600_000))
    await keep(store, LAB, [blob])
    database[schema.BLOB].delete_many({})

    await store.sweep_blobs(LAB, before=FOREVER)

    assert database[schema.PIECE].count_documents({}) == 0


async def test_pieces_without_their_blob_are_completed_by_whoever_brings_it_again(
    store: Store, database: Database
) -> None:
    blob = a_blob(os.urandom(600_000))
    await keep(store, LAB, [blob])
    database[schema.BLOB].delete_many({})
    database[schema.PIECE].delete_one({})

    await keep(store, LAB, [blob])

    assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}


async def test_pieces_of_a_document_that_is_named_are_looked_at_once(
    store: Store, database: Database
) -> None:
    blob = a_blob(os.urandom(600_000))
    await store.add(LAB, a_version(documents=(blob.sha256,)), [blob])

    await store.sweep_blobs(LAB, before=FOREVER)

    assert database[schema.PIECE].count_documents({}) == 3
    assert database[schema.PIECE].count_documents({"loose": True}) == 0


async def test_pieces_of_a_fresh_document_stay(store: Store, database: Database) -> None:
    blob = a_blob(os.urandom(600_000))
    await keep(store, LAB, [blob])

    assert await store.sweep_blobs(LAB, before=now_ms() - 60_000) == 0
    assert database[schema.PIECE].count_documents({"loose": True}) == 3


async def test_a_large_document_that_was_kept_undivided_is_read(
    store: Store, database: Database
) -> None:
    blob = a_blob(os.urandom(600_000))
    await keep(store, LAB, [blob])
    database[schema.PIECE].delete_many({})
    database[schema.BLOB].update_one({}, {"$set": {"data": blob.data}, "$unset": {"size": ""}})

    assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}
    (known,) = (await store.blobs(LAB, [blob.sha256])).values()
    pieces = store.blob_pieces(LAB, known, slice(262_000, 530_000))
    assert b"".join([each async for each in pieces]) == blob.data[262_000:530_000]


async def test_a_check_fails_while_no_majority_takes_a_write(
    tried: MongoStore, admin: Admin
) -> None:
    lagging = failing(admin, "update", writeConcernError={"code": 64, "errmsg": "secret words"})
    with lagging, pytest.raises(StoreUnavailable) as refused:
        await tried.check()

    await tried.check()

    assert refused.value.reason == "WriteConcernError 64"


async def test_a_named_document_is_looked_at_by_one_sweep(store: Store) -> None:
    blob = a_blob()
    await store.add(LAB, a_version(documents=(blob.sha256,)), [blob])
    await store.sweep_blobs(LAB, before=FOREVER)

    with COMMANDS.recorded() as sent:
        await store.sweep_blobs(LAB, before=FOREVER)

    commands = {each["command"]: each for each in sent}
    assert commands["delete"]["deletes"][0]["q"]["_id"] == {"$in": []}
    assert commands["update"]["updates"][0]["q"]["_id"] == {"$in": []}


ID = new_id()
MIXED = (TokenMatch("s", None), TokenMatch(None, "v"))


@pytest.mark.parametrize(
    ("wanted", "index", "covered"),
    [
        (query(), "version_by_time", True),
        (query(ids=[ID]), "version_key", False),
        (query(match("s"), ids=[ID]), "version_key", False),
        (query(match("s")), "version_by_system", True),
        (query(match("s") + match("t")), "version_by_system", True),
        (query(match(None, "v")), "version_by_value", True),
        (query(match("s", "v")), "version_by_value", True),
        (query(match("s", "v") + match("t", "w")), "version_by_value", False),
        (query(match("s"), match(None, "v")), "version_by_value", True),
        (query(MIXED), "version_by_time", False),
    ],
)
@pytest.mark.parametrize("after", [None, (1, ID)])
async def test_searches_go_through_an_index(
    database: Database,
    store: Store,
    wanted: SearchQuery,
    index: str,
    covered: object,
    after: tuple[int, str] | None,
) -> None:
    await add_all(store, [a_version(system="s", value="v") for _ in range(3)])
    pipeline, hint = page_and_total(LAB, replace(wanted, after=after))

    stages = stages_of(database, pipeline, hint)

    assert stages["IXSCAN"] == {index}
    assert "COLLSCAN" not in stages
    assert ("FETCH" not in stages) == covered


@pytest.mark.parametrize(
    ("criteria", "indexes"),
    [
        ([has("code", token("a"))], {"version_by_search_value"}),
        ([has("code", token("a"), token("b", "s"))], {"version_by_search_value"}),
        ([has("date", TimeMatch(from_=1, until=9))], {"version_by_search_value"}),
        ([has("date", TimeMatch(after=9), TimeMatch(from_=1))], {"version_by_search_value"}),
        (
            [has("subject", TokenMatch("P", "x"), TokenMatch("P", "", ID))],
            {"version_by_search_value", "version_key"},
        ),
        ([has("code", token(None, "s"))], {"version_by_time"}),
        ([has("code", token("a"), negated=True)], {"version_by_time"}),
        ([has(LAST_UPDATED, TimeMatch(from_=1))], {"version_by_time"}),
    ],
)
async def test_criteria_are_answered_from_an_index(
    database: Database, store: Store, criteria: list[Criterion], indexes: set[str]
) -> None:
    # As many as it takes until the server's choice is no matter of chance.
    own = [found_by(("code", "a", "s"), ("subject", "", "P")) for _ in range(40)]
    await add_all(store, [*own, found_by(("subject", "x", "P")), replace(own[0], id=ID)])

    stages = stages_of(database, *page_and_total(LAB, wanting(*criteria)))

    assert stages["IXSCAN"] == indexes
    assert "COLLSCAN" not in stages


@pytest.mark.parametrize("wanted", [query(), query(match("s")), query(match("s"), after=(1, ID))])
async def test_lists_of_everything_are_not_sorted(
    database: Database, store: Store, wanted: SearchQuery
) -> None:
    stages = stages_of(database, *page_and_total(LAB, wanted))

    assert "SORT" not in stages


def stages_of(
    database: Database, pipeline: list[dict[str, Any]], hint: str | None
) -> dict[str, set[str]]:
    """Return the stages of the plan that finds the candidates, with the indexes they use."""
    command = {"aggregate": schema.VERSION, "pipeline": pipeline, "cursor": {}}
    command |= {"hint": hint} if hint else {}
    explained = database.command({"explain": command})
    stages: dict[str, set[str]] = {}
    waiting = [explained["stages"][0]["$cursor"]["queryPlanner"]["winningPlan"]]
    while waiting:
        stage = waiting.pop()
        stages.setdefault(stage["stage"], set()).add(stage.get("indexName", ""))
        waiting += [stage["inputStage"]] if "inputStage" in stage else stage.get("inputStages", [])
    return stages
