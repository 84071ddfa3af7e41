"""The file of a SQLite store on the disk: made, and recognized."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from fhirpub.errors import ConfigurationError
from fhirpub.storage.sqlite import schema as sql


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
