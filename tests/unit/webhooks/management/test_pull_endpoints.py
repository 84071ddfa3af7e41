"""Endpoints that are read by their clients: how they are noted as read, and how they end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from fhirpub.errors import InvalidContent
from fhirpub.runtime.clock import HOUR_MS
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.testing.webhook_contract import an_endpoint
from fhirpub.webhooks.management.pull_endpoints import (
    note_read,
    refuse_other_transport,
    remove_unread,
)

CREATED = 1_795_242_833_412


async def added(store: SqliteStore, url: str = "pull:laptop") -> Endpoint:
    endpoint = replace(an_endpoint(), url=url, state="paused", created=CREATED)
    assert await store.put_endpoint(endpoint.tenant, endpoint)
    return endpoint


async def stored(store: SqliteStore, endpoint: Endpoint) -> Endpoint:
    found = await store.endpoint(endpoint.tenant, endpoint.id)
    assert found is not None
    return found


async def test_one_that_is_not_read_is_removed_with_its_secrets(store: SqliteStore) -> None:
    endpoint = await added(store)

    assert await remove_unread(store, before=CREATED + 1) == 1

    left = await stored(store, endpoint)
    assert (left.state, left.secrets, left.token) == ("deleted", (), b"")


async def test_one_that_was_read_since_then_stays(store: SqliteStore) -> None:
    endpoint = await added(store)
    await note_read(store, endpoint, now=CREATED + 2 * HOUR_MS)

    assert await remove_unread(store, before=CREATED + HOUR_MS) == 0

    assert (await stored(store, endpoint)).state == "paused"


async def test_an_endpoint_that_is_sent_to_is_never_removed(store: SqliteStore) -> None:
    await added(store, "https://receiver.example.org/")

    assert await remove_unread(store, before=CREATED + 10**12) == 0


async def test_reads_are_noted_once_an_hour(store: SqliteStore) -> None:
    endpoint = await added(store)

    notes = []
    for minutes in (30, 90, 110, 151):
        await note_read(store, endpoint, now=CREATED + minutes * 60_000)
        endpoint = await stored(store, endpoint)
        notes.append(endpoint.condition)

    assert len(set(notes)) == 3
    assert notes[1] == notes[2]


async def test_reads_of_an_endpoint_that_is_sent_to_leave_its_health(store: SqliteStore) -> None:
    endpoint = await added(store, "https://receiver.example.org/")

    await note_read(store, endpoint, now=CREATED + 2 * HOUR_MS)

    assert (await stored(store, endpoint)).condition == endpoint.condition


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pull:laptop", "https://receiver.example.org/"),
        ("https://receiver.example.org/", "pull:laptop"),
        ("pull:laptop", "pull:desk"),
    ],
)
def test_how_an_endpoint_gets_events_cannot_be_changed(before: str, after: str) -> None:
    endpoint = replace(an_endpoint(), url=before)

    with pytest.raises(InvalidContent, match="add another endpoint"):
        refuse_other_transport(endpoint, after)

    refuse_other_transport(endpoint, before)


@pytest.mark.parametrize(("later", "is_noted"), [(HOUR_MS - 1, False), (HOUR_MS, True)])
async def test_a_read_an_hour_after_the_last_one_is_noted(
    store: SqliteStore, later: int, *, is_noted: bool
) -> None:
    endpoint = await added(store)

    await note_read(store, endpoint, now=CREATED + later)

    assert ((await stored(store, endpoint)).condition != endpoint.condition) is is_noted


async def test_the_line_about_a_removed_endpoint_names_its_tenant(store: SqliteStore) -> None:
    endpoint = await added(store)

    with capture_logs() as logs:
        await remove_unread(store, before=CREATED + 1)

    (entry,) = logs
    assert (entry["endpoint"], entry["tenant"]) == (endpoint.id, endpoint.tenant)


def test_an_endpoint_that_is_sent_to_may_move() -> None:
    endpoint = replace(an_endpoint(), url="https://receiver.example.org/")

    refuse_other_transport(endpoint, "https://receiver.example.org/new")


async def test_one_that_was_read_in_that_moment_stays(store: SqliteStore) -> None:
    await added(store)

    assert await remove_unread(store, before=CREATED) == 0


async def test_all_that_are_not_read_are_removed_and_counted(store: SqliteStore) -> None:
    unread = [await added(store) for _number in range(3)]
    await added(store, "https://receiver.example.org/")

    assert await remove_unread(store, before=CREATED + 1) == 3

    assert {(await stored(store, one)).state for one in unread} == {"deleted"}


async def test_the_others_are_removed_although_one_has_changed_in_the_meantime(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread = [await added(store) for _number in range(3)]
    put, lost = store.put_endpoint, list[str]()

    async def lose_the_first(tenant: str, endpoint: Endpoint) -> bool:
        if not lost:
            lost.append(endpoint.id)
            return False
        return await put(tenant, endpoint)

    monkeypatch.setattr(store, "put_endpoint", lose_the_first)

    assert await remove_unread(store, before=CREATED + 1) == 2
    removed = [one.id for one in unread if (await stored(store, one)).state == "deleted"]
    assert sorted([*removed, *lost]) == sorted(one.id for one in unread)
