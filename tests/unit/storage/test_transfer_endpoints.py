"""Which of two endpoints with one id a copy keeps."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.transfer import _settle_endpoint
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.testing.contracts.webhooks.records import an_endpoint
from fhirpub.testing.samples import LAB

SOURCE = an_endpoint(revision=2, url="https://a.example", condition=b'{"a":1}', reopened=3)


@pytest.fixture
async def target(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(tmp_path / "target.db", deadline_seconds=30)
    await store.start()
    yield store
    await store.stop()


async def settled(target: SqliteStore, there: Endpoint) -> tuple[list[str], Endpoint | None]:
    """Return what is named, and what a target with another endpoint has afterwards."""
    assert await target.copy_endpoint(there, over=None)
    return await _settle_endpoint(SOURCE, target), await target.endpoint(LAB, SOURCE.id)


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "https://b.example"},
        {"state": "paused"},
        {"revision": 3},
        {"revision": 3, "url": "https://b.example"},
        {"state": "deleted"},
        {"state": "deleted", "revision": 1},
    ],
    ids=repr,
)
async def test_a_change_of_the_target_stays_unless_the_source_has_a_later_one(
    target: SqliteStore, changes: dict[str, Any]
) -> None:
    there = replace(SOURCE, **changes)

    assert await settled(target, there) == ([SOURCE.id], there)


@pytest.mark.parametrize(
    "changes", [{"revision": 1, "url": "https://b.example"}, {"revision": 1, "state": "paused"}]
)
async def test_a_later_change_of_the_source_is_taken_over(
    target: SqliteStore, changes: dict[str, Any]
) -> None:
    assert await settled(target, replace(SOURCE, **changes)) == ([], SOURCE)


@pytest.mark.parametrize(("there", "reopened"), [(2, 3), (3, 3), (4, 4)])
async def test_what_a_sender_notes_is_taken_over_and_reopenings_do_not_go_back(
    target: SqliteStore, there: int, reopened: int
) -> None:
    noted = replace(SOURCE, condition=b'{"b":2}', reopened=there)

    assert await settled(target, noted) == ([], replace(SOURCE, reopened=reopened))


async def test_an_endpoint_that_the_target_lacks_is_added(target: SqliteStore) -> None:
    assert await _settle_endpoint(SOURCE, target) == []
    assert await target.endpoint(LAB, SOURCE.id) == SOURCE
