"""Which deliveries the statements find, begin, finish, reopen and sweep, and in which order."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from fhirpub.storage.sqlite.tables import webhooks as sql
from fhirpub.storage.webhook_contract import MAX_ATTEMPTS_KEPT, DeliveryQuery

COLUMNS = (
    "endpoint event_id sequence resource state due number begun leased tenant event_type created "
    "ended attempts body"
).split()
KEYS = json.dumps([["e", "v1"]])


def deliver(connection: sqlite3.Connection, sequence: int, **changes: Any) -> None:
    usual = dict.fromkeys(("number", "begun", "leased"), 0) | {
        "endpoint": "e",
        "event_id": f"v{sequence}",
        "sequence": sequence,
        "resource": "A/1",
        "state": "pending",
        "due": 10,
        "tenant": "t",
        "event_type": "a",
        "created": 100 + sequence,
        "ended": None,
        "attempts": "[]",
        "body": b"{}",
    }
    row = usual | changes
    connection.execute(sql.add_deliveries(1), [row[name] for name in COLUMNS])


def endpoint(connection: sqlite3.Connection, state: str = "active") -> None:
    row = ("e", "t", 1, state, 1, "u", "", "", "", "", "", "", b"", 0, b"{}")
    connection.execute(sql.ADD_ENDPOINT, row)


def listed(connection: sqlite3.Connection, tenant: str = "t", **wanted: Any) -> list[int]:
    statement, parameters = sql.list_deliveries(tenant, DeliveryQuery(endpoint="e", **wanted))
    return [row[2] for row in connection.execute(statement, parameters)]


def one(connection: sqlite3.Connection, columns: str, event_id: str = "v1") -> Any:
    statement = f"SELECT {columns} FROM delivery WHERE event_id = ?"
    return connection.execute(statement, (event_id,)).fetchone()


# Lists.


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [1, 2, 3, 4]),
        ({"newest_first": True}, [4, 3, 2, 1]),
        ({"limit": 2}, [1, 2]),
        ({"after": 2}, [3, 4]),
        ({"before": 3}, [1, 2]),
        ({"since": 102}, [2, 3, 4]),
        ({"until": 102}, [1]),
        ({"event_type": "b"}, [4]),
        ({"event_ids": frozenset({"v3", "v1", "v9"})}, [1, 3]),
        ({"event_ids": frozenset()}, []),
        ({"states": frozenset({"dead"})}, [2]),
        ({"states": frozenset({"dead", "pending"})}, [1, 2, 4]),
        ({"states": frozenset({"dead", "pending"}), "limit": 2, "newest_first": True}, [4, 2]),
        ({"states": frozenset({"dead", "pending"}), "after": 1, "before": 4}, [2]),
        ({"states": frozenset({"dead"}), "event_ids": frozenset({"v1", "v2"})}, [2]),
    ],
)
def test_a_query_finds_what_it_restricts_to_in_its_order(
    connection: sqlite3.Connection, wanted: dict[str, Any], found: list[int]
) -> None:
    for sequence, state in enumerate(("pending", "dead", "delivered", "pending"), start=1):
        deliver(connection, sequence, state=state, event_type="b" if sequence == 4 else "a")
    deliver(connection, 1, endpoint="other")

    assert listed(connection, **wanted) == found


@pytest.mark.parametrize(
    "wanted", [{}, {"states": frozenset({"pending"})}, {"event_ids": frozenset({"v1"})}]
)
def test_a_query_of_another_tenant_finds_nothing(
    connection: sqlite3.Connection, wanted: dict[str, Any]
) -> None:
    deliver(connection, 1)

    assert listed(connection, "other", **wanted) == []


def test_counts_are_those_of_the_tenant_of_the_endpoint(connection: sqlite3.Connection) -> None:
    for sequence, state in enumerate(("pending", "dead", "dead"), start=1):
        deliver(connection, sequence, state=state)

    found = [sorted(connection.execute(sql.COUNTS, ("e", tenant))) for tenant in ("t", "other")]

    assert found == [[("dead", 2), ("pending", 1)], []]


def test_waiting_deliveries_are_the_open_ones_behind_a_place(
    connection: sqlite3.Connection,
) -> None:
    for sequence, state in enumerate(("pending", "retrying", "dead", "pending"), start=1):
        deliver(connection, sequence, state=state)

    given = {"endpoint": "e", "after": 1, "limit": 10}

    assert [row[1] for row in connection.execute(sql.WAITING, given)] == [2, 4]


# Attempts.


def begin(connection: sqlite3.Connection, now: int, leased: int = 99) -> int:
    return len(connection.execute(sql.BEGIN, (now, leased, KEYS)).fetchall())


@pytest.mark.parametrize(("now", "begun"), [(9, 0), (10, 1)])
def test_a_delivery_begins_when_it_is_due(
    connection: sqlite3.Connection, now: int, begun: int
) -> None:
    deliver(connection, 1, due=10)

    assert begin(connection, now) == begun


@pytest.mark.parametrize(("now", "begun"), [(19, 0), (20, 1)])
def test_a_delivery_begins_again_when_its_lease_ends(
    connection: sqlite3.Connection, now: int, begun: int
) -> None:
    deliver(connection, 1, due=0, leased=20)

    assert begin(connection, now) == begun


@pytest.mark.parametrize("state", ["dead", "delivered"])
def test_an_ended_delivery_does_not_begin(connection: sqlite3.Connection, state: str) -> None:
    deliver(connection, 1, state=state)

    assert begin(connection, 50) == 0


def test_what_begins_is_in_the_log_with_its_number(connection: sqlite3.Connection) -> None:
    deliver(connection, 1, number=2, attempts='[[1,1,1,0,"",0,[],""],[2,2,2,0,"",0,[],""]]')

    begin(connection, 50, leased=90)

    number, begun, leased, attempts = one(connection, "number, begun, leased, attempts")
    assert (number, begun, leased) == (3, 50, 90)
    assert json.loads(attempts)[-1] == [3, 50, None, 0, "", 0, [], ""]


def test_the_log_keeps_the_latest_attempts(connection: sqlite3.Connection) -> None:
    log = [[number, 1, 1, 0, "", 0, [], ""] for number in range(1, MAX_ATTEMPTS_KEPT + 1)]
    deliver(connection, 1, number=len(log), attempts=json.dumps(log))

    begin(connection, 50)

    kept = [attempt[0] for attempt in json.loads(one(connection, "attempts")[0])]
    assert kept == [*range(2, MAX_ATTEMPTS_KEPT + 2)]


def finish(connection: sqlite3.Connection, number: int = 1, begun: int = 50) -> int:
    log = json.dumps([number, begun, 60, 200, "", 10, [], ""])
    outcome = ["e", "v1", number, begun, "delivered", 0, 60, log]
    return connection.execute(sql.FINISH, (json.dumps([outcome]),)).rowcount


def test_what_began_is_finished_once(connection: sqlite3.Connection) -> None:
    deliver(connection, 1)
    begin(connection, 50)

    assert [finish(connection), finish(connection)] == [1, 0]
    state, ended, leased, attempts = one(connection, "state, ended, leased, attempts")
    assert (state, ended, leased) == ("delivered", 60, 0)
    assert json.loads(attempts) == [[1, 50, 60, 200, "", 10, [], ""]]


@pytest.mark.parametrize(("number", "begun"), [(2, 50), (1, 51)])
def test_an_attempt_that_was_overtaken_finishes_nothing(
    connection: sqlite3.Connection, number: int, begun: int
) -> None:
    deliver(connection, 1)
    begin(connection, 50)

    assert finish(connection, number, begun) == 0
    assert one(connection, "state, leased") == ("pending", 99)


# What is reopened.


def reopen(connection: sqlite3.Connection, tenant: str = "t", *, now: int = 70) -> int:
    return connection.execute(sql.REOPEN, (now, "e", tenant, '["v1"]')).rowcount


def test_an_ended_delivery_is_reopened_from_its_first_attempt(
    connection: sqlite3.Connection,
) -> None:
    deliver(connection, 1, state="dead", number=5, ended=60, leased=9)

    assert reopen(connection) == 1
    found = one(connection, "state, due, number, leased, ended")
    assert found == ("pending", 70, 0, 0, None)


def test_an_open_delivery_is_only_due_earlier(connection: sqlite3.Connection) -> None:
    deliver(connection, 1, state="retrying", due=500, number=5, leased=9)

    assert reopen(connection) == 1
    assert one(connection, "state, due, number, leased") == ("retrying", 70, 5, 9)


def test_an_open_delivery_that_is_due_stays(connection: sqlite3.Connection) -> None:
    deliver(connection, 1, state="retrying", due=70)

    assert reopen(connection) == 0


def test_a_delivery_of_another_tenant_is_not_reopened(connection: sqlite3.Connection) -> None:
    deliver(connection, 1, state="dead")

    assert reopen(connection, "other") == 0


# What is swept.


def swept(connection: sqlite3.Connection, condition: str, *values: Any) -> list[int]:
    rows = connection.execute(sql.candidates(condition), (*values, 10)).fetchall()
    chosen = json.dumps([row for (row,) in rows])
    before = connection.execute("SELECT rowid, sequence FROM delivery").fetchall()
    connection.execute(sql.sweep(condition), (chosen, *values))
    left = {row for (row,) in connection.execute("SELECT rowid FROM delivery")}
    return sorted(sequence for row, sequence in before if row not in left)


def test_what_ended_before_is_swept_but_the_newest(connection: sqlite3.Connection) -> None:
    endpoint(connection)
    for sequence, ended in enumerate((5, 6, 4, 3), start=1):
        deliver(connection, sequence, state="dead", ended=ended)

    assert swept(connection, sql.LONG_ENDED, "dead", 6) == [1, 3]


def test_of_a_deleted_endpoint_the_newest_is_swept_too(connection: sqlite3.Connection) -> None:
    endpoint(connection, "deleted")
    deliver(connection, 1, state="dead", ended=5)

    assert swept(connection, sql.LONG_ENDED, "dead", 6) == [1]


def test_what_is_open_is_swept_only_of_an_endpoint_that_is_not_active(
    connection: sqlite3.Connection,
) -> None:
    endpoint(connection)
    for sequence in (1, 2):
        deliver(connection, sequence, created=5, due=5)

    first = swept(connection, sql.LEFT_OPEN, 6)
    connection.execute("UPDATE endpoint SET state = 'paused'")

    assert (first, swept(connection, sql.LEFT_OPEN, 6)) == ([], [1])


@pytest.mark.parametrize("times", [{"created": 6, "due": 5}, {"created": 5, "due": 6}])
def test_what_is_open_stays_until_both_its_times_are_past(
    connection: sqlite3.Connection, times: dict[str, int]
) -> None:
    endpoint(connection, "paused")
    for sequence in (1, 2):
        deliver(connection, sequence, **times)

    assert swept(connection, sql.LEFT_OPEN, 6) == []
    assert swept(connection, sql.LEFT_OPEN, 7) == [1]


# Endpoints and leases.


def test_a_deleted_endpoint_is_not_among_all(connection: sqlite3.Connection) -> None:
    endpoint(connection, "deleted")

    assert connection.execute(sql.ALL_ENDPOINTS).fetchall() == []
    assert len(connection.execute(sql.ENDPOINTS_OF, ("t",)).fetchall()) == 1


def lease(connection: sqlite3.Connection, owner: str, now: int, until: int) -> int:
    return len(connection.execute(sql.LEASE, (owner, until, '["n"]', now)).fetchall())


def test_a_lease_is_taken_over_exactly_at_its_end(connection: sqlite3.Connection) -> None:
    lease(connection, "a", 0, 10)

    taken = [lease(connection, "b", now, now + 10) for now in (9, 10)]

    assert taken == [0, 1]


def test_a_lease_is_prolonged_by_its_owner_alone(connection: sqlite3.Connection) -> None:
    lease(connection, "a", 0, 10)

    assert [lease(connection, "a", 5, 15), lease(connection, "b", 12, 22)] == [1, 0]


def test_a_lease_is_released_by_its_owner_alone(connection: sqlite3.Connection) -> None:
    lease(connection, "a", 0, 10)

    released = [connection.execute(sql.RELEASE, ('["n"]', who)).rowcount for who in "ba"]

    assert released == [0, 1]
