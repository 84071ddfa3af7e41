"""The embedded store: one SQLite file, shared by the processes of one machine."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import ConfigurationError
from fhirpub.runtime.clock import Clock, now_ms
from fhirpub.storage.contract import (
    MAX_PAGE_BYTES,
    Blob,
    BlobInfo,
    Page,
    SearchQuery,
    Version,
)
from fhirpub.storage.erasure.tombstones import is_erased
from fhirpub.storage.id_search import FEW, lookup_by_ids
from fhirpub.storage.sqlite import schema as sql
from fhirpub.storage.sqlite.audit_trail import SqliteAudit
from fhirpub.storage.sqlite.blobs import (
    ATTACHED,
    BLOBS,
    attached_blobs,
    chunks_of,
    pieces_of,
    put_back,
    read_chunk,
    sweep,
)
from fhirpub.storage.sqlite.clients.activity import SqliteClientActivity
from fhirpub.storage.sqlite.credentials.store import SqliteCredentials
from fhirpub.storage.sqlite.database import Database, as_unavailable, transaction
from fhirpub.storage.sqlite.entries import index_entries
from fhirpub.storage.sqlite.erasure import SqliteErasure
from fhirpub.storage.sqlite.files import STORED_VERSION, require_use, unpacked
from fhirpub.storage.sqlite.parameters import json_list
from fhirpub.storage.sqlite.quotas import SqliteQuotas
from fhirpub.storage.sqlite.rows import (
    PIECE_BYTES,
    Addition,
    Row,
    has_bytes,
    version_of,
)
from fhirpub.storage.sqlite.search.pages import find_page, page_rows
from fhirpub.storage.sqlite.shared_database import SharedDatabase
from fhirpub.storage.sqlite.webhooks import SqliteWebhooks
from fhirpub.storage.store import Store
from fhirpub.storage.upgrades.versions import SchemaVersion

SCHEME = "sqlite:///"
_LARGEST_INTEGER = 2**63 - 1
_FEW_MEMBERS = 200
"""The rows of more take longer than five milliseconds to make."""
_PIECES_TOGETHER = 2
"""The second one waits for the writer while the first one is committed."""


def from_url(
    url: str, *, deadline_seconds: float, make: bool = True, cipher: SecretCipher | None = None
) -> SqliteStore:
    """Return the store of ``sqlite:///relative/path.db`` or ``sqlite:////absolute/path.db``.

    Raises ConfigurationError for anything else; names are taken as they stand, unescaped.
    """
    name = url.removeprefix(SCHEME)
    if not url.startswith(SCHEME) or not Path(name).name or name.endswith("/"):
        raise ConfigurationError(
            "[storage] url: must be sqlite:///relative/path.db, sqlite:////absolute/path.db "
            "or mongodb://host/database"
        )
    if set(name) & set("?#:\0"):
        raise ConfigurationError("[storage] url: the path must not contain ? # : or NUL")
    try:
        return SqliteStore(Path(name), deadline_seconds=deadline_seconds, make=make, cipher=cipher)
    except FileNotFoundError:  # to what the path is relative
        raise ConfigurationError("[storage] url: the working directory was deleted") from None


class SqliteStore(
    SqliteAudit,
    SqliteCredentials,
    SqliteClientActivity,
    SqliteErasure,
    SqliteQuotas,
    SqliteWebhooks,
    Store,
):
    """A store in one file, and the two that SQLite keeps beside it."""

    def __init__(
        self,
        path: Path,
        *,
        deadline_seconds: float,
        make: bool = True,
        clock: Clock = now_ms,
        shared: Database | None = None,
        cipher: SecretCipher | None = None,
    ) -> None:
        """Take the place of a file; a start will ``make`` it if there is none.

        ``shared`` is the file, if it is open on another event loop. Without a ``cipher``, salts
        and private keys are stored in clear.
        """
        self._path = path.absolute()
        self._make = make
        self._deadline = deadline_seconds
        self._clock = clock
        self._shared = shared
        self.cipher = SecretCipher() if cipher is None else cipher

    async def start(self) -> None:
        if self._file is None:
            with as_unavailable():
                self._file = await asyncio.to_thread(self._open_file)

    def _open_file(self) -> Database:
        if self._shared is not None:
            return SharedDatabase(self._shared)
        return Database(self._path, self._deadline, make=self._make, upgrade=self.upgrades)

    def for_other_loop(self) -> Store:
        return SqliteStore(
            self._path,
            deadline_seconds=self._deadline,
            clock=self._clock,
            shared=self._open,
            cipher=self.cipher,
        )

    async def check(self) -> None:
        # A write that is committed: a full disk is not seen by anything less.
        await self._execute(sql.PUT_PROBE, (self._clock(),))
        await self._fetch_inline(sql.PROBE, ())
        require_use(await self._fetch_inline(STORED_VERSION, ()))

    async def stop(self) -> None:
        file, self._file, self._page = self._file, None, None
        if file is not None:
            await file.close()

    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        now = self._clock()
        make = partial(Addition, tenant, version, blobs, now=now)
        is_long = len(version.members) > _FEW_MEMBERS or version.size > PIECE_BYTES
        addition = await asyncio.to_thread(make) if is_long else make()
        for blob in addition.in_pieces:
            await self._add_pieces(tenant, blob, now=now)
        added: bool = await self._open.write(addition)
        return added

    async def _add_pieces(self, tenant: str, blob: Blob, *, now: int) -> None:
        """Store the bytes of a blob, unless they are stored, in several commits."""
        if blob.sha256 in await self.blobs(tenant, [blob.sha256]):
            return
        pieces = pieces_of(tenant, blob, now=now)
        while following := [*islice(pieces, _PIECES_TOGETHER)]:
            await asyncio.gather(*map(self._open.write, following))

    async def latest(self, tenant: str, resource_id: str) -> Version | None:
        key = (resource_id, tenant)
        return await self._one_version(sql.LATEST_IF_SMALL, sql.LATEST, key)

    async def latest_public(self, tenant: str, resource_id: str) -> Version | None:
        key = (resource_id, tenant)
        return await self._one_version(sql.SHOWN_IF_SMALL, sql.SHOWN, key)

    async def version(self, tenant: str, resource_id: str, version: int) -> Version | None:
        key = (resource_id, tenant, min(version, _LARGEST_INTEGER))
        return await self._one_version(sql.EXACT_IF_SMALL, sql.EXACT, key)

    async def _one_version(self, if_small: str, always: str, key: Row) -> Version | None:
        rows = self._open.at_once(if_small, key)
        if rows is None or (rows and not has_bytes(rows[0])):
            tenant = str(key[1])
            shown = always == sql.SHOWN
            read = partial(_read_versions, statement=always, parameters=key, shown=shown)
            rows = await self._open.read_for(tenant, read)
        return version_of(rows[0]) if rows else None

    async def history(
        self, tenant: str, resource_id: str, *, below: int | None = None, limit: int = 20
    ) -> Sequence[Version]:
        below = _LARGEST_INTEGER if below is None else min(below, _LARGEST_INTEGER)
        parameters = (resource_id, tenant, below, limit)
        read = partial(_read_versions, statement=sql.HISTORY, parameters=parameters)
        rows = await self._open.read_for(tenant, read)
        return [version_of(row) for row in rows]

    async def search(self, tenant: str, query: SearchQuery) -> Page:
        async def latest(ids: Collection[str]) -> Sequence[Version | None]:
            return [await self.latest(tenant, id_) for id_ in ids]

        without = await lookup_by_ids(query, latest)
        if without is not None:
            return without

        def look(connection: sqlite3.Connection) -> Page:
            with transaction(connection, "BEGIN"):
                return find_page(connection, tenant, query)

        return await self._open.read_for(tenant, look, max_seconds=query.max_seconds)

    async def blobs(self, tenant: str, names: Collection[str]) -> Mapping[str, BlobInfo]:
        rows = await self._rows_by_name(BLOBS, tenant, names)
        found = {row[0]: BlobInfo(*row) for row in rows}
        others = [name for name in names if name not in found]
        if others:
            rows = await self._rows_by_name(ATTACHED, tenant, others)
            found |= {blob.sha256: blob.info for blob in attached_blobs(rows)}
        return found

    async def _rows_by_name(
        self, statement: str, tenant: str, names: Collection[str]
    ) -> list[Row]:
        parameters = (tenant, json_list(names))
        if len(names) <= FEW:
            return await self._fetch_inline(statement, parameters)
        return await self._fetch_for(tenant, statement, parameters)

    async def blob_pieces(
        self, tenant: str, blob: BlobInfo, part: slice
    ) -> AsyncGenerator[bytes, None]:
        if blob.data is not None:
            yield blob.data[part]
            return
        for chunk in chunks_of(part):
            read = partial(_read_chunk, tenant=tenant, sha256=blob.sha256, part=chunk)
            yield await self._open.read_for(tenant, read)

    async def sweep_blobs(self, tenant: str, *, before: int) -> int:
        work = partial(sweep, tenant=tenant, before=before)
        total, found = 0, 1
        while found:
            found, swept = await self._open.write(work)
            total += swept
        return total

    async def identity(self) -> str:
        found = await asyncio.to_thread(self._path.stat)
        return f"{found.st_dev}/{found.st_ino}"

    async def schema_version(self) -> SchemaVersion:
        ((found,),) = await self._fetch_in_thread(STORED_VERSION, ())
        return unpacked(found)

    async def count(self) -> int:
        ((count,),) = await self._fetch_in_thread(sql.COUNT, ())
        return int(count)

    async def scan(
        self, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> Sequence[tuple[str, Version]]:
        return await self._open.read(
            lambda connection: _scan(connection, after=after, limit=limit)
        )

    async def replace_search(
        self, tenant: str, resource_id: str, version: int, search: bytes
    ) -> None:
        def work(connection: sqlite3.Connection) -> None:
            key = (resource_id, tenant, version)
            for row in connection.execute(sql.EXACT, key).fetchall():
                before = version_of(row)
                if is_erased(before):  # since the values were computed
                    continue
                ((number,),) = connection.execute(
                    sql.REPLACE_SEARCH, (resource_id, version, tenant, search.decode())
                ).fetchall()
                old = [(*entry, before.updated, number) for entry in index_entries(tenant, before)]
                connection.executemany(sql.FORGET_SEARCH_VALUE, old)
                after = replace(before, search=search)
                new = [(*entry, before.updated, number) for entry in index_entries(tenant, after)]
                connection.executemany(sql.ADD_SEARCH_VALUE, new)

        await self._open.write(work)

    async def search_rules(self) -> str:
        rows = await self._fetch_inline(sql.SEARCH_RULES, ())
        return str(rows[0][0]) if rows else ""

    async def put_search_rules(self, rules: str) -> None:
        await self._execute(sql.PUT_SEARCH_RULES, (rules,))


def _read_versions(
    connection: sqlite3.Connection, *, statement: str, parameters: Row, shown: bool = False
) -> list[Row]:
    rows = page_rows(connection.execute(statement, parameters))
    return [put_back(connection, row, shown=shown) for row in rows]


def _read_chunk(connection: sqlite3.Connection, *, tenant: str, sha256: str, part: slice) -> bytes:
    with transaction(connection, "BEGIN"):  # a number that is swept may be given to another blob
        return read_chunk(connection, tenant=tenant, sha256=sha256, part=part)


def _scan(
    connection: sqlite3.Connection, *, after: tuple[str, int], limit: int
) -> list[tuple[str, Version]]:
    page: list[tuple[str, Version]] = []
    left = MAX_PAGE_BYTES
    for row in connection.execute(sql.WALK, (*after, limit)):
        rows = connection.execute(sql.MEMBERS, row[-1:]).fetchall()
        members = tuple(version_of(put_back(connection, member)) for member in rows)
        version = replace(version_of(put_back(connection, row)), members=members)
        page.append((row[2], version))
        left -= version.size
        if left <= 0:
            break
    return page
