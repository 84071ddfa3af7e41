"""The store on MongoDB: a replica set or a sharded cluster, shared by many machines.

What is acknowledged is in the journals of a majority, and no URL can weaken that. Reads ask the
primary for what a majority has: a write is acknowledged only once the primary's own view of what
a majority has includes it, and a new primary is believed only once its view includes all of that
(`primary.py`), so that every later read sees it. A deposed primary that does not know it yet
could, for some seconds, return what was newest before. No client is misled into writing by that:
every insert meets at the unique key on the real primary, and a process that has heard of the new
primary asks the old one no more. Where even that would not do, because the outcome of a write is
reported, the read is ``linearizable``: `writes.py`. See ADR 14.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import pymongo
from bson.codec_options import CodecOptions
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo import ReadPreference, WriteConcern
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.runtime.clock import Clock, now_ms
from fhirpub.runtime.logging import logger
from fhirpub.storage.contract import Blob, BlobInfo, Page, SearchQuery, Version
from fhirpub.storage.erasure.tombstones import MARK
from fhirpub.storage.mongodb import documents, schema
from fhirpub.storage.mongodb.audit import MongoAudit
from fhirpub.storage.mongodb.client_activity import MongoClientActivity
from fhirpub.storage.mongodb.credentials.store import MongoCredentials
from fhirpub.storage.mongodb.errors import raise_configuration_errors, within
from fhirpub.storage.mongodb.member_reads import filter_by_key
from fhirpub.storage.mongodb.opened import Opened
from fhirpub.storage.mongodb.primary import FormerPrimaries, Primary
from fhirpub.storage.mongodb.removal.erasure import MongoErasure
from fhirpub.storage.mongodb.removal.reuse import Reuse
from fhirpub.storage.mongodb.schema import Records
from fhirpub.storage.mongodb.server_checks import examine
from fhirpub.storage.mongodb.stored_bytes import StoredBytes, count_base
from fhirpub.storage.mongodb.webhooks import MongoWebhooks
from fhirpub.storage.store import Store
from fhirpub.storage.upgrades.versions import SchemaVersion
from fhirpub.tenant import is_member_id

SCHEMES = ("mongodb://", "mongodb+srv://")

_FORCED: dict[str, Any] = {
    "w": "majority",
    "journal": True,
    "readConcernLevel": "majority",
    "readPreference": "primary",
    "retryWrites": True,
    "retryReads": True,
    "directConnection": False,  # a member that is asked alone answers even as a secondary
    "serverMonitoringMode": "stream",  # by asking now and then two elections may be missed
}
_SOCKET_SHARE = 0.5
"""Of the deadline: so long the driver waits for a search, longer than the server works on it."""
_GOODBYE_SECONDS = 1.0
_START_SECONDS = 10.0
"""At least, unless the URL asks for less (serverSelectionTimeoutMS): a start may meet an election,
however short the deadline of requests is."""
_INDEX_SECONDS = 3_600.0
"""An index that was lost is made again from all there is."""
_log = logger()


def from_url(
    url: str,
    *,
    deadline_seconds: float,
    production: bool,
    clock: Clock = now_ms,
    cipher: SecretCipher | None = None,
) -> MongoStore:
    """Return the store of ``mongodb://…/database?…``; ``production`` refuses a single server.

    Raises ConfigurationError, which shows nothing of the URL: there may be a password in it.
    """
    overruled = _overruled_options(url)
    if overruled:
        _log.warning("[storage] url is overruled: writes are durable", options=overruled)
    former = FormerPrimaries()
    socket_ms = int(deadline_seconds * _SOCKET_SHARE * 1000)
    try:
        with warnings.catch_warnings(action="error", category=UserWarning):
            client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(
                url, **_FORCED, socketTimeoutMS=socket_ms, event_listeners=[former]
            )
        client.get_default_database()
    except OSError:  # SSLError is one: of a file that is no certificate
        raise ConfigurationError(
            "[storage] url: a file that tlsCAFile, tlsCertificateKeyFile or tlsCRLFile names "
            "cannot be read, or is not in PEM"
        ) from None
    except (PyMongoError, ValueError, TypeError, UserWarning) as refusal:
        raise ConfigurationError(
            "[storage] url: must be mongodb://host:port/database?replicaSet=name, with the "
            f"options that MongoDB's drivers know; the driver says {type(refusal).__name__}"
        ) from None
    former.observe(client.delegate)
    store = MongoStore(
        client, url=url, deadline_seconds=deadline_seconds, production=production, clock=clock
    )
    store.cipher = SecretCipher() if cipher is None else cipher
    return store


def _overruled_options(url: str) -> list[str]:
    """Return the options by which a URL asks for less than what is promised."""
    asked = {name.lower(): value.lower() for name, value in parse_qsl(url.partition("?")[2])}
    asked["journal"] = asked.pop("j", asked.get("journal", "true"))
    return [
        name
        for name, value in _FORCED.items()
        if asked.get(name.lower(), str(value).lower()) != str(value).lower()
    ]


class MongoStore(
    MongoAudit, MongoCredentials, MongoClientActivity, MongoErasure, MongoWebhooks, Store
):
    """A store in one database; made by :func:`from_url`."""

    def __init__(
        self,
        client: AsyncIOMotorClient[dict[str, Any]],
        *,
        url: str,
        deadline_seconds: float,
        production: bool,
        clock: Clock,
    ) -> None:
        self._client = client
        self._url = url
        self._deadline = deadline_seconds
        self._production = production
        self._clock = clock
        self._opened: Opened | None = None
        # On the handles as well as on the client, so that nothing but this states them.
        self._database = client.get_default_database().with_options(
            codec_options=CodecOptions(),
            read_preference=ReadPreference.PRIMARY,
            write_concern=WriteConcern("majority", j=True),
            read_concern=ReadConcern("majority"),
        )

    async def start(self) -> None:
        if self._opened is not None:
            return
        patience = min(_START_SECONDS, self._client.delegate.options.server_selection_timeout)
        now, seconds = self._clock(), max(self._deadline, patience)
        try:
            async with within(seconds):
                with raise_configuration_errors():
                    concerns = await examine(self._client, production=self._production, now=now)
            async with within(_INDEX_SECONDS):
                with raise_configuration_errors():
                    await schema.prepare(self._database, upgrade=self.upgrades)
                    await count_base(self._database, now=now)
            opened = Opened(self._database, concerns, self._deadline)
            async with within(seconds):
                await opened.primary.verified_term()
        except BaseException:
            await self._close()
            raise
        self._opened = opened

    async def check(self) -> None:
        await self._put(schema.STORE, {"_id": schema.PROBE, "moment": self._clock()})
        async with within(self._deadline):
            stored = await self._collection(schema.STORE).find_one({"_id": schema.SCHEMA})
        schema.require_use(stored)

    async def stop(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.drain()
            await self._close()

    def for_other_loop(self) -> Store:
        return from_url(
            self._url,
            deadline_seconds=self._deadline,
            production=self._production,
            clock=self._clock,
            cipher=self.cipher,
        )

    async def _close(self) -> None:
        # The driver says goodbye to a server, which may be gone.
        with pymongo.timeout(_GOODBYE_SECONDS):
            await asyncio.to_thread(self._client.close)

    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        return await self._open.add(tenant, version, blobs, now=self._clock())

    async def latest(self, tenant: str, resource_id: str) -> Version | None:
        return await self._open.reads.latest(tenant, resource_id)

    async def latest_public(self, tenant: str, resource_id: str) -> Version | None:
        return await self._open.reads.latest_public(tenant, resource_id)

    async def version(self, tenant: str, resource_id: str, version: int) -> Version | None:
        return await self._open.reads.version(tenant, resource_id, version)

    async def history(
        self, tenant: str, resource_id: str, *, below: int | None = None, limit: int = 20
    ) -> Sequence[Version]:
        return await self._open.reads.history(tenant, resource_id, below=below, limit=limit)

    async def search(self, tenant: str, query: SearchQuery) -> Page:
        return await self._open.reads.search(tenant, query)

    async def blobs(self, tenant: str, names: Collection[str]) -> Mapping[str, BlobInfo]:
        return await self._open.reads.blobs(tenant, names)

    def blob_pieces(self, tenant: str, blob: BlobInfo, part: slice) -> AsyncGenerator[bytes, None]:
        return self._open.reads.blob_pieces(tenant, blob, part)

    async def identity(self) -> str:
        # The server gives each collection a UUID, which is one on all members of a set.
        async with within(self._deadline):
            looking = await self._database.list_collections(filter={"name": schema.STORE})
            (found,) = await looking.to_list(None)
        return bytes(found["info"]["uuid"]).hex()

    async def schema_version(self) -> SchemaVersion:
        async with within(self._deadline):
            return schema.version_in(
                await self._database[schema.STORE].find_one({"_id": schema.SCHEMA})
            )

    async def count(self) -> int:
        async with within(self._deadline):
            return int(await self._collection(schema.VERSION).estimated_document_count())

    async def scan(
        self, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> Sequence[tuple[str, Version]]:
        return await self._open.reads.scan(after, limit)

    async def replace_search(
        self, tenant: str, resource_id: str, version: int, search: bytes
    ) -> None:
        if is_member_id(resource_id):
            await self._replace_search_of_member(tenant, (resource_id, version), search)
            return
        wanted = {"id": resource_id, "version": version, "tenant": tenant}
        shown = {"type": True}
        for found in await self._list(schema.VERSION, wanted, shown, hint=schema.VERSION_KEY):
            if found["type"].startswith(MARK):
                continue
            change = {"$set": {"search": documents.found_by(tenant, found["type"], search)}}
            same = {**wanted, "type": found["type"]}  # not erased in the meantime
            async with within(self._deadline):
                await self._collection(schema.VERSION).update_one(same, change)

    async def _replace_search_of_member(
        self, tenant: str, key: documents.Key, search: bytes
    ) -> None:
        wanted = {**filter_by_key(key), "tenant": tenant}
        shown = {"id": True, "version": True, "members": wanted["members"]}
        for found in await self._list(schema.VERSION, wanted, shown, hint=schema.BY_MEMBER):
            values = documents.found_by(tenant, found["members"][0]["type"], search)
            carrier = {"id": found["id"], "version": found["version"], "tenant": tenant}
            if found["members"][0]["type"].startswith(MARK):
                continue
            member = {"member.id": key[0], "member.version": key[1]}
            member["member.type"] = found["members"][0]["type"]  # not erased in the meantime
            async with within(self._deadline):
                await self._collection(schema.VERSION).update_one(
                    carrier,
                    {"$set": {"members.$[member].search": values}},
                    array_filters=[member],
                )

    async def search_rules(self) -> str:
        found = await self._list(schema.STORE, {"_id": schema.SEARCH_RULES})
        return str(found[0]["rules"]) if found else ""

    async def put_search_rules(self, rules: str) -> None:
        await self._put(schema.STORE, {"_id": schema.SEARCH_RULES, "rules": rules})

    @property
    def _open(self) -> Opened:
        if self._opened is None:
            raise StoreUnavailable("not started, or stopped")
        return self._opened

    @property
    def _primary(self) -> Primary:
        return self._open.primary

    @property
    def _stored(self) -> StoredBytes:
        return self._open.stored

    @property
    def _reuse(self) -> Reuse:
        return self._open.reuse

    def _collection(self, name: str) -> Records:
        return self._open.collections[name]
