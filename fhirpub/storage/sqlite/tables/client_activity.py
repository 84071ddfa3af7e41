"""The tables of what clients did in a SQLite store, and the statements on them."""

from __future__ import annotations

TABLES = (
    """
    CREATE TABLE revoked_token (
        client TEXT NOT NULL,
        jti TEXT NOT NULL,
        until INTEGER NOT NULL,
        PRIMARY KEY (client, jti)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE client_use (
        client TEXT NOT NULL PRIMARY KEY,
        used INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
)
USED_ASSERTION = """
    CREATE TABLE used_assertion (
        owner TEXT NOT NULL,
        jti TEXT NOT NULL,
        until INTEGER NOT NULL,
        PRIMARY KEY (owner, jti)
    ) STRICT, WITHOUT ROWID
"""

REVOKE = """
    INSERT INTO revoked_token (client, jti, until)
        SELECT ?1, ?2, ?3
        WHERE (SELECT count(*) FROM revoked_token WHERE client = ?1) < ?4
            OR EXISTS (SELECT 1 FROM revoked_token WHERE client = ?1 AND jti = ?2)
        ON CONFLICT (client, jti) DO UPDATE SET until = max(until, excluded.until)
"""
REVOKED = "SELECT client, jti, until FROM revoked_token WHERE client = ? ORDER BY until, jti"
SWEEP_REVOKED = "DELETE FROM revoked_token WHERE until < ?"

COUNT_USED = "SELECT count(*) FROM used_assertion WHERE owner = ? AND until > ?"
USE = "INSERT INTO used_assertion (owner, jti, until) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
USED = """
    SELECT owner, jti, until FROM used_assertion
        WHERE (owner, jti) > (?, ?) ORDER BY owner, jti LIMIT ?
"""
PUT_USED = """
    INSERT INTO used_assertion (owner, jti, until) VALUES (?, ?, ?)
        ON CONFLICT (owner, jti) DO UPDATE SET until = max(until, excluded.until)
"""
SWEEP_USED = "DELETE FROM used_assertion WHERE until < ?"

PUT_USES = """
    INSERT INTO client_use (client, used)
        SELECT key, value FROM json_each(?) WHERE true
        ON CONFLICT (client) DO UPDATE SET used = max(used, excluded.used)
"""
USES = "SELECT client, used FROM client_use"
