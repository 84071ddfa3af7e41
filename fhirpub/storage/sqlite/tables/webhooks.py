"""The tables of webhooks in a SQLite store, and what is asked of them."""

# ruff: noqa: S608 - statements are put together from names in this file, never from values

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from fhirpub.storage.sqlite.parameters import json_list
from fhirpub.storage.webhook_contract import (
    MAX_ATTEMPTS_KEPT,
    MAX_LEASE_MULTIPLE,
    DeliveryQuery,
)

Parameters = dict[str, str | int]

# The large columns, which only an attempt or a look at one delivery needs, stand behind the small
# ones: SQLite reads a row only as far as it must.
TABLES = (
    """
    CREATE TABLE endpoint (
        id TEXT NOT NULL PRIMARY KEY,
        tenant TEXT NOT NULL,
        created INTEGER NOT NULL,
        state TEXT NOT NULL,
        revision INTEGER NOT NULL,
        url TEXT NOT NULL,
        events TEXT NOT NULL,
        payload TEXT NOT NULL,
        ordering TEXT NOT NULL,
        description TEXT NOT NULL,
        why TEXT NOT NULL,
        secrets TEXT NOT NULL,
        token BLOB NOT NULL,
        reopened INTEGER NOT NULL,
        condition BLOB NOT NULL
    ) STRICT
    """,
    "CREATE INDEX endpoint_by_tenant ON endpoint (tenant, created, id)",
    """
    CREATE TABLE delivery (
        endpoint TEXT NOT NULL,
        event_id TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        resource TEXT NOT NULL,
        state TEXT NOT NULL,
        due INTEGER NOT NULL,
        number INTEGER NOT NULL,
        begun INTEGER NOT NULL,
        leased INTEGER NOT NULL,
        tenant TEXT NOT NULL,
        event_type TEXT NOT NULL,
        created INTEGER NOT NULL,
        ended INTEGER,
        attempts TEXT NOT NULL,
        body BLOB NOT NULL
    ) STRICT
    """,
    "CREATE UNIQUE INDEX delivery_key ON delivery (endpoint, event_id)",
    "CREATE UNIQUE INDEX delivery_by_sequence ON delivery (endpoint, sequence)",
    "CREATE INDEX delivery_by_state ON delivery (endpoint, state, sequence)",
    "CREATE INDEX delivery_ended ON delivery (state, ended) WHERE ended IS NOT NULL",
    """
    CREATE TABLE lease (
        name TEXT NOT NULL PRIMARY KEY,
        owner TEXT NOT NULL,
        until INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
)

# One connection writes at a time and versions are never deleted, so that their rowids are in the
# order of the commits. All versions up to the mark are published but the exceptions, and none
# behind it. In a file that had no webhooks nothing was ever published: the mark begins at 0.
OUTBOX = (
    "CREATE TABLE relay_mark (number INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT",
    "INSERT INTO relay_mark VALUES (1, 0)",
    "CREATE TABLE relay_exception (number INTEGER PRIMARY KEY) STRICT",
)
OUTBOX_SINCE_8 = (
    *OUTBOX,
    "UPDATE relay_mark SET last = (SELECT ifnull(max(rowid), 0) FROM version)",
    """
    INSERT INTO relay_exception SELECT v.rowid
        FROM unrelayed AS u CROSS JOIN version AS v INDEXED BY version_key
        ON v.id = u.id AND v.version = u.version
    """,
    "DROP TRIGGER version_has_events",
    "DROP TABLE unrelayed",
)
"""Turns the table of all pending versions, which a trigger filled, into the exceptions."""

ENDPOINT = (
    "id, tenant, created, state, revision, url, events, payload, ordering, description, why, "
    "secrets, token, reopened, condition"
)
_ENDPOINT_VALUES = ", ".join("?" * len(ENDPOINT.split(",")))
ADD_ENDPOINT = f"INSERT OR IGNORE INTO endpoint ({ENDPOINT}) VALUES ({_ENDPOINT_VALUES})"
COPY_ENDPOINT = f"INSERT OR REPLACE INTO endpoint ({ENDPOINT}) VALUES ({_ENDPOINT_VALUES})"
REPLACE_ENDPOINT = """
    UPDATE endpoint SET created = ?3, state = ?4, revision = ?5, url = ?6, events = ?7,
        payload = ?8, ordering = ?9, description = ?10, why = ?11, secrets = ?12, token = ?13
    WHERE id = ?1 AND tenant = ?2 AND revision = ?5 - 1
"""
ENDPOINT_BY_ID = f"SELECT {ENDPOINT} FROM endpoint WHERE id = ? AND tenant = ?"
ENDPOINTS_OF = f"SELECT {ENDPOINT} FROM endpoint WHERE tenant = ? ORDER BY created, id"
ALL_ENDPOINTS = f"SELECT {ENDPOINT} FROM endpoint WHERE state <> 'deleted' ORDER BY created, id"
ENDPOINTS_OF_SOME = f"""
    SELECT {ENDPOINT} FROM endpoint
    WHERE tenant IN (SELECT value FROM json_each(?)) AND state <> 'deleted' ORDER BY created, id
"""
PUT_CONDITION = "UPDATE endpoint SET condition = ? WHERE id = ?"

LEASE = f"""
    INSERT INTO lease (name, owner, until) SELECT value, ?1, ?2 FROM json_each(?3) WHERE true
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
        WHERE owner = excluded.owner OR until <= ?4
            OR until > ?4 + {MAX_LEASE_MULTIPLE} * (?2 - ?4)
    RETURNING name
"""
RELEASE = "DELETE FROM lease WHERE name IN (SELECT value FROM json_each(?)) AND owner = ?"

_PAIRS = "SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)"

KEPT = """
    FROM json_each(?) AS k CROSS JOIN version AS v INDEXED BY version_key
    ON v.id = json_extract(k.value, '$[0]') AND v.version = json_extract(k.value, '$[1]')
"""
"""The versions ``v`` whose keys are in a JSON array of pairs."""

# The size of a BLOB stands at the beginning of its row: a version without events (`[]`) is passed
# over without reading the columns before them, which may be large.
_HAS_EVENTS = "length(v.events) > 2"
_ENTRY = "v.rowid, v.tenant, v.id, v.version, v.type, v.updated, v.events"
_BEHIND = f"FROM version AS v NOT INDEXED WHERE v.rowid > ? AND v.rowid <= ? AND {_HAS_EVENTS}"
MARK_AND_END = "SELECT last, ifnull((SELECT max(rowid) FROM version), 0) FROM relay_mark"
EXCEPTIONS = f"""
    SELECT {_ENTRY} FROM relay_exception AS e CROSS JOIN version AS v ON v.rowid = e.number
    ORDER BY e.number LIMIT ?
"""
BEHIND = f"SELECT {_ENTRY} {_BEHIND} ORDER BY v.rowid LIMIT ?"
NUMBERS_BEHIND = f"SELECT v.rowid {_BEHIND}"
NUMBERS_OF = f"SELECT v.rowid {KEPT}"
PENDING_OF = f"""
    SELECT v.id, v.version {KEPT}
    WHERE v.rowid IN (SELECT number FROM relay_exception)
        OR (v.rowid > (SELECT last FROM relay_mark) AND {_HAS_EVENTS})
"""
MOVE_MARK = "UPDATE relay_mark SET last = ? WHERE last = ?"
ADD_EXCEPTIONS = "INSERT INTO relay_exception SELECT value FROM json_each(?)"
REMOVE_EXCEPTIONS = "DELETE FROM relay_exception WHERE number IN (SELECT value FROM json_each(?))"

_DELIVERY = (
    "endpoint, event_id, sequence, resource, state, due, number, begun, leased, tenant, "
    "event_type, created, ended, attempts, body"
)
_COLUMNS = _DELIVERY.split(", ")
_WAITING = "endpoint, sequence, event_id, resource, created, due, number, leased"
_OPEN = "state IN ('pending', 'retrying')"

# SQLite takes the shortest way to a maximum only where nothing else is asked for.
ENDS = """
    SELECT value, (SELECT max(sequence) FROM delivery WHERE endpoint = value) FROM json_each(?)
"""
TOLD = (
    "SELECT event_id FROM delivery INDEXED BY delivery_key "
    "WHERE endpoint = ? AND event_id IN (SELECT value FROM json_each(?))"
)
COUNTS = """
    SELECT state, count(*) FROM delivery INDEXED BY delivery_by_state
    WHERE endpoint = ?1 AND ?2 = (SELECT tenant FROM delivery WHERE endpoint = ?1 LIMIT 1)
    GROUP BY state
"""
WALK_DELIVERIES = (
    f"SELECT {_DELIVERY} FROM delivery INDEXED BY delivery_by_sequence "
    "WHERE (endpoint, sequence) > (?, ?) ORDER BY endpoint, sequence LIMIT ?"
)

# One statement for all: the attempt that begins stands at the end of the log.
BEGIN = f"""
    UPDATE delivery SET number = number + 1, begun = ?1, leased = ?2, attempts = json_insert(
        iif(
            json_array_length(attempts) < {MAX_ATTEMPTS_KEPT},
            attempts,
            json_remove(attempts, '$[0]')
        ),
        '$[#]',
        json_array(number + 1, ?1, NULL, 0, '', 0, json_array(), '')
    )
    WHERE (endpoint, event_id) IN ({_PAIRS.replace("?", "?3")}) AND {_OPEN}
        AND leased <= ?1 AND due <= ?1
    RETURNING {_DELIVERY}
"""
LOGS = f"""
    SELECT endpoint, event_id, attempts FROM delivery INDEXED BY delivery_key
    WHERE (endpoint, event_id) IN ({_PAIRS})
"""
FINISH = f"""
    UPDATE delivery INDEXED BY delivery_key SET
        state = o.new_state, due = o.new_due, ended = o.new_ended, leased = 0,
        attempts = json_replace(attempts, '$[#-1]', json(o.attempt))
    FROM (
        SELECT
            json_extract(value, '$[0]') AS of_endpoint, json_extract(value, '$[1]') AS of_event,
            json_extract(value, '$[2]') AS of_number, json_extract(value, '$[3]') AS of_begun,
            json_extract(value, '$[4]') AS new_state, json_extract(value, '$[5]') AS new_due,
            json_extract(value, '$[6]') AS new_ended, json_extract(value, '$[7]') AS attempt
        FROM json_each(?)
    ) AS o
    WHERE endpoint = o.of_endpoint AND event_id = o.of_event
        AND number = o.of_number AND begun = o.of_begun AND {_OPEN}
"""
REOPEN = f"""
    UPDATE delivery INDEXED BY delivery_key SET
        due = ?1,
        number = iif({_OPEN}, number, 0),
        leased = iif({_OPEN}, leased, 0),
        state = iif({_OPEN}, state, 'pending'),
        ended = NULL
    WHERE endpoint = ?2 AND tenant = ?3 AND event_id IN (SELECT value FROM json_each(?4))
        AND (NOT {_OPEN} OR due > ?1)
"""
REOPENED = "UPDATE endpoint SET reopened = reopened + 1 WHERE id = ?"

# The newest one of an endpoint holds its place in the sequence, as long as that goes on.
_NOT_NEEDED = """(
    sequence < (SELECT max(sequence) FROM delivery AS n WHERE n.endpoint = delivery.endpoint)
    OR EXISTS (SELECT 1 FROM endpoint AS e WHERE e.id = delivery.endpoint AND e.state = 'deleted')
)"""
LONG_ENDED = f"state = ? AND ended < ? AND {_NOT_NEEDED}"
LEFT_OPEN = (
    f"endpoint IN (SELECT id FROM endpoint WHERE state <> 'active') AND {_OPEN} "
    f"AND max(created, due) < ? AND {_NOT_NEEDED}"
)


@cache
def add_deliveries(count: int) -> str:
    """Return the statement that adds so many deliveries, or none of them."""
    row = f"({', '.join('?' * len(_COLUMNS))})"
    return f"INSERT INTO delivery ({_DELIVERY}) VALUES {', '.join([row] * count)}"


ADD_DELIVERY_IF_FREE = f"{add_deliveries(1)} ON CONFLICT DO NOTHING"
PUT_DELIVERY = f"{add_deliveries(1)} ON CONFLICT (endpoint, event_id) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in _COLUMNS[2:]
)


def candidates(condition: str) -> str:
    """Return the statement that finds some of the deliveries that are to be swept."""
    return f"SELECT rowid FROM delivery WHERE {condition} LIMIT ?"


def sweep(condition: str) -> str:
    """Return the statement that deletes them, unless they have changed in between."""
    # By their row numbers and by no index, which would have all others looked at as well.
    chosen = "rowid IN (SELECT value FROM json_each(?))"
    return f"DELETE FROM delivery NOT INDEXED WHERE {chosen} AND {condition}"


def list_deliveries(tenant: str, query: DeliveryQuery) -> tuple[str, Parameters]:
    """Return the statement for what a query asks, and its parameters."""
    conditions = ["endpoint = :endpoint", "tenant = :tenant", "sequence > :after"]
    parameters: Parameters = {
        "endpoint": query.endpoint,
        "tenant": tenant,
        "after": query.after,
        "limit": query.limit,
    }
    for condition, value in (
        ("sequence < :before", query.before),
        ("event_type = :event_type", query.event_type),
        ("created >= :since", query.since),
        ("created < :until", query.until),
    ):
        if value is not None:
            conditions.append(condition)
            parameters[condition.rpartition(":")[2]] = value
    if query.event_ids is not None:
        conditions.append("event_id IN (SELECT value FROM json_each(:event_ids))")
        parameters["event_ids"] = json_list(query.event_ids)
    states = {f"state{number}": state for number, state in enumerate(sorted(query.states))}
    direction = "DESC" if query.newest_first else "ASC"
    index = "delivery_by_sequence" if query.event_ids is None else "delivery_key"
    statement = _in_order(
        _DELIVERY, conditions, [f":{state}" for state in states], direction, index
    )
    return statement, parameters | states


def _in_order(
    columns: str,
    conditions: Sequence[str],
    states: Sequence[str],
    direction: str = "ASC",
    index: str = "delivery_by_sequence",
) -> str:
    """Return the statement for deliveries in the order of the sequence, at most ``:limit``.

    Those of several states are found state by state, as the index has them: neither are all of
    a long queue sorted for the first of them, nor are the others read.
    """
    order = f"ORDER BY sequence {direction} LIMIT :limit"
    if not states or index == "delivery_key":
        either = [f"state IN ({', '.join(states)})"] if states else []
        where = " AND ".join([*conditions, *either])
        return f"SELECT {columns} FROM delivery INDEXED BY {index} WHERE {where} {order}"
    of_one = (
        "SELECT * FROM (SELECT rowid FROM delivery INDEXED BY delivery_by_state "
        f"WHERE {' AND '.join([*conditions, f'state = {state}'])} {order})"
        for state in states
    )
    found = " UNION ALL ".join(of_one)
    return f"SELECT {columns} FROM delivery WHERE rowid IN ({found}) {order}"


WAITING = _in_order(
    _WAITING, ["endpoint = :endpoint", "sequence > :after"], ["'pending'", "'retrying'"]
)
