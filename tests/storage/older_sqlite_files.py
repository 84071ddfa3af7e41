"""SQLite files as older commits wrote them, each made from one of the next schema version."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from fhirpub.storage.sqlite.rows import attached_in
from fhirpub.storage.sqlite.tables.documents import TRIGGERS
from fhirpub.storage.sqlite.tables.quotas import TABLES

_KILLED_AMID_THE_UPGRADE = """
import os, signal, sqlite3, sys
from fhirpub.storage.sqlite import schema
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
for statement in schema.STEPS[int(sys.argv[2])][: int(sys.argv[3])]:
    connection.execute(statement)
os.kill(os.getpid(), signal.SIGKILL)
"""


@contextlib.contextmanager
def _changed_to(path: Path, version: int) -> Iterator[sqlite3.Connection]:
    """Open a file, and commit what is changed in it together with its version."""
    with contextlib.closing(sqlite3.connect(path)) as old:
        yield old
        old.execute(f"PRAGMA user_version = {version}")
        old.commit()


OUTBOX_OF_8 = (
    """
    CREATE TABLE unrelayed (
        updated INTEGER NOT NULL,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        PRIMARY KEY (updated, id, version)
    ) STRICT, WITHOUT ROWID
    """,
    """
    INSERT INTO unrelayed SELECT updated, id, version FROM version
        WHERE rowid IN (SELECT number FROM relay_exception)
            OR (rowid > (SELECT last FROM relay_mark) AND events <> x'5b5d')
    """,
    """
    CREATE TRIGGER version_has_events AFTER INSERT ON version WHEN NEW.events <> x'5b5d'
    BEGIN
        INSERT INTO unrelayed VALUES (NEW.updated, NEW.id, NEW.version);
    END
    """,
    "DROP TABLE relay_mark",
    "DROP TABLE relay_exception",
)


AUDIT_TABLES = "pending block value checkpoint mark".split()


def to_version_12(path: Path) -> None:
    """Convert a file to the format of the commit before clients with keys."""
    with _changed_to(path, 12) as old:
        old.execute("DROP TABLE used_assertion")
        for name in ("jwks", "jwks_url"):
            old.execute(f"ALTER TABLE client DROP COLUMN {name}")


def to_version_11(path: Path) -> None:
    """Convert a file to the format of the commit before erasure."""
    to_version_12(path)
    with _changed_to(path, 11) as old:
        old.execute("DROP TABLE erasure")
        old.execute("DROP TABLE hold")


def to_version_10(path: Path) -> None:
    """Convert a file to the format of the commit before the audit trail."""
    to_version_11(path)
    with _changed_to(path, 10) as old:
        old.execute("ALTER TABLE version DROP COLUMN audit")
        for name in AUDIT_TABLES:
            old.execute(f"DROP TABLE audit_{name}")


def to_version_9(path: Path) -> None:
    """Convert a file to the format of the commit before networks and revoked tokens."""
    to_version_10(path)
    with _changed_to(path, 9) as old:
        old.execute("DROP TABLE revoked_token")
        old.execute("DROP TABLE client_use")
        old.execute("ALTER TABLE client DROP COLUMN networks")


def to_version_8(path: Path) -> None:
    """Convert a file to the format in which each pending version had a row of its own."""
    to_version_9(path)
    with _changed_to(path, 8) as old:
        for statement in OUTBOX_OF_8:
            old.execute(statement)


TRIGGER_OF_7 = """
    CREATE TRIGGER version_names_documents AFTER INSERT ON version WHEN NEW.documents <> ''
    BEGIN
        INSERT OR IGNORE INTO document (tenant, sha256, id, version)
            SELECT NEW.tenant, value, NEW.id, NEW.version
            FROM json_each('["' || replace(NEW.documents, ' ', '","') || '"]');
        UPDATE blob SET named = 1 WHERE tenant = NEW.tenant AND named = 0 AND sha256 IN (
            SELECT value FROM json_each('["' || replace(NEW.documents, ' ', '","') || '"]')
        );
    END
