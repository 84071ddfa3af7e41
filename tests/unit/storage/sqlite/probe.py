"""Writes into a file and reads of it, and reads that take seconds."""

from __future__ import annotations

import sqlite3
from typing import Any

PUT = "INSERT OR REPLACE INTO probe (number, moment) VALUES (1, ?)"
MOMENT = "SELECT moment FROM probe"
_MANY = (
    "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 50000000) "
    "SELECT count(*) FROM n"
)


def put(moment: int) -> Any:
    """Return a write."""
    return lambda connection: connection.execute(PUT, (moment,)).rowcount


def many(connection: sqlite3.Connection) -> int:
    """Read for seconds."""
    return int(connection.execute(_MANY).fetchone()[0])
