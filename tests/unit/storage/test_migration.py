"""A copy of a store: complete, repeatable, and careful with what it finds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.errors import ConfigurationError
from fhirpub.storage.contract import Store
from fhirpub.storage.migration import Progress, migrate
from fhirpub.storage.sqlite import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.store_contract import (
    LAB,
    OTHER,
    a_blob,
    a_client,
    a_key,
    a_version,
    successor,
)


@pytest.fixture
async def source(tmp_path: Path) -> AsyncGenerator[Store]:
    store = SqliteStore(tmp_path / "source.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
async def target(tmp_path: Path) -> AsyncGenerator[Store]:
    store = SqliteStore(tmp_path / "target.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


async def everything(store: Store) -> tuple[object, ...]:
    versions = await store.walk(limit=10_000)
    names = {(tenant, name) for tenant, each in versions for name in each.documents}
    blobs = [await store.blobs(tenant, [name]) for tenant, name in sorted(names)]
    keys = [await store.signing_keys(each) for each in ("sandbox", "production")]
    return versions, blobs, keys, await store.tenants(), await store.clients()


async def fill(store: Store, count: int = 3) -> None:
    await store.put_tenant(Tenant(LAB, "Lab", b"s" * 32, 1))
    await store.put_tenant(Tenant(OTHER, "Other", b"t" * 32, 2, disabled=True))
    await store.put_client(a_client())
    await store.put_signing_key(a_key("k1"))
    await store.put_signing_key(a_key("k2", environment="production"))
    for number in range(count):
        blob = a_blob()
        version = a_version(documents=(blob.sha256,), response=b"{}", parts=b"{}")
        tenant = LAB if number % 2 else OTHER
        await store.add(tenant, version, [blob])
        await store.add(tenant, successor(version))


async def test_a_copy_holds_everything(source: Store, target: Store) -> None:
    await fill(source)

    await migrate(source, target)

    assert await everything(target) == await everything(source)


async def test_a_copy_made_again_writes_nothing_and_finds_all_the_same(
    source: Store, target: Store
) -> None:
    await fill(source)
    first = await migrate(source, target)

    again = await migrate(source, target)

    assert (first.copied, first.there) == (6, 0)
    assert (again.copied, again.there) == (0, 6)


async def test_more_than_a_page_is_copied_and_told_page_by_page(
    source: Store, target: Store
) -> None:
    await fill(source, count=150)
    told: list[int] = []

    progress = await migrate(source, target, tell=lambda each: told.append(each.seen))

    assert progress == Progress(total=300, copied=300)
    assert told == [200, 300]


async def test_what_came_after_a_copy_is_copied_by_the_next(source: Store, target: Store) -> None:
    await fill(source)
    await migrate(source, target)
    tenant, version = (await source.walk())[-1]
    await source.add(tenant, successor(version))

    progress = await migrate(source, target)

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
        await migrate(source, target, tell=interrupt)
    progress = await migrate(source, target)

    assert (progress.there, progress.copied) == (200, 100)
    assert await everything(target) == await everything(source)


async def test_a_target_with_another_version_under_a_key_is_refused_and_left_alone(
    source: Store, target: Store
) -> None:
    version = a_version(body=b'{"a":1}')
    await source.add(LAB, version)
    await target.add(LAB, replace(version, body=b'{"a":2}'))

    with pytest.raises(ConfigurationError, match="not a copy of this store"):
        await migrate(source, target)

    assert await target.latest(LAB, version.id) == replace(version, body=b'{"a":2}')


async def test_a_target_with_another_tenant_under_an_id_is_refused(
    source: Store, target: Store
) -> None:
    await source.put_tenant(Tenant(LAB, "Lab", b"s" * 32, 1))
    await target.put_tenant(Tenant(LAB, "Lab", b"x" * 32, 1))

    with pytest.raises(ConfigurationError, match="another tenant"):
        await migrate(source, target)


async def test_a_client_that_the_target_has_disabled_stays_so_and_is_named(
    source: Store, target: Store
) -> None:
    client = a_client()
    await source.put_client(client)
    await target.put_client(replace(client, disabled=True))

    progress = await migrate(source, target)

    assert await target.client(client.id) == replace(client, disabled=True)
    assert progress.kept == [client.id]
