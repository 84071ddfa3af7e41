"""Explanations of store errors, for operators."""

from __future__ import annotations

_MEANINGS = (
    ("SQLITE_CORRUPT", "the file is damaged: restore the backup"),
    ("SQLITE_READONLY", "this user may not write to the file or its folder"),
    ("SQLITE_FULL", "the disk is full"),
    ("SQLITE_IOERR", "the disk is full or failing"),
    ("SQLITE_CANTOPEN", "the file, or one next to it (-wal, -shm), cannot be opened"),
    ("SQLITE_BUSY", "another program holds the file"),
    ("deadline exceeded", "the store did not respond within [storage] deadline_seconds"),
)


def explain(reason: str) -> str:
    """Return the reason of a StoreUnavailable, with an explanation if it is only a code."""
    meaning = next((words for code, words in _MEANINGS if reason.startswith(code)), "")
    return f"{meaning} ({reason})" if meaning else reason
