"""The tables of a SQLite store, how they come to be, and what is asked of them."""

# ruff: noqa: S608 - statements are put together from names in this file, never from values

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import cache

from fhirpub.storage.contract import SMALL_BYTES
from fhirpub.storage.sqlite.tables import audit, clients, documents, erasure, quotas, webhooks
from fhirpub.storage.sqlite.tables import client_activity as activity

SCHEMA_VERSION = 13
USABLE_FROM = 13
"""The oldest version whose releases may use a file of this one (D-382): the same, unless they
lose nothing, and show nothing that they must not, by not knowing what is new."""
APPLICATION_ID = 0x66687062
"""Marks the file as ours ("fhpb"), so that no other program's database is written to."""

LEAST_SQLITE = (3, 37, 0)

# Short rows, for there are several of each version: `field` is a number made of tenant, type and
# name, `number` the version's rowid. They find candidates; the version itself decides.
_SEARCH = (
    """
    CREATE TABLE search_value (
        field INTEGER NOT NULL,
        value ANY NOT NULL,
        updated INTEGER NOT NULL,
        number INTEGER NOT NULL,
        PRIMARY KEY (field, value, updated DESC, number)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE TABLE search_rules (number INTEGER PRIMARY KEY, rules TEXT NOT NULL) STRICT",
)

# Members (ADR 24) are the rows of `version` that follow that of their version, up to `last`: both
# are rowids. A version without members costs nothing, and an older file is not read to add this.
_MEMBERS = ("CREATE TABLE members (owner INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT",)

# The large columns stand last: SQLite reads a row only as far as it must. A resource's id is
# derived from its tenant's secret, so that (id, version) is a key without the tenant.
_TABLES = (
    """
    CREATE TABLE version (
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        tenant TEXT NOT NULL,
        type TEXT NOT NULL,
        system TEXT NOT NULL,
        value TEXT NOT NULL,
        status TEXT NOT NULL,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        documents TEXT NOT NULL,
        size INTEGER NOT NULL,
        search TEXT NOT NULL,
        digest BLOB NOT NULL,
        events BLOB NOT NULL,
        audit BLOB NOT NULL,
        body BLOB NOT NULL,
        response BLOB NOT NULL,
        parts BLOB NOT NULL,
        attached BLOB NOT NULL
    ) STRICT
    """,
    "CREATE UNIQUE INDEX version_key ON version (id, version)",
    # These hold all that a search and its total ask for but the key of later versions. No search
    # asks for members by the first two. An upgraded file keeps those without a condition: to make
    # them again, SQLite would sort all versions in memory.
    """CREATE INDEX version_by_value ON version (tenant, type, value, system, version)
        WHERE value <> ''""",
    """CREATE INDEX version_by_system ON version (tenant, type, system, updated DESC, id, version)
        WHERE value <> ''""",
    "CREATE INDEX version_by_time ON version (tenant, type, updated DESC, id, version)",
    """
    CREATE TABLE tenant (
        id TEXT NOT NULL PRIMARY KEY,
        name TEXT NOT NULL,
        salt BLOB NOT NULL,
        created INTEGER NOT NULL,
        disabled INTEGER NOT NULL
    ) STRICT
    """,
    clients.TABLE,
    """
    CREATE TABLE signing_key (
        kid TEXT NOT NULL PRIMARY KEY,
        algorithm TEXT NOT NULL,
        environment TEXT NOT NULL,
        created INTEGER NOT NULL,
        private_pem BLOB NOT NULL,
        retired INTEGER
    ) STRICT
    """,
    "CREATE TABLE probe (number INTEGER PRIMARY KEY, moment INTEGER NOT NULL) STRICT",
    *documents.TABLES,
    *_SEARCH,
    *webhooks.TABLES,
    *webhooks.OUTBOX,
    *quotas.TABLES,
    *documents.PIECES,
    *_MEMBERS,
    *activity.TABLES,
    activity.USED_ASSERTION,
    *audit.TABLES,
    *erasure.TABLES,
)
_FILL_MEMBERS = "INSERT INTO members SELECT owner, max(number) FROM member GROUP BY owner"
_ADD_SEARCH = "ALTER TABLE version ADD COLUMN search TEXT NOT NULL DEFAULT '[]'"
_ADD_DIGEST = "ALTER TABLE version ADD COLUMN digest BLOB NOT NULL DEFAULT x''"
_ADD_AUDIT = "ALTER TABLE version ADD COLUMN audit BLOB NOT NULL DEFAULT x''"
_SINCE_12 = (activity.USED_ASSERTION, *clients.ADD_KEYS)
_SINCE_11 = (*erasure.TABLES, *_SINCE_12)
_SINCE_10 = (_ADD_AUDIT, *audit.TABLES, *_SINCE_11)
_SINCE_9 = (*activity.TABLES, clients.ADD_NETWORKS, *_SINCE_10)
_SINCE_8 = (*webhooks.OUTBOX_SINCE_8, *_SINCE_9)
_SINCE_7 = (*documents.ATTACH, *_SINCE_8)
_SINCE_4 = (*documents.PIECES, *_MEMBERS, *_SINCE_7)

STEPS = {
    0: (*_TABLES, f"PRAGMA application_id = {APPLICATION_ID}"),
    1: (
        "ALTER TABLE blob ADD COLUMN title TEXT NOT NULL DEFAULT ''",
        *(_ADD_SEARCH, *_SEARCH),
        *(*webhooks.TABLES, *webhooks.OUTBOX),
        *(*quotas.TABLES, *quotas.FILL),
        *(_ADD_DIGEST, *documents.PIECES, *_MEMBERS, *documents.ATTACH, *_SINCE_9),
    ),
    2: (*quotas.TABLES, *quotas.FILL, _ADD_DIGEST, *_SINCE_4),
    3: (_ADD_DIGEST, *_SINCE_4),
    4: _SINCE_4,
    5: (*_MEMBERS, *_SINCE_7),
    6: (*_MEMBERS, _FILL_MEMBERS, "DROP TABLE member", *_SINCE_7),
    7: _SINCE_7,
    8: _SINCE_8,
    9: _SINCE_9,
    10: _SINCE_10,
    11: _SINCE_11,
    12: _SINCE_12,
    SCHEMA_VERSION: (),
}
"""What makes a file of this release of one without tables, and of each older one."""

_FACTS = (
    "id, version, tenant, type, system, value, status, created, updated, documents, size, search"
)
_BYTES = ("digest", "events", "body", "response", "parts", "attached", "audit")
VERSION_COLUMNS = f"{_FACTS}, {', '.join(_BYTES)}"


def _columns_with(instead: Mapping[str, str]) -> str:
    return ", ".join(instead.get(name, name) for name in VERSION_COLUMNS.split(", "))


# What is read on the event loop's thread; more would block all other requests.
_SMALL = {name: f"iif(size <= {SMALL_BYTES}, {name}, NULL)" for name in _BYTES}
_NOT_SHOWN = {
    "search": "'[]'",
    "digest": "x''",
    "events": "x'5B5D'",
    "response": "x''",
    "parts": "x''",
    "audit": "x''",
}

# Lists show where documents are, not the documents.
_LISTED_COLUMNS = _columns_with(
    {"size": "size - length(attached)", "attached": "x''", "audit": "x''"}
)

# Versions and their documents are added by one statement, which is its own transaction: after
# each the writer would have to wait until the event loop's thread releases the interpreter. A
# row with an id is a version, with `found_by` as JSON: values by fields. Behind it are its
# members, as many as `members` says: new rowids follow one another. A row without an id is a blob,
# its bytes in `body`, its hash in `value`. What is named comes first. The bytes of a large one
# follow by `blobs.add_bytes`: SQLite copies the rows before it hands them on.
_ADDITION = (
    f"""
    CREATE TEMP VIEW IF NOT EXISTS addition AS
        SELECT {VERSION_COLUMNS}, '{{}}' AS found_by, 0 AS members FROM version
    """,
    f"""
    CREATE TEMP TRIGGER IF NOT EXISTS add_version INSTEAD OF INSERT ON addition
    WHEN NEW.id IS NOT NULL
    BEGIN
        INSERT INTO version ({VERSION_COLUMNS})
            VALUES ({", ".join(f"NEW.{part}" for part in VERSION_COLUMNS.split(", "))});
        INSERT OR IGNORE INTO search_value (field, value, updated, number)
            SELECT key, value, NEW.updated, last_insert_rowid() FROM json_each(NEW.found_by);
        INSERT INTO members (owner, last)
            SELECT last_insert_rowid(), last_insert_rowid() + NEW.members WHERE NEW.members > 0;
    END
    """,
    """
    CREATE TEMP TRIGGER IF NOT EXISTS add_blob INSTEAD OF INSERT ON addition
    WHEN NEW.id IS NULL AND NEW.tenant IS NOT NULL
    BEGIN
        INSERT INTO blob (tenant, sha256, content_type, title, size, added, named)
            SELECT NEW.tenant, NEW.value, NEW.type, '', NEW.size, NEW.created,
                EXISTS (SELECT 1 FROM document WHERE tenant = NEW.tenant AND sha256 = NEW.value)
            WHERE true
            ON CONFLICT (tenant, sha256) DO UPDATE SET added = max(added, excluded.added);
        INSERT INTO blob_bytes (number, data)
            SELECT number, NEW.body FROM blob
            WHERE tenant = NEW.tenant AND sha256 = NEW.value AND NEW.body IS NOT NULL
            ON CONFLICT (number) DO NOTHING;
    END
    """,
)
ADDITION_COLUMNS = len(VERSION_COLUMNS.split(",")) + 2
TAKEN = f"SELECT v.id, v.version {webhooks.KEPT}"

_LATEST = (
    "FROM version INDEXED BY version_key WHERE id = ? AND tenant = ? ORDER BY version DESC LIMIT 1"
)
LATEST = f"SELECT {VERSION_COLUMNS} {_LATEST}"
LATEST_IF_SMALL = f"SELECT {_columns_with(_SMALL)} {_LATEST}"
SHOWN = f"SELECT {_columns_with(_NOT_SHOWN)} {_LATEST}"
SHOWN_IF_SMALL = f"SELECT {_columns_with(_SMALL | _NOT_SHOWN)} {_LATEST}"
_EXACT = "FROM version INDEXED BY version_key WHERE id = ? AND tenant = ? AND version = ?"
EXACT = f"SELECT {VERSION_COLUMNS} {_EXACT}"
EXACT_IF_SMALL = f"SELECT {_columns_with(_SMALL)} {_EXACT}"
HISTORY = (
    f"SELECT {_LISTED_COLUMNS} FROM version INDEXED BY version_key "
    "WHERE id = ? AND tenant = ? AND version < ? ORDER BY version DESC LIMIT ?"
)
COUNT = "SELECT (SELECT count(*) FROM version) - (SELECT total(last - owner) FROM members)"
WALK = (
    f"SELECT {VERSION_COLUMNS}, rowid FROM version INDEXED BY version_key "
    "WHERE (id, version) > (?, ?) "
    "AND rowid > ifnull((SELECT last FROM members WHERE owner < version.rowid "
    "ORDER BY owner DESC LIMIT 1), 0) "
    "ORDER BY id, version LIMIT ?"
)
MEMBERS = (
    f"SELECT {VERSION_COLUMNS} FROM members CROSS JOIN version NOT INDEXED "
    "ON version.rowid > members.owner AND version.rowid <= members.last "
    "WHERE members.owner = ? ORDER BY version.rowid"
)
NUMBERED = f"SELECT {_LISTED_COLUMNS} FROM version WHERE rowid = ?"
WHOLE_ROW = f"SELECT {VERSION_COLUMNS} FROM version WHERE rowid = ?"

_TENANT = "id, name, salt, created, disabled"
PUT_TENANT = f"INSERT OR REPLACE INTO tenant ({_TENANT}) VALUES (?, ?, ?, ?, ?)"
ADD_TENANT = f"INSERT OR IGNORE INTO tenant ({_TENANT}) VALUES (?, ?, ?, ?, ?)"
CHANGE_TENANT = (
    "UPDATE tenant SET name = coalesce(?, name), disabled = coalesce(?, disabled) WHERE id = ?"
)
TENANT = f"SELECT {_TENANT} FROM tenant WHERE id = ?"
TENANTS = f"SELECT {_TENANT} FROM tenant ORDER BY created, id"

_KEY = "kid, algorithm, environment, created, private_pem, retired"
PUT_KEY = f"INSERT OR REPLACE INTO signing_key ({_KEY}) VALUES (?, ?, ?, ?, ?, ?)"
KEYS = f"SELECT {_KEY} FROM signing_key WHERE environment = ? ORDER BY created, kid"
UNRETIRED = "SELECT kid FROM signing_key WHERE environment = ? AND retired IS NULL"
RETIRE = "UPDATE signing_key SET retired = ? WHERE environment = ? AND retired IS NULL"

SECRETS = """
    SELECT 'salt', id, salt, NOT disabled FROM tenant
    UNION ALL
    SELECT 'private key', environment || '/' || kid, private_pem, retired IS NULL FROM signing_key
"""
REPLACE_SALT = "UPDATE tenant SET salt = ? WHERE id = ? AND salt = ?"
REPLACE_PRIVATE_KEY = (
    "UPDATE signing_key SET private_pem = ? WHERE environment || '/' || kid = ? "
    "AND private_pem = ?"
)

REPLACE_SEARCH = (
    "UPDATE version SET search = ?4 WHERE id = ?1 AND version = ?2 AND tenant = ?3 RETURNING rowid"
)
FORGET_SEARCH_VALUE = (
    "DELETE FROM search_value WHERE field = ? AND value = ? AND updated = ? AND number = ?"
)
ADD_SEARCH_VALUE = (
    "INSERT OR IGNORE INTO search_value (field, value, updated, number) VALUES (?, ?, ?, ?)"
)
PUT_SEARCH_RULES = "INSERT OR REPLACE INTO search_rules (number, rules) VALUES (1, ?)"
SEARCH_RULES = "SELECT rules FROM search_rules"

PUT_PROBE = "INSERT OR REPLACE INTO probe (number, moment) VALUES (1, ?)"
PROBE = "SELECT moment FROM probe"


def make_addition(connection: sqlite3.Connection) -> None:
    """Make what ``add_rows`` inserts into, for the connection that writes."""
    for statement in _ADDITION:
        connection.execute(statement)


@cache
def add_rows(count: int) -> str:
    """Return the statement that adds so many rows of ``addition``; none, if a key is taken."""
    row = f"({', '.join('?' * ADDITION_COLUMNS)})"
    return f"INSERT INTO addition VALUES {', '.join([row] * count)}"
