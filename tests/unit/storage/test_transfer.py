"""A copy of a store is complete, repeatable, and careful with the target's contents."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fhirpub.app.stores import open_store
from fhirpub.auth.clients import (
    NewClient,
    add_client,
    disable_client,
    edit_client,
    rotate_client,
    set_scopes,
)
from fhirpub.auth.tenants import change_tenant
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.errors import ConfigurationError
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.client_activity_contract import AssertionUse, RevokedToken, UsedAssertion
from fhirpub.storage.contract import Blob, BlobInfo, Client, ClientSecret, Version
from fhirpub.storage.criteria import TimeMatch, encode
from fhirpub.storage.quota_contract import QuotaOverride
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from fhirpub.storage.transfer import Progress, transfer
from fhirpub.storage.webhook_contract import MAX_ATTEMPTS_KEPT, Delivery, Endpoint
from fhirpub.tenant import Tenant
from fhirpub.testing.contracts.erasure.content import an_erasure, erase
from fhirpub.testing.contracts.store.attached import holding
from fhirpub.testing.contracts.store.members import a_result, results
from fhirpub.testing.contracts.store.queries import find_ids
from fhirpub.testing.store_contract import (
    LAB,
    OTHER,
    a_blob,
    a_client,
    a_key,
    a_version,
    found_by,
    has,
    successor,
    token,
    wait_for_stored_bytes,
    wanting,
    whole_blobs,
)
from fhirpub.testing.webhook_contract import (
    NOW,
    a_delivery,
    an_endpoint,
    end,
    events_added,
    pending_keys,
    queue,
)
from tests.rounds import ONLY_FULL

WAYS = [
    ("sqlite", "sqlite"),
    ("sqlite", "mongodb"),
    pytest.param(("mongodb", "sqlite"), marks=ONLY_FULL),
]


def a_config(url: str) -> Config:
    return Config(storage=StorageConfig(url=url))


@pytest.fixture
async def opened() -> AsyncGenerator[AsyncExitStack]:
    """The stack that closes the stores of a test."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture(params=WAYS, ids=" to ".join)
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The engines of the source and the target."""
    engines: tuple[str, str] = request.param
    return engines


def url_of(engine: str, name: str, request: pytest.FixtureRequest) -> str:
    """The URL of an empty store."""
    if engine == "mongodb":
        url: str = request.getfixturevalue("mongodb_url")
        return url
    return f"sqlite:///{request.getfixturevalue('tmp_path')}/{name}.db"


@pytest.fixture
async def source(
    way: tuple[str, str], request: pytest.FixtureRequest, opened: AsyncExitStack
) -> Store:
    url = url_of(way[0], "source", request)
    return await opened.enter_async_context(open_store(a_config(url)))


@pytest.fixture
async def target(
    way: tuple[str, str], request: pytest.FixtureRequest, opened: AsyncExitStack
) -> Store:
    url = url_of(way[1], "target", request)
    return await opened.enter_async_context(open_store(a_config(url)))


async def everything(store: Store) -> tuple[object, ...]:
    versions = await store.scan(limit=10_000)
    names = {(tenant, name) for tenant, version in versions for name in version.documents}
    blobs = [await whole_blobs(store, tenant, [name]) for tenant, name in sorted(names)]
    keys = [await store.signing_keys(item) for item in ("sandbox", "production")]
    endpoints = await store.endpoints(LAB), await store.scan_deliveries()
    entries = await store.pending_outbox(limit=10_000)
    pending = sorted(entries, key=lambda each: (each[1].id, each[1].version))
    access = await store.tenants(), await store.clients(), await store.quota_overrides()
    return versions, blobs, keys, access, endpoints, pending


async def fill(store: Store, count: int = 3) -> None:
    await store.put_tenant(Tenant(LAB, "Lab", b"s" * 32, 1))
    await store.put_tenant(Tenant(OTHER, "Other", b"t" * 32, 2, disabled=True))
    await store.put_client(a_client(secrets=(ClientSecret(b"d" * 32),)))
    await store.put_quota_overrides([QuotaOverride(LAB, "tenant_bytes_per_day", 10**12)])
    await store.put_signing_key(a_key("k1"))
    await store.put_signing_key(a_key("k2", environment="production"))
    for number in range(count):
        blob = a_blob(os.urandom(100 if number else 600_000))
        version = a_version(documents=(blob.sha256,), response=b"{}", parts=b"{}", digest=b"d")
        tenant = LAB if number % 2 else OTHER
        await store.add(tenant, version, [blob])
        await store.add(tenant, successor(version))


async def test_a_copy_holds_everything(source: Store, target: Store) -> None:
    await fill(source)

    await transfer(source, target)

    assert await everything(target) == await everything(source)


async def test_a_copy_made_again_writes_nothing_and_finds_all_the_same(
    source: Store, target: Store
) -> None:
    await fill(source)
    first = await transfer(source, target)

    again = await transfer(source, target)

    assert (first.copied, first.there) == (6, 0)
    assert (again.copied, again.there) == (0, 6)


async def test_more_than_a_page_is_copied_and_reported_page_by_page(
    source: Store, target: Store
) -> None:
    await fill(source, count=150)
    reported: list[int] = []

    progress = await transfer(source, target, on_progress=lambda each: reported.append(each.seen))

    assert progress == Progress(total=300, copied=300)
    assert reported == [200, 300]


async def test_what_came_after_a_copy_is_copied_by_the_next(source: Store, target: Store) -> None:
    await fill(source)
    await transfer(source, target)
    tenant, version = (await source.scan())[-1]
    await source.add(tenant, successor(version))

    progress = await transfer(source, target)

    assert progress.copied == 1
    assert await everything(target) == await everything(source)


async def test_a_copy_that_was_interrupted_is_finished_by_the_next(
    source: Store, target: Store
) -> None:
    await fill(source, count=150)

    class Interrupted(Exception):
        pass

    def interrupt(_progress: Progress) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        await transfer(source, target, on_progress=interrupt)
    progress = await transfer(source, target)

    assert (progress.there, progress.copied) == (200, 100)
    assert await everything(target) == await everything(source)


async def test_a_target_with_another_version_under_a_key_is_refused_and_left_alone(
    source: Store, target: Store
) -> None:
    version = a_version(body=b'{"a":1}')
    await source.add(LAB, version)
    await target.add(LAB, replace(version, body=b'{"a":2}'))

    with pytest.raises(ConfigurationError, match="not a copy of this store"):
        await transfer(source, target)

    assert await target.latest(LAB, version.id) == replace(version, body=b'{"a":2}')


async def test_a_target_with_another_tenant_under_an_id_is_refused(
    source: Store, target: Store
) -> None:
    await source.put_tenant(Tenant(LAB, "Lab", b"s" * 32, 1))
    await target.put_tenant(Tenant(LAB, "Lab", b"x" * 32, 1))

    with pytest.raises(ConfigurationError, match="another tenant"):
        await transfer(source, target)


# Members


with_members = pytest.mark.parametrize("way", WAYS[:1], indirect=True, ids=" to ".join)


def a_panel(**changes: Any) -> Version:
    values = encode([("code", "a", "")])
    return a_version(members=(a_result(search=values), a_result(body=b"2")), **changes)


@with_members
async def test_members_are_copied_with_the_versions_that_brought_them(
    source: Store, target: Store
) -> None:
    await fill(source)
    first = a_panel()
    result = first.members[0]
    later = successor(first, members=(successor(result, status="amended"), a_result()))
    await source.add(LAB, first)
    await source.add(LAB, later)

    progress = await transfer(source, target)

    assert (progress.total, progress.copied) == (8, 8)
    assert await everything(target) == await everything(source)
    assert await target.history(LAB, result.id) == [later.members[0], result]
    assert await find_ids(target, results(criteria=(has("code", token("a")),))) == {result.id}


@with_members
async def test_members_that_came_after_a_copy_are_copied_by_the_next(
    source: Store, target: Store
) -> None:
    first = a_panel()
    await source.add(LAB, first)
    await transfer(source, target)
    await source.add(LAB, successor(first, members=(successor(first.members[1]),)))

    progress = await transfer(source, target)

    assert (progress.there, progress.copied) == (1, 1)
    assert await everything(target) == await everything(source)


@with_members
@pytest.mark.parametrize("other", [(), (a_result(body=b"3"),)], ids=["none", "another"])
async def test_a_target_whose_version_has_other_members_is_refused_and_left_alone(
    source: Store, target: Store, other: tuple[Version, ...]
) -> None:
    panel = a_panel()
    first, second = panel.members
    there = (first, *(replace(member, id=second.id) for member in other))
    await source.add(LAB, panel)
    await target.add(LAB, replace(panel, members=there))
    before = await target.scan()

    with pytest.raises(ConfigurationError, match=f"another Observation/{second.id} version 1"):
        await transfer(source, target)

    assert await target.scan() == before


@with_members
async def test_a_member_whose_search_values_the_target_has_rebuilt_is_the_same(
    source: Store, target: Store
) -> None:
    panel = a_panel()
    await source.add(LAB, panel)
    await transfer(source, target)
    await target.replace_search(LAB, panel.members[0].id, 1, encode([("code", "b", "")]))

    progress = await transfer(source, target)

    assert (progress.there, progress.copied) == (1, 0)


# Credentials


async def test_a_client_that_the_target_has_disabled_stays_so_and_is_named(
    source: Store, target: Store
) -> None:
    await fill(source)
    (client,) = await source.clients()
    await transfer(source, target)
    await disable_client(target, client.id)

    progress = await transfer(source, target)

    assert await target.client(client.id) == replace(client, disabled=True)
    assert progress.kept == [client.id]


async def test_a_client_that_is_disabled_in_the_target_amid_a_copy_stays_so(
    source: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(source)
    await transfer(source, target)
    (client,) = await source.clients()
    await source.put_client(replace(client, name="renamed"))
    read, reads = target.client, list[str]()

    async def disabled_after_the_read(client_id: str) -> Client | None:
        found = await read(client_id)
        if not reads:
            await target.put_client(replace(client, disabled=True))
        reads.append(client_id)
        return found

    monkeypatch.setattr(target, "client", disabled_after_the_read)

    await transfer(source, target)

    assert await target.clients() == [replace(client, name="renamed", disabled=True)]


async def test_what_was_disabled_after_a_copy_is_disabled_by_the_next(
    source: Store, target: Store
) -> None:
    await fill(source)
    (client,) = await source.clients()
    await transfer(source, target)
    await disable_client(source, client.id)
    await change_tenant(source, LAB, disabled=True)

    progress = await transfer(source, target)

    assert await everything(target) == await everything(source)
    assert not progress.kept


@pytest.mark.parametrize("grace_seconds", [0, 3600])
async def test_a_secret_that_was_rotated_after_a_copy_is_taken_over_by_the_next(
    source: Store, target: Store, grace_seconds: int
) -> None:
    await fill(source)
    (client,) = await source.clients()
    await transfer(source, target)
    rotated, _ = await rotate_client(source, client.id, grace_seconds=grace_seconds, clock=now_ms)

    await transfer(source, target)

    assert await target.client(client.id) == rotated


async def test_limits_that_the_target_has_otherwise_stay_and_are_named(
    source: Store, target: Store
) -> None:
    await fill(source)
    name = "tenant_requests_per_minute"
    theirs = [QuotaOverride(LAB, name, 7), QuotaOverride(OTHER, name, 8)]
    await target.put_quota_overrides(theirs)
    await source.put_quota_overrides([QuotaOverride(LAB, name, 5)])

    progress = await transfer(source, target)

    assert progress.kept == [f"{name} of {LAB}"]
    limits = {(item.owner, item.quota): item.limit for item in await target.quota_overrides()}
    assert limits == {(LAB, name): 7, (OTHER, name): 8, (LAB, "tenant_bytes_per_day"): 10**12}


async def test_what_was_erased_after_a_copy_is_erased_by_the_next(
    source: Store, target: Store
) -> None:
    version = a_version(members=(a_result(),), response=b"first")
    await source.add(LAB, version)
    await transfer(source, target)
    tombstone = await erase(source, version, *version.members)
    order = an_erasure(id=version.id, version=2, finished=5)
    await source.put_erasure(order)

    await transfer(source, target)

    assert await target.latest(LAB, version.id) == replace(tombstone, members=())
    emptied = await target.version(LAB, version.id, 1)
    assert emptied is not None
    assert emptied.response == b""
    assert order in await target.erasures(limit=1000)


async def test_a_target_whose_version_is_where_the_source_has_a_tombstone_is_refused(
    source: Store, target: Store
) -> None:
    version = a_version(response=b"first")
    await source.add(LAB, version)
    await transfer(source, target)
    updated = successor(version)
    await target.add(LAB, updated)
    await erase(source, version)
    await source.put_erasure(an_erasure(id=version.id, version=2, finished=5))

    with pytest.raises(ConfigurationError, match="not a copy"):
        await transfer(source, target)

    assert await target.version(LAB, version.id, 1) == version
    assert await target.latest(LAB, version.id) == updated


async def test_an_erasure_whose_tombstone_the_target_lacks_is_not_finished_there(
    source: Store, target: Store
) -> None:
    version = a_version()
    await source.add(LAB, version)
    order = an_erasure(id=version.id, version=2, finished=5)
    await source.put_erasure(order)

    await transfer(source, target)

    found = [one for one in await target.erasures(limit=1000) if one.id == version.id]
    assert found == [replace(order, version=0, finished=None)]
    assert await target.latest(LAB, version.id) == version


async def test_the_target_counts_what_it_stores(source: Store, target: Store) -> None:
    await fill(source, count=5)
    await transfer(source, target)
    await transfer(source, target)

    for tenant in (LAB, OTHER):
        ((_tenant, size),) = (await source.stored_bytes([tenant])).items()
        await wait_for_stored_bytes(target, tenant, size)


async def test_scopes_that_the_target_has_otherwise_stay_and_are_named(
    source: Store, target: Store
) -> None:
    await fill(source)
    (client,) = await source.clients()
    await set_scopes(source, client.id, ["system/*.cruds"])
    await transfer(source, target)
    narrow = await set_scopes(target, client.id, ["system/*.r"])

    again = await transfer(source, target)

    assert again.kept == [client.id]
    assert await target.clients() == [narrow]


async def test_networks_that_the_target_has_otherwise_stay_and_are_named(
    source: Store, target: Store
) -> None:
    await fill(source)
    (client,) = await source.clients()
    await edit_client(source, client.id, networks=["192.0.2.0/24"])
    await transfer(source, target)
    assert await target.clients() == await source.clients()
    other = await edit_client(target, client.id, networks=["198.51.100.0/24"])

    again = await transfer(source, target)

    assert again.kept == [client.id]
    assert await target.clients() == [other]


async def test_revoked_tokens_used_assertions_and_last_uses_are_copied(
    source: Store, target: Store
) -> None:
    await fill(source)
    (client,) = await source.clients()
    tokens = [RevokedToken(client.id, str(number), number) for number in range(3)]
    for revoked in tokens:
        await source.revoke_token(revoked, most=3)
    await source.put_client_uses({client.id: 5})
    used = UsedAssertion(client.id, "a", NOW)
    await source.use_assertion(used, now=1, most=3)

    for _ in range(2):
        await transfer(source, target)

    assert await target.revoked_tokens(client.id) == tokens
    assert dict(await target.client_uses()) == {client.id: 5}
    assert await target.use_assertion(used, now=1, most=3) is AssertionUse.REPEATED


async def test_a_secret_that_was_rotated_in_the_target_stays(source: Store, target: Store) -> None:
    await fill(source)
    client, _ = await add_client(
        source, NewClient(tenant=LAB, name="x", environment="sandbox"), clock=now_ms
    )
    await transfer(source, target)
    rotated, _ = await rotate_client(target, client.id, grace_seconds=3600, clock=now_ms)

    progress = await transfer(source, target)

    assert await target.client(client.id) == rotated
    assert progress.kept == [client.id]


async def test_a_key_that_was_retired_after_a_copy_is_retired_by_the_next(
    source: Store, target: Store
) -> None:
    await fill(source)
    await transfer(source, target)
    await source.rotate_signing_key(a_key("k3", created=5), expected=["k1"])

    await transfer(source, target)

    keys = await target.signing_keys("sandbox")
    assert [(key.kid, key.retired) for key in keys] == [("k1", 5), ("k3", None)]


async def test_of_two_times_at_which_a_key_was_retired_the_earlier_one_counts(
    source: Store, target: Store
) -> None:
    await fill(source)
    await transfer(source, target)
    await source.rotate_signing_key(a_key("k3", created=9), expected=["k1"])
    await target.rotate_signing_key(a_key("k3", created=5), expected=["k1"])

    await transfer(source, target)

    assert (await target.signing_keys("sandbox"))[0].retired == 5


async def test_a_key_that_the_target_has_retired_stays_so_and_is_named(
    source: Store, target: Store
) -> None:
    await fill(source)
    await transfer(source, target)
    await target.rotate_signing_key(a_key("k3", created=5), expected=["k1"])

    progress = await transfer(source, target)

    keys = await target.signing_keys("sandbox")
    assert [(key.kid, key.retired) for key in keys] == [("k1", 5), ("k3", None)]
    assert progress.kept == ["k1"]


# Webhooks


async def fill_queues(store: Store) -> tuple[Endpoint, list[Delivery]]:
    """Add an endpoint with a delivery of each state, and published and pending events."""
    await store.put_tenant(Tenant(LAB, "Lab", b"s" * 32, 1))
    first = a_version()
    await events_added(store, [first, successor(first), a_version()])
    await store.mark_published([(first.id, 1)])
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    deliveries = await queue(store, 4, endpoint=endpoint.id)
    await end(store, deliveries[0], "delivered")
    await end(store, deliveries[1], "dead")
    await end(store, deliveries[2], "retrying")
    return endpoint, deliveries


async def test_a_copy_holds_endpoints_and_their_deliveries_and_pending_events(
    source: Store, target: Store
) -> None:
    await fill_queues(source)

    progress = await transfer(source, target)

    assert progress.deliveries == 4
    assert await everything(target) == await everything(source)


async def test_queues_that_are_the_same_are_not_written_again(
    source: Store, target: Store
) -> None:
    await fill_queues(source)
    await transfer(source, target)

    again = await transfer(source, target)

    assert (again.deliveries, again.kept) == (0, [])
    assert await everything(target) == await everything(source)


async def test_what_became_of_queues_after_a_copy_is_copied_by_the_next(
    source: Store, target: Store
) -> None:
    endpoint, deliveries = await fill_queues(source)
    await transfer(source, target)
    await source.put_endpoint(LAB, replace(endpoint, revision=2, state="deleted"))
    await source.save_health(endpoint.id, b"{1}")
    await source.reopen(LAB, endpoint.id, ["evt_1"], now=NOW)
    await end(source, deliveries[3])
    await source.append([a_delivery(endpoint.id, 5)])
    await source.mark_published(await pending_keys(source, limit=1))

    again = await transfer(source, target)

    assert (again.deliveries, again.kept) == (3, [])
    assert await everything(target) == await everything(source)


async def test_an_endpoint_that_was_changed_in_the_target_stays_so_and_is_named(
    source: Store, target: Store
) -> None:
    endpoint, _deliveries = await fill_queues(source)
    await transfer(source, target)
    deleted = replace(endpoint, revision=2, state="deleted")
    await target.put_endpoint(LAB, deleted)
    await source.put_endpoint(LAB, replace(endpoint, revision=2, url="https://other.example"))

    again = await transfer(source, target)

    assert again.kept == [endpoint.id]
    assert await target.endpoint(LAB, endpoint.id) == deleted


async def test_an_endpoint_that_was_deleted_in_the_target_stays_so_however_often_it_changes(
    source: Store, target: Store
) -> None:
    endpoint, _deliveries = await fill_queues(source)
    await transfer(source, target)
    await target.put_endpoint(LAB, replace(endpoint, revision=2, state="deleted"))
    for revision in (2, 3):
        await source.put_endpoint(LAB, replace(endpoint, revision=revision))

    again = await transfer(source, target)

    assert again.kept == [endpoint.id]
    assert [item.state for item in await target.endpoints(LAB)] == ["deleted"]


async def test_an_endpoint_that_is_deleted_in_the_target_amid_a_copy_stays_so(
    source: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, _deliveries = await fill_queues(source)
    await transfer(source, target)
    await source.save_health(endpoint.id, b"{1}")
    deleted = replace(endpoint, revision=2, state="deleted")
    copy = target.copy_endpoint

    async def deleted_before_the_copy(wanted: Endpoint, **over: Any) -> bool:
        await target.put_endpoint(LAB, deleted)
        return await copy(wanted, **over)

    monkeypatch.setattr(target, "copy_endpoint", deleted_before_the_copy)

    again = await transfer(source, target)

    assert again.kept == [endpoint.id]
    assert await target.endpoint(LAB, endpoint.id) == deleted


async def test_a_delivery_that_was_reopened_in_the_target_stays_so(
    source: Store, target: Store
) -> None:
    endpoint, _deliveries = await fill_queues(source)
    await transfer(source, target)
    await target.reopen(LAB, endpoint.id, ["evt_2"], now=NOW)
    before = await everything(target)

    again = await transfer(source, target)

    assert again.deliveries == 0
    assert await everything(target) == before


async def test_a_delivery_that_the_target_has_tried_more_often_stays(
    source: Store, target: Store
) -> None:
    endpoint, deliveries = await fill_queues(source)
    await transfer(source, target)
    await end(target, deliveries[3])

    again = await transfer(source, target)

    assert again.deliveries == 0
    assert await target.count_deliveries(LAB, endpoint.id) == {
        "delivered": 2,
        "dead": 1,
        "retrying": 1,
    }


async def test_a_delivery_that_the_target_has_tried_more_often_than_its_log_holds_stays(
    source: Store, target: Store
) -> None:
    _endpoint, deliveries = await fill_queues(source)
    for number in range(MAX_ATTEMPTS_KEPT):
        await end(source, deliveries[3], "retrying", now=NOW + number)
    await transfer(source, target)
    await end(target, deliveries[3], now=NOW + 1000)
    before = await everything(target)

    again = await transfer(source, target)

    assert again.deliveries == 0
    assert await everything(target) == before


async def test_a_target_that_has_sent_events_of_its_own_is_refused(
    source: Store, target: Store
) -> None:
    endpoint, _deliveries = await fill_queues(source)
    await transfer(source, target)
    await source.append([a_delivery(endpoint.id, 5)])
    await target.append([a_delivery(endpoint.id, 5, event_id="evt_own")])

    with pytest.raises(ConfigurationError, match=f"of its own to the endpoint {endpoint.id}"):
        await transfer(source, target)


async def test_what_is_relayed_while_it_is_copied_is_not_forgotten(tmp_path: Path) -> None:
    class Relaying(SqliteStore):
        async def outbox_contains(
            self, keys: Collection[tuple[str, int]]
        ) -> frozenset[tuple[str, int]]:
            found = await super().outbox_contains(keys)
            await self.append([a_delivery(endpoint.id)])
            await self.mark_published(keys)
            return found

    endpoint, version = an_endpoint(), a_version()
    async with (
        open_store(a_config(f"sqlite:///{tmp_path}/target.db")) as target,
        AsyncExitStack() as stack,
    ):
        source = Relaying(tmp_path / "source.db", deadline_seconds=10)
        await source.start()
        stack.push_async_callback(source.stop)
        await events_added(source, [version])

        await transfer(source, target)

        assert await pending_keys(target) == [(version.id, 1)]
        assert await target.existing_deliveries(endpoint.id, ["evt_1"]) == {"evt_1"}


class BusyStore(SqliteStore):
    """A store to which others add versions during a scan, before and after the current place."""

    async def scan(
        self, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> Sequence[tuple[str, Version]]:
        page = await super().scan(after=after, limit=limit)
        if page:
            await self.put_tenant(Tenant(OTHER, "Other", b"t" * 32, 2))
            for letter in ("0", "z"):
                await self.add(OTHER, a_version(id=f"{letter}{len(await self.tenants())}"))
        return page


async def test_what_is_added_while_it_is_read_has_its_tenant_in_the_copy(tmp_path: Path) -> None:
    source = BusyStore(tmp_path / "source.db", deadline_seconds=10)
    target = SqliteStore(tmp_path / "target.db", deadline_seconds=10)
    await source.start()
    await target.start()
    await source.put_tenant(Tenant(LAB, "Lab", b"s" * 32, 1))
    await source.add(LAB, a_version(id="a"))

    first = await transfer(source, target)
    owners = {owner for owner, _ in await target.scan()}
    known = {tenant.id for tenant in await target.tenants()}
    again = await transfer(source, target)

    assert (first.copied, again.copied) == (2, 1)
    assert owners == known == {LAB, OTHER}
    assert await everything(target) == await everything(source)
    await source.stop()
    await target.stop()


class WatchedStore(SqliteStore):
    """A store that counts the versions whose documents are being read."""

    in_progress = most_in_progress = 0

    async def whole_blob(self, tenant: str, blob: BlobInfo) -> Blob:
        self.in_progress += 1
        self.most_in_progress = max(self.most_in_progress, self.in_progress)
        found = await super().whole_blob(tenant, blob)
        self.in_progress -= 1
        return found


@pytest.mark.parametrize(("size", "most"), [(2_000_000, 2), (200_000, 8)])
async def test_of_versions_with_large_documents_few_are_copied_at_the_same_time(
    tmp_path: Path, size: int, most: int
) -> None:
    source = WatchedStore(tmp_path / "source.db", deadline_seconds=10)
    target = SqliteStore(tmp_path / "target.db", deadline_seconds=10)
    await source.start()
    await target.start()
    for _ in range(8):
        blob = a_blob(os.urandom(size))
        await source.add(LAB, a_version(documents=(blob.sha256,)), [blob])

    copied = await transfer(source, target)

    assert copied.copied == 8
    assert source.most_in_progress == most
    await source.stop()
    await target.stop()


async def test_a_document_that_a_version_holds_is_copied_within_it_alone(
    source: Store, target: Store
) -> None:
    version = holding(a_blob(), a_blob())
    await source.add(LAB, version)

    await transfer(source, target)

    assert await target.latest(LAB, version.id) == version
    await wait_for_stored_bytes(target, LAB, version.size)


# Refused sources and targets


async def test_an_empty_store_is_not_copied(source: Store, target: Store) -> None:
    with pytest.raises(ConfigurationError, match="is empty"):
        await transfer(source, target)


async def test_a_file_is_not_copied_into_itself_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    one = a_config(f"sqlite:///{tmp_path}/store.db")
    other = a_config(f"sqlite:///{tmp_path}/link/store.db")

    async with open_store(one) as source, open_store(other) as target:
        with pytest.raises(ConfigurationError, match="is the store that is to be copied"):
            await transfer(source, target)


async def test_a_database_is_not_copied_into_itself_under_another_address(
    mongodb_url: str,
) -> None:
    parts = urlsplit(mongodb_url)
    other = parts._replace(
        netloc=parts.netloc.replace("127.0.0.1", "localhost"), query=f"appName=x&{parts.query}"
    ).geturl()

    async with open_store(a_config(mongodb_url)) as source, open_store(a_config(other)) as it:
        with pytest.raises(ConfigurationError, match="is the store that is to be copied"):
            await transfer(source, it)


async def test_a_version_that_the_target_cannot_keep_is_named(
    tmp_path: Path, mongodb_url: str
) -> None:
    version = a_version(body=b"{}" * 5_000_000, response=b"{}" * 5_000_000)
    small = a_config(f"sqlite:///{tmp_path}/store.db")

    async with open_store(small) as source, open_store(a_config(mongodb_url)) as target:
        await source.add(LAB, version)
        with pytest.raises(ConfigurationError, match=f"{version.id} version 1.*larger than"):
            await transfer(source, target)


# There and back


async def test_what_went_into_mongodb_and_back_is_what_it_was(
    tmp_path: Path, mongodb_url: str
) -> None:
    begin, end = (a_config(f"sqlite:///{tmp_path}/{name}.db") for name in ("begin", "end"))
    async with open_store(begin) as source, open_store(a_config(mongodb_url)) as middle:
        await fill(source, count=400)
        secrets = [
            await add_client(
                source, NewClient(tenant=LAB, name=character, environment="sandbox"), clock=now_ms
            )
            for character in "ab"
        ]
        await rotate_client(source, secrets[0][0].id, grace_seconds=60, clock=now_ms)
        await disable_client(source, secrets[1][0].id)
        large = a_blob(os.urandom(3_000_000))
        await source.add(LAB, a_version(documents=(large.sha256,)), [large])
        await source.rotate_signing_key(a_key("k3", created=5), expected=["k1"])

        await transfer(source, middle)
        async with open_store(end) as target:
            progress = await transfer(middle, target)

            assert progress == Progress(total=801, copied=801)
            assert await everything(target) == await everything(source)


async def test_what_resources_are_found_by_comes_along(source: Store, target: Store) -> None:
    await source.put_tenant(replace(Tenant.new("Lab", created=1), id=LAB))
    version = found_by(("status", "final", "urn:s"), ("date", 5, 9), ("subject", "", "Patient"))
    await source.add(LAB, version)
    await source.put_search_rules("ours")

    await transfer(source, target)

    for criterion in (has("status", token("final")), has("date", TimeMatch(after=5))):
        assert (await target.search(LAB, wanting(criterion))).versions == (version,)
    assert await target.search_rules() == "ours"
    # Another release has computed other values for the same versions: neither count.
    await target.replace_search(LAB, version.id, 1, b"[]")
    await source.put_search_rules("new")
    await transfer(source, target)
    assert await target.search_rules() == "{}"


@pytest.mark.parametrize(
    ("there", "kept"),
    [
        ({"DiagnosticReport": "b"}, {"identifier of Specimen": "s"}),
        (
            {"identifier of Media": "m"},
            {"identifier of Media": "m", "identifier of Specimen": "s"},
        ),
        (
            {"identifier of Specimen": "other"},
            {"identifier of Specimen": '{"rule":"that of two stores"}'},
        ),
    ],
)
async def test_rules_of_keys_stay_where_two_stores_are_joined(
    source: Store, target: Store, there: dict[str, str], kept: dict[str, str]
) -> None:
    await source.put_tenant(replace(Tenant.new("Lab", created=1), id=LAB))
    ours = {"DiagnosticReport": "a", "identifier of Specimen": "s"}
    await source.put_search_rules(json.dumps(ours))
    await target.put_search_rules(json.dumps(there))

    await transfer(source, target)

    assert json.loads(await target.search_rules()) == kept


async def test_values_that_the_source_rebuilds_during_a_copy_count_as_of_no_rules(
    source: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(source)
    await source.put_search_rules("old")
    scan = source.scan

    async def rebuilt_during_the_scan(**place: Any) -> Sequence[tuple[str, Version]]:
        page = await scan(**place)
        await source.put_search_rules("new")
        return page

    monkeypatch.setattr(source, "scan", rebuilt_during_the_scan)

    await transfer(source, target)

    assert await target.search_rules() == "{}"


@pytest.mark.parametrize("rules", ["", "old"])
async def test_values_that_an_interrupted_copy_has_left_are_not_said_to_be_of_newer_rules(
    source: Store, target: Store, rules: str
) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(_progress: Progress) -> None:
        raise Interrupted

    await fill(source)
    await source.put_search_rules(rules)
    with pytest.raises(Interrupted):
        await transfer(source, target, on_progress=interrupt)
    await source.put_search_rules("new")

    for _ in range(2):
        await transfer(source, target)

    assert await target.search_rules() == "{}"
