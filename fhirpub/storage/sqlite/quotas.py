"""The part of the embedded store that keeps quotas and counts stored bytes."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence

import orjson

from fhirpub.storage.quota_contract import QuotaCount, QuotaOverride, QuotaStore, QuotaUse
from fhirpub.storage.sqlite.database import DatabaseMixin
from fhirpub.storage.sqlite.parameters import json_list
from fhirpub.storage.sqlite.tables import quotas as sql


class SqliteQuotas(DatabaseMixin, QuotaStore):
    """Quotas in the file. Its triggers count stored bytes."""

    async def put_quota_overrides(self, overrides: Collection[QuotaOverride]) -> None:
        put = [(o.owner, o.quota, o.limit) for o in overrides if o.limit is not None]
        removed = [(o.owner, o.quota) for o in overrides if o.limit is None]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(sql.PUT_OVERRIDE, put)
            connection.executemany(sql.DELETE_OVERRIDE, removed)

        await self._open.write(work)

    async def quota_overrides(self) -> Sequence[QuotaOverride]:
        return [QuotaOverride(*row) for row in await self._fetch_in_thread(sql.OVERRIDES, ())]

    async def put_quota_counts(self, process: str, counts: Collection[QuotaCount]) -> None:
        rows = [(c.owner, c.quota, c.period, c.until, c.used) for c in counts]
        await self._execute(sql.PUT_COUNTS, (process, orjson.dumps(rows).decode()))

    async def quota_counts(
        self, owners: Collection[str], *, now: int, besides: str = ""
    ) -> Mapping[QuotaUse, int]:
        rows = await self._fetch_in_thread(sql.COUNTS, (json_list(owners), now, besides))
        return {QuotaUse(*key): used for *key, used in rows}

    async def sweep_quota_counts(self, *, before: int) -> int:
        return await self._execute(sql.SWEEP_COUNTS, (before,))

    async def stored_bytes(self, tenants: Collection[str]) -> Mapping[str, int]:
        return dict(await self._fetch_in_thread(sql.STORED_BYTES, (json_list(tenants),)))
