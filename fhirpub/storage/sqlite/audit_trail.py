"""The part of the embedded store that keeps the audit trail."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter

import orjson

from fhirpub.storage.audit_contract import (
    HASH_BYTES,
    MAX_BLOCK_SPAN_MS,
    MAX_UNSEALED_BYTES,
    AuditBlock,
    AuditedVersion,
    AuditQuery,
    AuditStore,
    SealedBlock,
    UnsealedAudit,
    UnsealedEntry,
)
from fhirpub.storage.erasure.tombstones import fhir_type
from fhirpub.storage.page_size import up_to_size
from fhirpub.storage.sqlite.database import DatabaseMixin, transaction
from fhirpub.storage.sqlite.rows import Row
from fhirpub.storage.sqlite.tables import audit as sql

_MAX_ROWS_PASSED = 10_000
"""The maximum number of versions without a record that one read passes over."""
_LARGEST_INTEGER = 2**63 - 1
_MAX_KEYS, _FEW_KEYS = 400, 50
"""So many keys are in one commit, which takes the writer some 4 ms, or in that of the blocks."""
_Keys = Sequence[tuple[int, int, int]]
"""The first time and the number of a block, and one of its keys."""
_NO_KEYS: _Keys = ()
_WriteKeys = Callable[..., bool]


@dataclass(frozen=True, slots=True)
class _Place:
    """The mark, where it moves to, and the last row of what was handed in."""

    mark: int
    to: int
    pending: int


class SqliteAudit(DatabaseMixin, AuditStore):
    """The audit trail in the file."""

    async def add_audit_records(self, records: Mapping[str, bytes]) -> None:
        rows = list(records.items())

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(sql.ADD_PENDING, rows)

        if rows:
            await self._open.write(work, size=sum(map(len, records.values())))

    async def unsealed_audit(self, *, limit: int, tenants: Collection[str] = ()) -> UnsealedAudit:
        return await self._open.read(partial(_read_unsealed, limit=limit, others=tenants))

    async def seal_audit(self, blocks: Sequence[SealedBlock], unsealed: UnsealedAudit) -> bool:
        place = unsealed.place
        if not isinstance(place, _Place):
            raise TypeError("not of this store")

        def work(connection: sqlite3.Connection, *, keys: _Keys, is_last: bool) -> bool:
            # The transaction has other writes as well: nothing is added before all is checked.
            # Each record is in a block, so that free numbers show that none was sealed since.
            ((mark, _end),) = connection.execute(sql.MARK_AND_END)
            if mark != place.mark or not _are_next(connection, blocks):
                return False
            _change_keys(connection, sql.PUT_VALUES, keys)
            if is_last:
                connection.execute(sql.MOVE_MARK, (place.to,))
                _put(connection, blocks)
                connection.execute(sql.REMOVE_PENDING, (place.pending,))
            return True

        return await self._write_with_keys(work, blocks)

    async def put_audit_block(self, sealed: SealedBlock) -> None:
        def work(connection: sqlite3.Connection, *, keys: _Keys, is_last: bool) -> bool:
            _change_keys(connection, sql.PUT_VALUES, keys)
            if is_last:
                _put(connection, [sealed])
            return True

        await self._write_with_keys(work, [sealed])

    async def _write_with_keys(self, work: _WriteKeys, blocks: Sequence[SealedBlock]) -> bool:
        """Write the keys of blocks, some in each commit, and the blocks in a last one.

        A key without its block finds nothing. So a crash in between hides no block.
        """
        portions, last = _portions(blocks), _NO_KEYS
        if sum(map(len, portions)) <= _FEW_KEYS:
            portions, last = [], [key for keys in portions for key in keys]
        for keys in portions:
            part = partial(work, keys=keys, is_last=False)
            if not await self._open.write(part, index_rows=len(keys)):
                return False
        part = partial(work, keys=last, is_last=True)
        is_written: bool = await self._open.write(part, size=_size(blocks), index_rows=len(last))
        return is_written

    async def audit_end(self, tenant: str) -> tuple[int, bytes]:
        return await self._open.read(partial(_end_of, tenant=tenant))

    async def audit_chain(
        self, tenant: str, *, after: int = 0, limit: int = 100
    ) -> Sequence[AuditBlock]:
        parameters = (tenant, min(after, _LARGEST_INTEGER), limit)

        def read(connection: sqlite3.Connection) -> list[AuditBlock]:
            rows = connection.execute(sql.CHAIN, parameters)
            return [*up_to_size(map(_block_of, rows), _records_size)]

        return await self._open.read(read)

    async def find_audit_blocks(self, tenant: str, query: AuditQuery) -> Sequence[AuditBlock]:
        parameters = _parameters_of(tenant, query)
        statement = sql.find_blocks(len(query.keys))

        def read(connection: sqlite3.Connection) -> list[AuditBlock]:
            rows = connection.execute(statement, parameters)
            return [*up_to_size(map(_block_of, rows), _records_size, most=query.size)]

        return await self._open.read_for(tenant, read)

    async def audited_tenants(self) -> Sequence[str]:
        return [tenant for (tenant,) in await self._fetch_in_thread(sql.TENANTS, ())]

    async def delete_audit_blocks(self, tenant: str, blocks: Sequence[SealedBlock]) -> None:
        for keys in _portions(blocks):
            part = partial(_change_keys, statement=sql.DELETE_VALUES, keys=keys)
            await self._open.write(part, index_rows=len(keys))
        for sealed in blocks:
            number = (tenant, sealed.block.number)
            part = partial(_delete_block, number=number)
            await self._open.write(part, size=_size([sealed]))

    async def put_audit_checkpoint(self, tenant: str, number: int, checkpoint: str) -> None:
        await self._execute(sql.PUT_CHECKPOINT, (tenant, number, checkpoint))

    async def audit_checkpoints(
        self, tenant: str, *, after: int = 0, limit: int = 1_000
    ) -> Sequence[tuple[int, str]]:
        return await self._fetch_in_thread(sql.CHECKPOINTS, (tenant, after, limit))


def _read_unsealed(
    connection: sqlite3.Connection, *, limit: int, others: Collection[str]
) -> UnsealedAudit:
    with transaction(connection, "BEGIN"):
        ((mark, end),) = connection.execute(sql.MARK_AND_END)
        to = min(end, mark + _MAX_ROWS_PASSED)
        found = connection.execute(sql.VERSIONS, (mark, to, limit))
        rows = [*up_to_size(found, _size_of_last, most=MAX_UNSEALED_BYTES)]
        found = connection.execute(sql.PENDING, (limit,))
        pending = [*up_to_size(found, _size_of_last, most=MAX_UNSEALED_BYTES)]
        ((count,),) = connection.execute(sql.COUNT_PENDING, (limit,))
        tenants = {row[1] for row in (*rows, *pending)} | {*others}
        ends = {tenant: _end_of(connection, tenant) for tenant in tenants}
    if len(rows) == limit or sum(map(_size_of_last, rows)) >= MAX_UNSEALED_BYTES:
        to = rows[-1][0]
    return UnsealedAudit(
        entries=[*map(_version_entry, rows), *map(_pending_entry, pending)],
        ends=ends,
        place=_Place(mark, to, pending[-1][0] if pending else 0),
        is_complete=to == end and len(pending) == count < limit,
    )


def _version_entry(row: Row) -> UnsealedEntry:
    number, tenant, type_, id_, version, updated, audit = row
    written = AuditedVersion(type=fhir_type(type_), id=id_, version=version, updated=updated)
    return UnsealedEntry(tenant=tenant, records=audit, version=written, source=number)


def _pending_entry(row: Row) -> UnsealedEntry:
    number, tenant, records = row
    return UnsealedEntry(tenant=tenant, records=records, version=None, source=number)


def _size_of_last(row: Row) -> int:
    return len(row[-1])


def _end_of(connection: sqlite3.Connection, tenant: str) -> tuple[int, bytes]:
    """Return the number of the last block of a tenant, and the hash at its end."""
    for number, hashes in connection.execute(sql.END, (tenant,)):
        return number, hashes[-HASH_BYTES:]
    return 0, b""


def _are_next(connection: sqlite3.Connection, blocks: Iterable[SealedBlock]) -> bool:
    """Return whether the blocks continue the chains of their tenants."""
    first: dict[str, int] = {}
    for sealed in blocks:
        first.setdefault(sealed.block.tenant, sealed.block.number)
    for tenant, number in first.items():
        ((last,),) = connection.execute(sql.LAST_NUMBER, (tenant,))
        if last + 1 != number:
            return False
    return True


def _parameters_of(tenant: str, query: AuditQuery) -> dict[str, str | int]:
    """Return the parameters of the statement that finds blocks."""
    since = 0 if query.since is None else query.since
    before = query.before or (_LARGEST_INTEGER, _LARGEST_INTEGER)
    parameters: dict[str, str | int] = {
        "tenant": tenant,
        "since": since,
        "since_first": since - MAX_BLOCK_SPAN_MS,
        "until": _LARGEST_INTEGER if query.until is None else query.until,
        "before_first": before[0],
        "before_number": before[1],
        "limit": query.limit,
    }
    return parameters | {f"key{place}": key for place, key in enumerate(query.keys)}


def _put(connection: sqlite3.Connection, blocks: Sequence[SealedBlock]) -> None:
    rows = [
        (b.tenant, b.number, b.first, b.last, b.records, b.hashes)
        for b in (sealed.block for sealed in blocks)
    ]
    connection.executemany(sql.PUT_BLOCK, rows)


def _delete_block(connection: sqlite3.Connection, *, number: tuple[str, int]) -> None:
    connection.execute(sql.DELETE_BLOCK, number)
    connection.execute(sql.DELETE_CHECKPOINTS, number)


def _portions(blocks: Iterable[SealedBlock]) -> list[_Keys]:
    """Return the keys of blocks, as many together as one commit may have."""
    keys = [
        (sealed.block.first, sealed.block.number, key)
        for sealed in blocks
        for key in sorted(sealed.keys)
    ]
    return [keys[start : start + _MAX_KEYS] for start in range(0, len(keys), _MAX_KEYS)]


def _change_keys(connection: sqlite3.Connection, statement: str, keys: _Keys) -> None:
    """Put or delete keys, with one statement for those of a block."""
    for (first, number), some in groupby(keys, key=itemgetter(0, 1)):
        values = orjson.dumps([key for _first, _number, key in some]).decode()
        connection.execute(statement, (first, number, values))


def _size(blocks: Iterable[SealedBlock]) -> int:
    return sum(len(sealed.block.records) + len(sealed.block.hashes) for sealed in blocks)


def _records_size(block: AuditBlock) -> int:
    return len(block.records)


def _block_of(row: Row) -> AuditBlock:
    tenant, number, first, last, records, hashes = row
    return AuditBlock(
        tenant=tenant, number=number, first=first, last=last, records=records, hashes=hashes
    )
