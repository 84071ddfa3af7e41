"""The embedded store finds endpoints and deliveries by index, however many there are."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fhirpub.app.stores import open_store
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.storage.sqlite.files import make_tables
from fhirpub.storage.sqlite.rows import Row
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.sqlite.tables import webhooks as sql
from fhirpub.storage.webhook_contract import DeliveryQuery
from fhirpub.testing.contracts.webhooks.records import (
    NOW,
    UNTIL,
    a_delivery,
    an_endpoint,
    end,
    queue,
)
from fhirpub.testing.samples import LAB, OTHER

MAY_BE_READ_WHOLE = (
    *("json_each", "k", "e", "endpoint", "relay_mark"),
    *("(subquery-1)", "(subquery-3)"),
)
"""Lists passed as parameters, ordered reads up to a limit, the few endpoints, and one row."""


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A connection to a file with empty tables."""
    path = tmp_path_factory.mktemp("store") / "fhirpub.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        make_tables(connection)
        yield connection


def plan_of(connection: sqlite3.Connection, statement: str) -> list[str]:
    numbered = [int(item) for item in re.findall(r"\?(\d)", statement)]
    named = dict.fromkeys(re.findall(r":(\w+)", statement), "1")
    parameters = named or ("1",) * max(numbered, default=statement.count("?"))
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
    return [row[3] for row in rows]


def read_whole(plan: list[str]) -> list[str]:
    scanned = [step for step in plan if step.startswith("SCAN")]
    return [step for step in scanned if step.split()[1] not in MAY_BE_READ_WHOLE]


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (sql.ENDPOINT_BY_ID, "(id=?)"),
        (sql.ENDPOINTS_OF, "endpoint_by_tenant (tenant=?)"),
        (sql.MARK_AND_END, "SEARCH version"),
        (sql.EXCEPTIONS, "v USING INTEGER PRIMARY KEY (rowid=?)"),
        (sql.BEHIND, "v USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (sql.NUMBERS_BEHIND, "v USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (sql.NUMBERS_OF, "COVERING INDEX version_key (id=? AND version=?)"),
        (sql.PENDING_OF, "version_key (id=? AND version=?)"),
        (sql.PENDING_OF, "ROWID SEARCH ON TABLE relay_exception"),
        (sql.REMOVE_EXCEPTIONS, "relay_exception USING INTEGER PRIMARY KEY (rowid=?)"),
        (sql.ENDS, "delivery_by_sequence (endpoint=?)"),
        (sql.TOLD, "delivery_key (endpoint=? AND event_id=?)"),
        (sql.COUNTS, "delivery_by_state (endpoint=?)"),
        (sql.WAITING, "delivery_by_state (endpoint=? AND state=? AND sequence>?)"),
        (sql.WALK_DELIVERIES, "delivery_by_sequence ((endpoint,sequence)>(?,?))"),
        (sql.BEGIN, "delivery_key (endpoint=? AND event_id=?)"),
        (sql.FINISH, "delivery_key (endpoint=? AND event_id=?)"),
        (sql.REOPEN, "delivery_key (endpoint=? AND event_id=?)"),
        (sql.candidates(sql.LONG_ENDED), "delivery_ended (state=? AND ended<?)"),
        (sql.candidates(sql.LEFT_OPEN), "delivery_by_state (endpoint=? AND state=?)"),
        (sql.sweep(sql.LONG_ENDED), "INTEGER PRIMARY KEY (rowid=?)"),
        (sql.sweep(sql.LEFT_OPEN), "INTEGER PRIMARY KEY (rowid=?)"),
    ],
)
def test_every_question_goes_through_an_index(
    connection: sqlite3.Connection, statement: str, index: str
) -> None:
    plan = plan_of(connection, statement)

    assert [step for step in plan if index in step], plan
    assert not read_whole(plan)


