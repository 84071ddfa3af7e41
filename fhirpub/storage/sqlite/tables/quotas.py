"""The tables of quotas in a SQLite store, and the statements on them."""

from __future__ import annotations

# Stored bytes are counted by triggers: within the transaction that adds a version or a document,
# and of a document only if it is new. The table is one page, so that this costs a microsecond.
_ADD_BYTES = """
    INSERT INTO stored_bytes (tenant, bytes) {source}
        ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes
"""
_NEW = "VALUES (NEW.tenant, NEW.size)"
TABLES = (
    """
    CREATE TABLE quota_override (
        owner TEXT NOT NULL,
        quota TEXT NOT NULL,
        most INTEGER NOT NULL,
        PRIMARY KEY (owner, quota)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE quota_count (
        owner TEXT NOT NULL,
        quota TEXT NOT NULL,
        process TEXT NOT NULL,
        period INTEGER NOT NULL,
        until INTEGER NOT NULL,
        used INTEGER NOT NULL,
        PRIMARY KEY (owner, quota, process)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE stored_bytes (
        tenant TEXT NOT NULL PRIMARY KEY,
        bytes INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    f"""
    CREATE TRIGGER version_counts_bytes AFTER INSERT ON version
    BEGIN {_ADD_BYTES.format(source=_NEW)}; END
    """,
    f"""
    CREATE TRIGGER blob_counts_bytes AFTER INSERT ON blob
    BEGIN {_ADD_BYTES.format(source=_NEW)}; END
    """,
    """
    CREATE TRIGGER swept_blob_counts_bytes AFTER DELETE ON blob
    BEGIN UPDATE stored_bytes SET bytes = bytes - OLD.size WHERE tenant = OLD.tenant; END
    """,
)
# Row by row: to group them by tenant, SQLite would sort all of them in memory.
FILL = tuple(
    _ADD_BYTES.format(source=f"SELECT tenant, size FROM {table} WHERE true")  # noqa: S608 - names
    for table in ("version", "blob")
)
"""Counts what a file of an older release holds; in the transaction that creates the tables."""

PUT_OVERRIDE = "INSERT OR REPLACE INTO quota_override (owner, quota, most) VALUES (?, ?, ?)"
DELETE_OVERRIDE = "DELETE FROM quota_override WHERE owner = ? AND quota = ?"
OVERRIDES = "SELECT owner, quota, most FROM quota_override ORDER BY owner, quota"

_COUNT = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(5))
PUT_COUNTS = f"""
    INSERT OR REPLACE INTO quota_count (process, owner, quota, period, until, used)
        SELECT ?, {_COUNT} FROM json_each(?)
"""  # noqa: S608 - places of a list
COUNTS = """
    SELECT owner, quota, period, sum(used) FROM quota_count
    WHERE owner IN (SELECT value FROM json_each(?)) AND until > ? AND process <> ?
    GROUP BY owner, quota, period
"""
SWEEP_COUNTS = "DELETE FROM quota_count WHERE until < ?"
STORED_BYTES = """
    SELECT tenant, bytes FROM stored_bytes
    WHERE tenant IN (SELECT value FROM json_each(?)) AND bytes > 0
"""
