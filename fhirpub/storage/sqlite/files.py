"""The file of a SQLite store on the disk: made, upgraded, recognized, and cleared of remains."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.runtime.logging import logger
from fhirpub.storage.sqlite import schema as sql
from fhirpub.storage.sqlite import unused_bytes
from fhirpub.storage.upgrades.versions import SchemaVersion

STORED_VERSION = "PRAGMA user_version"
_BITS, _MASK = 16, 0xFFFF_FFFF
_OWN = SchemaVersion(sql.SCHEMA_VERSION, sql.USABLE_FROM)

_log = logger()


def make_file(path: Path) -> None:
    """Make a file that only its owner can read; secrets will be in it."""
    if sqlite3.sqlite_version_info < sql.LEAST_SQLITE:
        least = ".".join(map(str, sql.LEAST_SQLITE))
        raise ConfigurationError(f"SQLite {sqlite3.sqlite_version} is older than {least}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for item, flags in ((path, os.O_CREAT), (path.parent, os.O_DIRECTORY)):
            descriptor = os.open(item, os.O_RDONLY | flags, 0o600)
            os.fsync(descriptor)  # so that the file's name is as durable as its content
            os.close(descriptor)
    except OSError as error:
        raise ConfigurationError(
            f"[storage] url: {path} cannot be made or opened: {error.strerror}"
        ) from error


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what is equal as long as it is one and the same file; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def make_tables(connection: sqlite3.Connection, *, upgrade: bool = True) -> None:
    """Make what is missing; safe when several processes start at once.

    A file of an older release is brought to this one's tables, or stays as it is. One of a newer
    release that this one may use stays as it is.

    Raises ConfigurationError for a file that another program or a newer release has made, and
    UpgradeNeeded for one that would have to be upgraded, unless it is to ``upgrade`` it.
    """
    _read_version(connection).require_use(_OWN.number, upgrade=upgrade)  # before it is touched
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise ConfigurationError("[storage] url: the file system lacks what SQLite's WAL needs")
    if _read_version(connection).number >= _OWN.number:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = _read_version(connection)  # another may have been quicker
        if found.number < _OWN.number:
            for statement in sql.STEPS[found.number]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {packed(_OWN)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def require_use(rows: Sequence[Sequence[Any]]) -> None:
    """Check the answer to ``STORED_VERSION`` while the file is in use.

    Raises StoreUnavailable if a newer release has upgraded the file, and this one must not use it.
    """
    ((found,),) = rows
    if problem := unpacked(found).problem_for(_OWN.number):
        raise StoreUnavailable(problem)


def clear_unused_bytes(path: Path, *, seconds: float) -> bool:
    """Overwrite the unused bytes of a file's pages, in a process for which this waits (ADR 48).

    What was deleted before the journal was last emptied is then in no page of the file. One whose
    kinds of pages cannot be distinguished, or which has checksums, stays as it is.

    Args:
        path: The file.
        seconds: How long the process waits for others that write or read.

    Returns:
        Whether it was possible.
    """
    command = [sys.executable, "-P", "-m", unused_bytes.__name__, str(path), str(seconds)]
    status = subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode  # noqa: S603
    if status != unused_bytes.CLEARED:
        _log.warning("unused bytes of the file not overwritten", exit_status=status)
    return status in {unused_bytes.CLEARED, unused_bytes.NOT_SUPPORTED}


def packed(version: SchemaVersion) -> int:
    """Return the number for the head of the file, which has room for one.

    It is the version, and above its 16 bits the oldest one whose releases may use the file, unless
    that is the same. Releases that know of the first only take the sum for a newer version.
    """
    if version.usable_from == version.number:
        return version.number
    return version.usable_from << _BITS | version.number


def unpacked(found: int) -> SchemaVersion:
    """Return the version of a file."""
    usable_from, number = divmod(found & _MASK, 1 << _BITS)
    return SchemaVersion(number, usable_from or number)


def _read_version(connection: sqlite3.Connection) -> SchemaVersion:
    """Return the version of the tables that are there, 0 if there are none."""
    # In this order: a process that sees tables being made sees also what came with them.
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables:
        return SchemaVersion(0, 0)
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (found,) = connection.execute(STORED_VERSION).fetchone()
    if owner != sql.APPLICATION_ID:
        raise ConfigurationError("[storage] url: the file is another program's database")
    return unpacked(found)
