"""A code of the store is explained; a text that explains itself stays as it is."""

from __future__ import annotations

import pytest

from fhirpub.cli.error_hints import explain


@pytest.mark.parametrize(
    ("reason", "meaning"),
    [
        ("SQLITE_CORRUPT", "the file is damaged: restore the backup"),
        ("SQLITE_READONLY_DBMOVED", "this user may not write to the file or its folder"),
        ("SQLITE_FULL", "the disk is full"),
        ("SQLITE_IOERR_WRITE", "the disk is full or failing"),
        (
            "SQLITE_CANTOPEN",
            "the file, or one next to it (-wal, -shm), cannot be opened",
        ),
        ("SQLITE_BUSY", "another program holds the file"),
        (
            "deadline exceeded",
            "the store did not respond within [storage] deadline_seconds",
        ),
    ],
)
def test_a_code_is_explained_and_kept(reason: str, meaning: str) -> None:
    assert explain(reason) == f"{meaning} ({reason})"


@pytest.mark.parametrize("reason", ["", "no server", "code SQLITE_FULL"])
def test_another_text_stays_as_it_is(reason: str) -> None:
    assert explain(reason) == reason
