"""The tables of the audit trail in a SQLite store, and the statements on them."""

from __future__ import annotations

# Records of versions are sealed up to the mark, a rowid of `version`; the others wait as rows.
# `audit_value` finds blocks by their keys, the newest first, as `search_value` finds versions.
TABLES = (
    """
    CREATE TABLE audit_pending (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant TEXT NOT NULL,
        records BLOB NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE audit_block (
        tenant TEXT NOT NULL,
        number INTEGER NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        hashes BLOB NOT NULL,
        records BLOB NOT NULL
    ) STRICT
    """,
    "CREATE UNIQUE INDEX audit_block_key ON audit_block (tenant, number)",
    "CREATE INDEX audit_block_time ON audit_block (tenant, first DESC, number DESC, last)",
    """
    CREATE TABLE audit_value (
        value INTEGER NOT NULL,
        first INTEGER NOT NULL,
        number INTEGER NOT NULL,
        PRIMARY KEY (value, first DESC, number DESC)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE audit_checkpoint (
        tenant TEXT NOT NULL,
        number INTEGER NOT NULL,
        checkpoint TEXT NOT NULL,
        PRIMARY KEY (tenant, number)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE TABLE audit_mark (number INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT",
    "INSERT INTO audit_mark SELECT 1, ifnull(max(rowid), 0) FROM version",
)
"""What is in a file that had no audit trail was never recorded: the mark begins behind it."""

ADD_PENDING = "INSERT INTO audit_pending (tenant, records) VALUES (?, ?)"
PENDING = "SELECT number, tenant, records FROM audit_pending ORDER BY number LIMIT ?"
COUNT_PENDING = "SELECT count(*) FROM (SELECT 1 FROM audit_pending LIMIT ?)"
REMOVE_PENDING = "DELETE FROM audit_pending WHERE number <= ?"
MARK_AND_END = "SELECT last, ifnull((SELECT max(rowid) FROM version), 0) FROM audit_mark"
MOVE_MARK = "UPDATE audit_mark SET last = ?"
# The size of a BLOB stands at the beginning of its row: one without a record is passed over.
VERSIONS = """
    SELECT v.rowid, v.tenant, v.type, v.id, v.version, v.updated, v.audit
    FROM version AS v NOT INDEXED
    WHERE v.rowid > ? AND v.rowid <= ? AND length(v.audit) > 0 ORDER BY v.rowid LIMIT ?
"""

BLOCK = "tenant, number, first, last, records, hashes"
PUT_BLOCK = f"INSERT OR IGNORE INTO audit_block ({BLOCK}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608
# Many keys in one statement: between two of them the writer would wait for the interpreter.
PUT_VALUES = """
    INSERT OR IGNORE INTO audit_value (value, first, number)
    SELECT k.value, ?1, ?2 FROM json_each(?3) AS k
"""
DELETE_BLOCK = "DELETE FROM audit_block WHERE tenant = ? AND number = ?"
DELETE_VALUES = """
    DELETE FROM audit_value
    WHERE first = ?1 AND number = ?2 AND value IN (SELECT k.value FROM json_each(?3) AS k)
"""
LAST_NUMBER = "SELECT ifnull(max(number), 0) FROM audit_block WHERE tenant = ?"
END = "SELECT number, hashes FROM audit_block WHERE tenant = ? ORDER BY number DESC LIMIT 1"
CHAIN = (
    f"SELECT {BLOCK} FROM audit_block WHERE tenant = ? AND number > ? "  # noqa: S608
    "ORDER BY number LIMIT ?"
)
TENANTS = "SELECT DISTINCT tenant FROM audit_block ORDER BY tenant"
PUT_CHECKPOINT = "INSERT OR REPLACE INTO audit_checkpoint VALUES (?, ?, ?)"
DELETE_CHECKPOINTS = "DELETE FROM audit_checkpoint WHERE tenant = ? AND number < ?"
CHECKPOINTS = """
    SELECT number, checkpoint FROM audit_checkpoint WHERE tenant = ? AND number > ?
    ORDER BY number LIMIT ?
"""


def find_blocks(keys: int) -> str:
    """Return the statement that finds blocks by so many keys, ``:key0`` and so on."""
    source, conditions = "audit_block AS f", ["f.tenant = :tenant"]
    if keys:
        source, conditions = "audit_value AS f", ["f.value = :key0"]
    conditions += ["f.first <= :until", "f.first >= :since_first"]
    conditions.append("(f.first, f.number) < (:before_first, :before_number)")
    conditions += [
        f"EXISTS (SELECT 1 FROM audit_value WHERE value = :key{place} "  # noqa: S608
        "AND first = f.first AND number = f.number)"
        for place in range(1, keys)
    ]
    columns = ", ".join(f"b.{name}" for name in BLOCK.split(", "))
    # A key may be that of a block which was never added, and whose number another block has.
    return (
        f"SELECT {columns} FROM {source} CROSS JOIN audit_block AS b INDEXED BY audit_block_key "  # noqa: S608
        "ON b.tenant = :tenant AND b.number = f.number AND b.first = f.first "
        f"WHERE {' AND '.join(conditions)} AND b.last >= :since "
        "ORDER BY f.first DESC, f.number DESC LIMIT :limit"
    )
