"""The tables of erasure in a SQLite store, and the statements on them."""

# ruff: noqa: S608 - statements are put together from names in this file, never from values

from __future__ import annotations

from fhirpub.storage.erasure.tombstones import MARK

TABLES = (
    """
    CREATE TABLE erasure (
        tenant TEXT NOT NULL,
        type TEXT NOT NULL,
        id TEXT NOT NULL,
        ordered INTEGER NOT NULL,
        operator TEXT NOT NULL,
        reason TEXT NOT NULL,
        allows_reuse INTEGER NOT NULL,
        version INTEGER NOT NULL,
        finished INTEGER,
        PRIMARY KEY (tenant, id)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX erasure_reuse ON erasure (tenant) WHERE allows_reuse",
    """
    CREATE TABLE hold (
        tenant TEXT NOT NULL,
        type TEXT NOT NULL,
        id TEXT NOT NULL,
        since INTEGER NOT NULL,
        operator TEXT NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (tenant, type, id)
    ) STRICT, WITHOUT ROWID
    """,
)

ERASURE = "tenant, type, id, ordered, operator, reason, allows_reuse, version, finished"
PUT_ERASURE = f"INSERT OR REPLACE INTO erasure ({ERASURE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
ERASURES = f"""
    SELECT {ERASURE} FROM erasure
    WHERE (tenant, id) > (?1, ?2) AND (?3 IS NULL OR tenant = ?3)
        AND (NOT ?4 OR finished IS NULL)
    ORDER BY tenant, id LIMIT ?5
"""
HAS_REUSE = "SELECT EXISTS (SELECT 1 FROM erasure WHERE tenant = ? AND allows_reuse)"
HOLD = "tenant, type, id, since, operator, reason"
PUT_HOLD = f"INSERT OR REPLACE INTO hold ({HOLD}) VALUES (?, ?, ?, ?, ?, ?)"
DELETE_HOLD = "DELETE FROM hold WHERE tenant = ? AND type = ? AND id = ?"
HOLDS = f"SELECT {HOLD} FROM hold WHERE tenant = ? ORDER BY since, type, id"

_BELOW = "id = ?1 AND tenant = ?2 AND version < ?3"
# Those that stand for another tombstone, of before the identifier was registered again, too.
NEXT_VERSION = f"""
    SELECT rowid FROM version INDEXED BY version_key
    WHERE {_BELOW} AND body <> ?4 ORDER BY version LIMIT 1
"""
NEXT_MEMBERS = f"""
    SELECT m.rowid FROM version AS v INDEXED BY version_key
    CROSS JOIN members ON members.owner = v.rowid AND members.last > ?5
    CROSS JOIN version AS m NOT INDEXED
        ON m.rowid > max(members.owner, ?5) AND m.rowid <= members.last
    WHERE v.id = ?1 AND v.tenant = ?2 AND v.version < ?3
        AND (substr(m.type, 1, 1) <> '{MARK}' OR m.body <> ?4)
    ORDER BY v.version, m.rowid LIMIT ?6
"""
IS_SEALED = "SELECT ? <= last FROM audit_mark"
ERASE = """
    UPDATE version SET type = ?2, system = '', value = '', status = '', documents = '', size = ?3,
        search = '[]', digest = x'', events = x'5B5D', audit = iif(?4, x'', audit), body = ?5,
        response = x'', parts = x'', attached = x''
    WHERE rowid = ?1
"""
# What is left without a version is swept at once: with a concurrent addition it is named again,
# or stored again, within the one transaction that adds the version.
FORGET_DOCUMENTS = (
    "DELETE FROM document WHERE tenant = ? AND sha256 = ? AND id = ? AND version = ?"
)
LOOSEN = """
    UPDATE blob SET named = 0, added = 0 WHERE tenant = ?1 AND sha256 = ?2
        AND NOT EXISTS (SELECT 1 FROM document WHERE tenant = ?1 AND sha256 = ?2)
"""
SWEPT_BEFORE = 1
"""The time before which only such blobs were added."""
UNCOUNT = "UPDATE stored_bytes SET bytes = bytes - ? WHERE tenant = ?"
STILL_STORED = """
    SELECT value FROM json_each(?2) WHERE EXISTS (
        SELECT 1 FROM document WHERE tenant = ?1 AND sha256 = value
    ) OR EXISTS (SELECT 1 FROM blob WHERE tenant = ?1 AND sha256 = value)
"""
SHARED = """
    SELECT value FROM json_each(?2) WHERE EXISTS (
        SELECT 1 FROM document WHERE tenant = ?1 AND sha256 = value
            AND id NOT IN (SELECT value FROM json_each(?3))
    )
"""
DELIVERIES = """
    SELECT d.rowid, d.body, d.attempts, d.leased FROM endpoint AS e
    CROSS JOIN delivery AS d INDEXED BY delivery_key ON d.endpoint = e.id
    WHERE e.tenant = ?1 AND d.event_id >= ?2 AND d.event_id < ?3 AND d.rowid > ?4
    ORDER BY d.rowid LIMIT ?5
"""
REPLACE_DELIVERY = "UPDATE delivery SET body = ?, attempts = ? WHERE rowid = ? AND attempts = ?"
