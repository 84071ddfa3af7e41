"""What a store says when it cannot be used, in words for whoever has to mend it."""

from __future__ import annotations

_MEANINGS = (
    ("SQLITE_CORRUPT", "the file is damaged: restore the backup"),
    ("SQLITE_READONLY", "this user may not write to the file, or not in its folder"),
    ("SQLITE_FULL", "the disk is full"),
    ("SQLITE_IOERR", "the disk is full, or fails"),
    ("SQLITE_CANTOPEN", "the file, or one beside it, cannot be opened"),
    ("SQLITE_BUSY", "another program holds the file"),
    ("deadline exceeded", "no answer came within [storage] deadline_seconds"),
)


def explain(reason: str) -> str:
    """Return the reason of a StoreUnavailable, with what it means where a code alone says it."""
    meaning = next((words for code, words in _MEANINGS if reason.startswith(code)), "")
    return f"{meaning} ({reason})" if meaning else reason