"""


def detach_documents(connection: sqlite3.Connection) -> None:
    """Give each document that a version holds a row of its own, as all had before."""
    rows = connection.execute("SELECT tenant, updated, attached FROM version").fetchall()
    for tenant, updated, value in rows:
        for blob in attached_in(value):
            known = (tenant, blob.sha256, blob.content_type, len(blob.data), updated)
            connection.execute(
                "INSERT OR IGNORE INTO blob (tenant, sha256, content_type, title, size, added, "
                "named) VALUES (?, ?, ?, '', ?, ?, 1)",
                known,
            )
            connection.execute(
                "INSERT OR IGNORE INTO blob_bytes SELECT number, ? FROM blob "
                "WHERE tenant = ? AND sha256 = ?",
                (blob.data, tenant, blob.sha256),
            )


def to_version_7(path: Path) -> None:
    """Convert a file to the format of the commit before attached documents."""
    to_version_8(path)
    with _changed_to(path, 7) as old:
        detach_documents(old)
        for statement in TRIGGERS:
            _create, _trigger, name, *_rest = statement.split()
            old.execute(f"DROP TRIGGER {name}")
        old.execute("ALTER TABLE version DROP COLUMN attached")
        old.execute(TRIGGER_OF_7)


TABLES_OF_6 = (
    "CREATE TABLE member (number INTEGER PRIMARY KEY, owner INTEGER NOT NULL) STRICT",
    "CREATE INDEX member_by_owner ON member (owner)",
)
INDEXES_OF_6 = (
    "CREATE INDEX version_by_value ON version (tenant, type, value, system, version)",
    "CREATE INDEX version_by_system ON version (tenant, type, system, updated DESC, id, version)",
)


def to_version_6(path: Path) -> None:
    """Convert a file to the format in which each member had a row that led to its version."""
    to_version_7(path)
    with _changed_to(path, 6) as old:
        for statement in TABLES_OF_6:
            old.execute(statement)
        for owner, last in old.execute("SELECT owner, last FROM members").fetchall():
            rows = [(number, owner) for number in range(owner + 1, last + 1)]
            old.executemany("INSERT INTO member (number, owner) VALUES (?, ?)", rows)
        old.execute("DROP TABLE members")
        for statement in INDEXES_OF_6:
            _create, _index, name, *_rest = statement.split()
            old.execute(f"DROP INDEX {name}")
            old.execute(statement)


def to_version_5(path: Path) -> None:
    """Convert a file without members to the format of the commit before members."""
    to_version_6(path)
    with _changed_to(path, 5) as old:
        old.execute("DROP TABLE member")


def to_version_4(path: Path) -> None:
    """Convert a file to the format of the commit before pieces."""
    to_version_5(path)
    with _changed_to(path, 4) as old:
        for (number,) in old.execute("SELECT number FROM blob").fetchall():
            pieces = old.execute(
                "SELECT data FROM blob_piece WHERE number >> 20 = ? ORDER BY number", (number,)
            ).fetchall()
            if pieces:
                data = b"".join(piece for (piece,) in pieces)
                old.execute("UPDATE blob_bytes SET data = ? WHERE number = ?", (data, number))
        old.execute("DROP TABLE blob_piece")


def to_version_3(path: Path) -> None:
    """Convert a file to the format of the commit before digests."""
    to_version_4(path)
    with _changed_to(path, 3) as old:
        old.execute("ALTER TABLE version DROP COLUMN digest")


def to_version_2(path: Path) -> None:
    """Convert a file to the format of the commit before quotas."""
    to_version_3(path)
    with _changed_to(path, 2) as old:
        for statement in TABLES:
            _create, kind, name, *_rest = statement.split()
            if kind == "TRIGGER":
                old.execute(f"DROP TRIGGER {name}")
        for statement in TABLES:
            _create, kind, name, *_rest = statement.split()
            if kind == "TABLE":
                old.execute(f"DROP TABLE {name}")


def kill_amid_upgrade(path: Path, version: int, *, steps: int | None = None) -> None:
    """Run some statements of the upgrade from a version, all by default, and kill the process.

    The transaction is not committed, so that the file must still have the version.
    """
    end = str(sys.maxsize if steps is None else steps)
    command = [sys.executable, "-c", _KILLED_AMID_THE_UPGRADE, str(path), str(version), end]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
