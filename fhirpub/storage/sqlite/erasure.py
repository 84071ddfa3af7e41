"""The part of the embedded store that erases.

The writer overwrites what it deletes (`secure_delete`), in the pages of tables and indexes and in
those that become free. `forget_erased` does so in the journal and in the unused bytes of pages.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import astuple
from functools import partial

from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.contract import (
    ErasedDeliveries,
    ErasedStep,
    Erasure,
    ErasureStore,
    Hold,
)
from fhirpub.storage.erasure.tombstones import erased_type, member_body
from fhirpub.storage.sqlite import schema
from fhirpub.storage.sqlite.blobs import sweep
from fhirpub.storage.sqlite.database import DatabaseMixin
from fhirpub.storage.sqlite.entries import index_entries
from fhirpub.storage.sqlite.parameters import json_list
from fhirpub.storage.sqlite.rows import Row, size_of, version_of
from fhirpub.storage.sqlite.tables import erasure as sql

_MEMBERS_AT_ONCE = 10
"""Few, since each has some twenty rows of indexes, and they block every other write."""
_STEP_COST = 300
"""Rows of indexes that a step changes at most, by which it takes its turn."""
_NO_EVENTS_BYTES = 2
_DELIVERIES_AT_ONCE = 50
_HOLD_FIELDS = sql.HOLD.split(", ")


class SqliteErasure(DatabaseMixin, ErasureStore):
    """Erasure in the file."""

    _passed: tuple[tuple[str, int], int] = (("", 0), 0)
    """The tombstone of the last step, and the row of the last member that was erased below it:
    without it each step would pass over all that are erased."""

    async def put_erasure(self, erasure: Erasure) -> None:
        await self._execute(sql.PUT_ERASURE, astuple(erasure))

    async def erasures(
        self,
        *,
        tenant: str | None = None,
        unfinished: bool = False,
        after: tuple[str, str] = ("", ""),
        limit: int = 100,
    ) -> Sequence[Erasure]:
        parameters = (*after, tenant, unfinished, limit)
        rows = await self._fetch_in_thread(sql.ERASURES, parameters)
        return [_erasure_of(row) for row in rows]

    async def erase_versions(self, tenant: str, tombstone: Version) -> ErasedStep:
        key = (tombstone.id, tombstone.version)
        passed = self._passed[1] if self._passed[0] == key else 0
        work = partial(_erase_step, tenant=tenant, tombstone=tombstone, passed=passed)
        step: ErasedStep
        step, passed = await self._open.write(work, index_rows=_STEP_COST)
        self._passed = (key, passed)
        return step

    async def erase_documents(self, tenant: str, names: Collection[str]) -> int:
        work = partial(sweep, tenant=tenant, before=sql.SWEPT_BEFORE)
        while (await self._open.write(work))[0]:
            pass
        rows = await self._fetch_in_thread(sql.STILL_STORED, (tenant, json_list(names)))
        return len({*names} - {name for (name,) in rows})

    async def shared_documents(
        self, tenant: str, names: Collection[str], *, besides: Collection[str]
    ) -> frozenset[str]:
        parameters = (tenant, json_list(names), json_list(besides))
        return frozenset(name for (name,) in await self._fetch_in_thread(sql.SHARED, parameters))

    async def erase_deliveries(
        self, tenant: str, events: str, change: Callable[[bytes], bytes]
    ) -> ErasedDeliveries:
        # The end of the range: every id that begins so is below it.
        range_ = (tenant, events, f"{events}\U0010ffff")
        changed, leased, last = 0, 0, 0
        while rows := await self._fetch_in_thread(
            sql.DELIVERIES, (*range_, last, _DELIVERIES_AT_ONCE)
        ):
            changed += await self._replace_deliveries(rows, change)
            last = rows[-1][0]
            leased = max(leased, *(row[3] for row in rows))
        return ErasedDeliveries(changed, leased)

    async def _replace_deliveries(
        self, rows: Sequence[Row], change: Callable[[bytes], bytes]
    ) -> int:
        """Replace those that have content, unless an attempt begins or ends in between.

        Returns how many have content: what was not replaced is found by the next call.
        """
        new = [(change(body), _without_answers(log), number, log) for number, body, log, _ in rows]
        changed = [
            after
            for after, (_number, body, log, _leased) in zip(new, rows, strict=True)
            if after[:2] != (body, log)
        ]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(sql.REPLACE_DELIVERY, changed)

        if changed:
            await self._open.write(work, index_rows=len(changed))
        return len(changed)

    async def put_hold(self, hold: Hold) -> None:
        await self._execute(sql.PUT_HOLD, astuple(hold))

    async def delete_hold(self, tenant: str, resource: tuple[str, str]) -> bool:
        return await self._execute(sql.DELETE_HOLD, (tenant, *resource)) > 0

    async def holds(self, tenant: str) -> Sequence[Hold]:
        rows = await self._fetch_in_thread(sql.HOLDS, (tenant,))
        return [
            Hold(
                tenant=row[0], type=row[1], id=row[2], since=row[3], operator=row[4], reason=row[5]
            )
            for row in rows
        ]

    async def forget_erased(self) -> bool:
        # Before, so that the file has all deletions; after, since the journal may still have pages
        # with what was overwritten in the file.
        return (
            await self._open.empty_journal()
            and await self._open.clear_unused_bytes()
            and await self._open.empty_journal()
        )


def _erasure_of(row: Row) -> Erasure:
    return Erasure(
        tenant=row[0],
        type=row[1],
        id=row[2],
        ordered=row[3],
        operator=row[4],
        reason=row[5],
        allows_reuse=bool(row[6]),
        version=row[7],
        finished=row[8],
    )


def _without_answers(log: str) -> str:
    """Return the log of a delivery without what receivers responded, the last of each attempt."""
    attempts = json.loads(log)
    if not any(attempt[-1] for attempt in attempts):
        return log
    return json.dumps([[*attempt[:-1], ""] for attempt in attempts])


def _erase_step(
    connection: sqlite3.Connection, *, tenant: str, tombstone: Version, passed: int
) -> tuple[ErasedStep, int]:
    """Erase one version, or else some members; return the row of the last member as well."""
    below = (tombstone.id, tenant, tombstone.version)
    body = tombstone.body
    numbers = connection.execute(sql.NEXT_VERSION, (*below, body)).fetchall()
    is_version = bool(numbers)
    if not is_version:
        body = member_body(tombstone)
        # From the first row again before it ends: versions need not be stored in their order.
        for behind in dict.fromkeys((passed, 0)):
            following = (*below, body, behind, _MEMBERS_AT_ONCE)
            if numbers := connection.execute(sql.NEXT_MEMBERS, following).fetchall():
                passed = numbers[-1][0]
                break
    size = sum(_erase_row(connection, number, tenant, body) for (number,) in numbers)
    left = len(numbers) * _husk_bytes(body)
    if numbers:
        connection.execute(sql.UNCOUNT, (size - left, tenant))
    counts = (1, 0) if is_version else (0, len(numbers))
    return ErasedStep(*counts, size), passed


def _erase_row(connection: sqlite3.Connection, number: int, tenant: str, body: bytes) -> int:
    """Erase a row and whatever leads to it; return how many bytes it had."""
    (row,) = connection.execute(schema.WHOLE_ROW, (number,)).fetchall()
    before = version_of(row)
    found_by = [(*entry, before.updated, number) for entry in index_entries(tenant, before)]
    connection.executemany(schema.FORGET_SEARCH_VALUE, found_by)
    ((is_sealed,),) = connection.execute(sql.IS_SEALED, (number,))
    husk = (number, erased_type(before.type), _husk_bytes(body), is_sealed, body)
    connection.execute(sql.ERASE, husk)
    for name in row[9].split():
        connection.execute(sql.FORGET_DOCUMENTS, (tenant, name, before.id, before.version))
        connection.execute(sql.LOOSEN, (tenant, name))
    return size_of(row)


def _husk_bytes(body: bytes) -> int:
    """Return how many bytes a row has that is erased."""
    return len(body) + _NO_EVENTS_BYTES