@pytest.mark.parametrize(
    ("changes", "index"),
    [
        ({}, "delivery_by_sequence (endpoint=? AND sequence>?)"),
        (
            {"before": 5, "newest_first": True},
            "delivery_by_sequence (endpoint=? AND sequence>?",
        ),
        ({"since": 5, "event_type": "x"}, "delivery_by_sequence (endpoint=? AND sequence>?)"),
        (
            {"states": {"dead", "pending"}},
            "delivery_by_state (endpoint=? AND state=? AND sequence>?)",
        ),
        ({"event_ids": {"a", "b"}}, "delivery_key (endpoint=? AND event_id=?)"),
        ({"event_ids": {"a"}, "states": {"dead"}}, "delivery_key (endpoint=? AND event_id=?)"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, dict) else "",
)
def test_lists_go_through_an_index(
    connection: sqlite3.Connection, changes: dict[str, Any], index: str
) -> None:
    statement, _parameters = sql.list_deliveries(LAB, DeliveryQuery(endpoint="e", **changes))

    plan = plan_of(connection, statement)

    assert [step for step in plan if index in step], plan
    assert not read_whole(plan)


@pytest.mark.parametrize("changes", [{}, {"newest_first": True}], ids=str)
def test_a_list_of_everything_is_not_sorted(
    connection: sqlite3.Connection, changes: dict[str, Any]
) -> None:
    statement, _parameters = sql.list_deliveries(LAB, DeliveryQuery(endpoint="e", **changes))

    assert not [step for step in plan_of(connection, statement) if "TEMP B-TREE" in step]


@pytest.mark.parametrize("statement", [sql.EXCEPTIONS, sql.BEHIND, sql.WALK_DELIVERIES])
def test_a_walk_is_not_sorted(connection: sqlite3.Connection, statement: str) -> None:
    assert not [step for step in plan_of(connection, statement) if "TEMP B-TREE" in step]


async def test_endpoints_that_have_not_changed_are_not_created_again(tmp_path: Path) -> None:
    config = Config(storage=StorageConfig(url=f"sqlite:///{tmp_path}/store.db"))
    async with open_store(config) as store:
        for _number in range(2):
            await store.copy_endpoint(an_endpoint(), over=None)
        before = await store.all_endpoints()
        await store.save_health(before[0].id, b'{"throttled":1}')

        after = await store.all_endpoints()

    assert [endpoint is known for endpoint, known in zip(after, before, strict=True)] == [
        False,
        True,
    ]
    assert after[0].condition == b'{"throttled":1}'


class ReopeningStore(SqliteStore):
    """A store in which deliveries are reopened while a sweep goes on: found, not deleted yet."""

    async def _fetch_in_thread(self, statement: str, parameters: Any) -> list[Row]:
        rows = await super()._fetch_in_thread(statement, parameters)
        if statement == sql.candidates(sql.LONG_ENDED) and rows:
            await self.reopen(LAB, "e", ["evt_2"], now=UNTIL)
        return rows


async def test_a_delivery_that_is_reopened_during_a_sweep_stays(tmp_path: Path) -> None:
    store = ReopeningStore(tmp_path / "fhirpub.db", deadline_seconds=10)
    await store.start()
    ended = [a_delivery("e", n, state="dead", ended=NOW) for n in (1, 2, 3, 4)]
    await store.put_deliveries(ended)

    swept = await store.sweep_deliveries(delivered=0, dead=UNTIL, open_=0)
    left = await store.deliveries(LAB, DeliveryQuery(endpoint="e"))
    await store.stop()

    assert swept == 2
    assert [(each.sequence, each.state) for each in left] == [(2, "pending"), (4, "dead")]


async def test_an_endpoint_counts_nothing_where_nothing_was_reopened(store: SqliteStore) -> None:
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    (delivery,) = await queue(store, 1, endpoint=endpoint.id)

    await store.reopen(LAB, endpoint.id, [delivery.event_id], now=NOW)  # it is due
    await end(store, delivery)
    await store.reopen(LAB, endpoint.id, [], now=UNTIL)
    await store.reopen(OTHER, endpoint.id, [delivery.event_id], now=UNTIL)

    assert await store.endpoint(LAB, endpoint.id) == endpoint
