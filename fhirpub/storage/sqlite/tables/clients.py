"""The table of clients in a SQLite store, and the statements on it."""

# ruff: noqa: S608 - statements are put together from names in this file, never from values

from __future__ import annotations

TABLE = """
    CREATE TABLE client (
        id TEXT NOT NULL PRIMARY KEY,
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        environment TEXT NOT NULL,
        created INTEGER NOT NULL,
        secrets TEXT NOT NULL,
        scopes TEXT NOT NULL,
        disabled INTEGER NOT NULL,
        networks TEXT NOT NULL DEFAULT '[]',
        jwks TEXT NOT NULL DEFAULT '',
        jwks_url TEXT NOT NULL DEFAULT ''
    ) STRICT
"""
ADD_NETWORKS = "ALTER TABLE client ADD COLUMN networks TEXT NOT NULL DEFAULT '[]'"
ADD_KEYS = (
    "ALTER TABLE client ADD COLUMN jwks TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE client ADD COLUMN jwks_url TEXT NOT NULL DEFAULT ''",
)

_COLUMNS = (
    "id, tenant, name, environment, created, secrets, scopes, disabled, networks, jwks, jwks_url"
)
PUT = f"INSERT OR REPLACE INTO client ({_COLUMNS}) VALUES ({', '.join('?' * 11)})"
ADD = f"INSERT OR IGNORE INTO client ({_COLUMNS}) VALUES ({', '.join('?' * 11)})"
CLIENT = f"SELECT {_COLUMNS} FROM client WHERE id = ?"
CLIENTS = f"SELECT {_COLUMNS} FROM client WHERE ?1 IS NULL OR tenant = ?1 ORDER BY created, id"
