"""Stores that break one promise each, to prove that the checks detect it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from pymongo import WriteConcern

from fhirpub.app.stores import OpenStore, open_store
from fhirpub.config.settings import Config
from fhirpub.storage.contract import Blob, BlobInfo, Client, Page, SearchQuery, SigningKey, Version
from fhirpub.storage.fair_commit import FairCommit
from fhirpub.storage.mongodb.collections import SEVERAL
from fhirpub.storage.mongodb.schema import BLOB, PIECE, VERSION
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.mongodb.writes import Additions
from fhirpub.storage.secret_contract import StoredSecret
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant
from fhirpub.testing.store_contract import new_id
from tests.faults.wrapped_audit import AuditWrapper
from tests.faults.wrapped_client_activity import ClientActivityWrapper
from tests.faults.wrapped_erasure import ErasureWrapper
from tests.faults.wrapped_quotas import QuotasWrapper
from tests.faults.wrapped_webhooks import WebhooksWrapper

_WEAK_SECONDS = 2.0
_RACE_SECONDS = 0.02
"""The time for which a race stays open: it must happen reliably, not by chance."""


class StoreWrapper(
    WebhooksWrapper, QuotasWrapper, AuditWrapper, ClientActivityWrapper, ErasureWrapper, Store
):
    """A store that delegates to another one, whose start and stop are the caller's business."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.cipher = inner.cipher

    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        return await self.inner.add(tenant, version, blobs)

    async def latest(self, tenant: str, resource_id: str) -> Version | None:
        return await self.inner.latest(tenant, resource_id)

    async def latest_public(self, tenant: str, resource_id: str) -> Version | None:
        latest = await self.latest(tenant, resource_id)
        return latest and latest.without_internal_fields()

    async def version(self, tenant: str, resource_id: str, version: int) -> Version | None:
        return await self.inner.version(tenant, resource_id, version)

    async def history(
        self, tenant: str, resource_id: str, *, below: int | None = None, limit: int = 20
    ) -> Sequence[Version]:
        return await self.inner.history(tenant, resource_id, below=below, limit=limit)

    async def search(self, tenant: str, query: SearchQuery) -> Page:
        return await self.inner.search(tenant, query)

    async def blobs(self, tenant: str, names: Collection[str]) -> Mapping[str, BlobInfo]:
        return await self.inner.blobs(tenant, names)

    def blob_pieces(self, tenant: str, blob: BlobInfo, part: slice) -> AsyncGenerator[bytes, None]:
        return self.inner.blob_pieces(tenant, blob, part)

    async def sweep_blobs(self, tenant: str, *, before: int) -> int:
        return await self.inner.sweep_blobs(tenant, before=before)

    async def put_tenant(self, tenant: Tenant) -> None:
        await self.inner.put_tenant(tenant)

    async def add_tenant(self, tenant: Tenant) -> bool:
        return await self.inner.add_tenant(tenant)

    async def change_tenant(
        self, tenant_id: str, *, name: str | None = None, disabled: bool | None = None
    ) -> None:
        await self.inner.change_tenant(tenant_id, name=name, disabled=disabled)

    async def tenant(self, tenant_id: str) -> Tenant | None:
        return await self.inner.tenant(tenant_id)

    async def tenants(self) -> Sequence[Tenant]:
        return await self.inner.tenants()

    async def put_client(self, client: Client) -> None:
        await self.inner.put_client(client)

    async def add_client(self, client: Client) -> bool:
        return await self.inner.add_client(client)

    async def replace_client(self, client: Client, *, over: Client) -> bool:
        return await self.inner.replace_client(client, over=over)

    async def client(self, client_id: str) -> Client | None:
        return await self.inner.client(client_id)

    async def clients(self, *, tenant: str | None = None) -> Sequence[Client]:
        return await self.inner.clients(tenant=tenant)

    async def put_signing_key(self, key: SigningKey) -> None:
        await self.inner.put_signing_key(key)

    async def signing_keys(self, environment: str) -> Sequence[SigningKey]:
        return await self.inner.signing_keys(environment)

    async def rotate_signing_key(self, new: SigningKey, *, expected: Sequence[str]) -> bool:
        return await self.inner.rotate_signing_key(new, expected=expected)

    async def stored_secrets(self) -> Sequence[StoredSecret]:
        return await self.inner.stored_secrets()

    async def replace_stored_secret(self, secret: StoredSecret, value: bytes) -> bool:
        return await self.inner.replace_stored_secret(secret, value)

    async def count(self) -> int:
        return await self.inner.count()

    async def scan(
        self, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> Sequence[tuple[str, Version]]:
        return await self.inner.scan(after=after, limit=limit)

    async def replace_search(
        self, tenant: str, resource_id: str, version: int, search: bytes
    ) -> None:
        await self.inner.replace_search(tenant, resource_id, version, search)

    async def search_rules(self) -> str:
        return await self.inner.search_rules()

    async def put_search_rules(self, rules: str) -> None:
        await self.inner.put_search_rules(rules)

    async def start(self) -> None:
        await self.inner.start()

    async def check(self) -> None:
        await self.inner.check()

    async def stop(self) -> None:
        await self.inner.stop()


def opening(kind: type[StoreWrapper]) -> OpenStore:
    """Return a function that opens the store of a configuration wrapped in this one."""

    @asynccontextmanager
    async def open_wrapped(config: Config) -> AsyncGenerator[Store, None]:
        async with open_store(config) as inner:
            yield kind(inner)

    return open_wrapped


class AcknowledgesTooEarly(StoreWrapper):
    """A version is acknowledged, and read, a moment before it is durable."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._promised: dict[tuple[str, int], Version] = {}
        self._writing: set[asyncio.Task[bool]] = set()

    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        key = version.id, version.version
        if await self.inner.version(tenant, *key) or key in self._promised:
            return False
        self._promised[key] = version
        self._writing.add(asyncio.create_task(self._write_later(tenant, version, blobs)))
        return True

    async def latest(self, tenant: str, resource_id: str) -> Version | None:
        latest = await self.inner.latest(tenant, resource_id)
        number = latest.version if latest else 0
        while (resource_id, number + 1) in self._promised:
            number += 1
            latest = self._promised[resource_id, number]
        return latest

    async def version(self, tenant: str, resource_id: str, version: int) -> Version | None:
        promised = self._promised.get((resource_id, version))
        return promised or await self.inner.version(tenant, resource_id, version)

    async def blobs(self, tenant: str, names: Collection[str]) -> Mapping[str, BlobInfo]:
        while len(found := await self.inner.blobs(tenant, names)) < len(set(names)):
            await asyncio.sleep(0.02)
        return found

    async def _write_later(self, tenant: str, version: Version, blobs: Collection[Blob]) -> bool:
        await asyncio.sleep(1.0)
        return await self.inner.add(tenant, version, blobs)


class AcknowledgesBeforeAMajority(StoreWrapper):
    """A version counts as durable as soon as the primary of a replica set has it."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        assert isinstance(inner, MongoStore)
        collections = inner._open.collections
        weak = WriteConcern(1)
        additions = Additions(
            collections[VERSION].with_options(write_concern=weak),
            certain=collections[VERSION],
            blobs=collections[BLOB].with_options(write_concern=weak),
            pieces=collections[PIECE].with_options(write_concern=weak),
            stored=inner._open.stored,
            seconds=_WEAK_SECONDS,
        )
        inner._open.additions = FairCommit(
            additions.commit,
            owner_of=lambda addition: addition.tenant,
            deadline_seconds=_WEAK_SECONDS,
            bounds=SEVERAL,
        )


class LetsTwoUpdatesWin(StoreWrapper):
    """A version whose number is taken is added under the next one."""

    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        if version.version == 1:
            return await self.inner.add(tenant, version, blobs)
        await asyncio.sleep(_RACE_SECONDS)
        while not await self.inner.add(tenant, version, blobs):
            version = _renumbered(version, version.version + 1)
        return True


def _renumbered(version: Version, number: int) -> Version:
    before, after = b'"versionId":"%d"' % version.version, b'"versionId":"%d"' % number
    return replace(version, version=number, body=version.body.replace(before, after, 1))


class ReadsFromACache(StoreWrapper):
    """The latest version is cached and looked up only a few times a second."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._cached: dict[str, tuple[float, Version | None]] = {}

    async def latest(self, tenant: str, resource_id: str) -> Version | None:
        now = asyncio.get_running_loop().time()
        since, cached = self._cached.get(resource_id, (0.0, None))
        if now - since < 0.2:
            return cached
        latest = await self.inner.latest(tenant, resource_id)
        self._cached[resource_id] = now, latest
        return latest


class DropsAnEvent(StoreWrapper):
    """The third version is stored without its events."""

    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        if version.version == 3:
            version = replace(version, events=b"[]")
        return await self.inner.add(tenant, version, blobs)


class DropsADocument(StoreWrapper):
    """The documents of the third version are not stored."""

    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        if version.version == 3:
            version, blobs = replace(version, attached=()), ()
        return await self.inner.add(tenant, version, blobs)


class RepeatsInOtherWords(StoreWrapper):
    """The stored response is returned with a blank at its end."""

    async def version(self, tenant: str, resource_id: str, version: int) -> Version | None:
        found = await self.inner.version(tenant, resource_id, version)
        return found and replace(found, response=found.response + b" ")


class LosesAnUpdate(StoreWrapper):
    """An update that lost the race is acknowledged as if it had been stored."""

    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        await asyncio.sleep(_RACE_SECONDS)
        return await self.inner.add(tenant, version, blobs) or version.version > 1


class RegistersTwice(StoreWrapper):
    """A registration that lost the race creates a report with another id."""

    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        await asyncio.sleep(_RACE_SECONDS)
        added = await self.inner.add(tenant, version, blobs)
        if not added and version.version == 1:
            await self.inner.add(tenant, replace(version, id=new_id()), blobs)
        return added


class AnswersEachRegistration(StoreWrapper):
    """A registration that lost the race gets a response of its own."""

    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        await asyncio.sleep(_RACE_SECONDS)
        return await self.inner.add(tenant, version, blobs) or version.version == 1
