"""The half of the embedded store that keeps webhooks: endpoints, and deliveries in their queues.

Every write is one statement or few: after each of them the writing thread has to wait until the
event loop's thread releases the interpreter.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from fhirpub.storage.sqlite.outbox import SqliteOutbox
from fhirpub.storage.sqlite.parameters import json_list, json_pairs
from fhirpub.storage.sqlite.rows import Row
from fhirpub.storage.sqlite.tables import webhooks as sql
from fhirpub.storage.sqlite.webhook_rows import (
    attempts_of,
    delivery_of,
    delivery_row,
    endpoint_of,
    endpoint_row,
    outcome_row,
    waiting_of,
)
from fhirpub.storage.webhook_contract import (
    AttemptResult,
    Delivery,
    DeliveryKey,
    DeliveryQuery,
    DeliveryQueueStore,
    DeliveryState,
    Endpoint,
    Endpoints,
    QueuedDelivery,
)

_INSERT_BATCH_SIZE = 128
_SWEEP_BATCH_SIZE = 500
"""Few, since they block every other write."""


class SqliteWebhooks(SqliteOutbox, Endpoints, DeliveryQueueStore):
    """Endpoints and deliveries in the file."""

    async def put_endpoint(self, tenant: str, endpoint: Endpoint) -> bool:
        if endpoint.tenant != tenant:
            return False
        row = endpoint_row(endpoint)
        if endpoint.revision == 1:
            return await self._execute(sql.ADD_ENDPOINT, row) > 0
        return await self._execute(sql.REPLACE_ENDPOINT, row[:-2]) > 0

    async def endpoint(self, tenant: str, endpoint_id: str) -> Endpoint | None:
        rows = await self._fetch_inline(sql.ENDPOINT_BY_ID, (endpoint_id, tenant))
        return endpoint_of(rows[0]) if rows else None

    async def endpoints(self, tenant: str) -> Sequence[Endpoint]:
        return [
            endpoint_of(row) for row in await self._fetch_for(tenant, sql.ENDPOINTS_OF, (tenant,))
        ]

    async def deliveries(self, tenant: str, query: DeliveryQuery) -> Sequence[Delivery]:
        return [
            delivery_of(row)
            for row in await self._fetch_for(tenant, *sql.list_deliveries(tenant, query))
        ]

    async def count_deliveries(self, tenant: str, endpoint_id: str) -> Mapping[DeliveryState, int]:
        return dict(await self._fetch_for(tenant, sql.COUNTS, (endpoint_id, tenant)))

    async def reopen(
        self, tenant: str, endpoint_id: str, event_ids: Collection[str], *, now: int
    ) -> int:
        parameters = (now, endpoint_id, tenant, json_list(event_ids))

        def work(connection: sqlite3.Connection) -> int:
            opened = connection.execute(sql.REOPEN, parameters).rowcount
            if opened:
                connection.execute(sql.REOPENED, (endpoint_id,))
            return opened

        opened: int = await self._open.write(work)
        return opened

    async def all_endpoints(self, *, of: Collection[str] | None = None) -> Sequence[Endpoint]:
        if of is None:
            rows = await self._fetch_in_thread(sql.ALL_ENDPOINTS, ())
        else:
            rows = await self._fetch_in_thread(sql.ENDPOINTS_OF_SOME, (json_list(of),))
        return [endpoint_of(row) for row in rows]

    async def save_health(self, endpoint_id: str, condition: bytes) -> None:
        await self._execute(sql.PUT_CONDITION, (condition, endpoint_id))

    async def copy_endpoint(self, endpoint: Endpoint, *, over: Endpoint | None) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            key = (endpoint.id, endpoint.tenant)
            kept = connection.execute(sql.ENDPOINT_BY_ID, key).fetchall()
            if [endpoint_of(row) for row in kept] != ([] if over is None else [over]):
                return False
            connection.execute(sql.COPY_ENDPOINT, endpoint_row(endpoint))
            return True

        copied: bool = await self._open.write(work)
        return copied

    async def lease(
        self, names: Collection[str], *, owner: str, now: int, until: int
    ) -> frozenset[str]:
        parameters = (owner, until, json_list(names), now)
        return frozenset(name for (name,) in await self._update_endpoint(sql.LEASE, parameters))

    async def release(self, names: Collection[str], *, owner: str) -> None:
        await self._execute(sql.RELEASE, (json_list(names), owner))

    async def last_sequences(self, endpoints: Collection[str]) -> Mapping[str, int]:
        rows = await self._fetch_in_thread(sql.ENDS, (json_list(endpoints),))
        return {endpoint: sequence for endpoint, sequence in rows if sequence is not None}

    async def append(self, deliveries: Sequence[Delivery]) -> int:
        rows = [delivery_row(delivery) for delivery in deliveries]

        def work(connection: sqlite3.Connection) -> int:
            added = 0
            while added < len(rows):
                part = rows[added : added + _INSERT_BATCH_SIZE]
                now = _append(connection, part)
                added += now
                if now < len(part):
                    break
            return added

        size = sum(len(delivery.body) for delivery in deliveries)
        added: int = await self._open.write(work, size=size, index_rows=len(rows))
        return added

    async def existing_deliveries(
        self, endpoint_id: str, event_ids: Collection[str]
    ) -> frozenset[str]:
        rows = await self._fetch_in_thread(sql.TOLD, (endpoint_id, json_list(event_ids)))
        return frozenset(event_id for (event_id,) in rows)

    async def waiting(
        self, endpoint_id: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[QueuedDelivery]:
        parameters = {"endpoint": endpoint_id, "after": after, "limit": limit}
        return [waiting_of(row) for row in await self._fetch_in_thread(sql.WAITING, parameters)]

    async def begin(
        self, keys: Collection[DeliveryKey], *, now: int, until: int
    ) -> Sequence[Delivery]:
        rows = await self._update_endpoint(sql.BEGIN, (now, until, json_pairs(keys)))
        return [delivery_of(row) for row in rows]

    async def finish(self, outcomes: Sequence[AttemptResult]) -> Sequence[bool]:
        rows = json.dumps([outcome_row(outcome) for outcome in outcomes])
        if await self._execute(sql.FINISH, (rows,), index_rows=len(outcomes)) == len(outcomes):
            return [True] * len(outcomes)
        found = await self._fetch_in_thread(
            sql.LOGS, (json_pairs(outcome.key for outcome in outcomes),)
        )
        logs = {(endpoint, event_id): attempts_of(log) for endpoint, event_id, log in found}
        return [outcome.attempt in logs.get(outcome.key, ()) for outcome in outcomes]

    async def sweep_deliveries(self, *, delivered: int, dead: int, open_: int) -> int:
        return (
            await self._sweep(sql.LONG_ENDED, ("delivered", delivered))
            + await self._sweep(sql.LONG_ENDED, ("dead", dead))
            + await self._sweep(sql.LEFT_OPEN, (open_,))
        )

    async def _sweep(self, condition: str, parameters: Row) -> int:
        # Found by a reader connection: the single writer only deletes.
        swept = 0
        while found := await self._fetch_in_thread(
            sql.candidates(condition), (*parameters, _SWEEP_BATCH_SIZE)
        ):
            numbers = json.dumps([number for (number,) in found])
            swept += await self._execute(sql.sweep(condition), (numbers, *parameters))
        return swept

    async def scan_deliveries(
        self, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> Sequence[Delivery]:
        rows = await self._fetch_in_thread(sql.WALK_DELIVERIES, (*after, limit))
        return [delivery_of(row) for row in rows]

    async def put_deliveries(self, deliveries: Collection[Delivery]) -> None:
        rows = [delivery_row(delivery) for delivery in deliveries]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(sql.PUT_DELIVERY, rows)

        size = sum(len(delivery.body) for delivery in deliveries)
        await self._open.write(work, size=size, index_rows=len(rows))

    async def _update_endpoint(self, statement: str, parameters: Row) -> list[Row]:
        """Return the rows that a statement has changed, as they are now."""

        def work(connection: sqlite3.Connection) -> list[Row]:
            return connection.execute(statement, parameters).fetchall()

        rows: list[Row] = await self._open.write(work)
        return rows


def _append(connection: sqlite3.Connection, rows: Sequence[Row]) -> int:
    """Insert rows up to the first that is taken; return how many."""
    try:
        connection.execute(sql.add_deliveries(len(rows)), list(chain.from_iterable(rows)))
    except sqlite3.IntegrityError:  # the statement is undone, the transaction goes on
        for added, row in enumerate(rows):
            if not connection.execute(sql.ADD_DELIVERY_IF_FREE, row).rowcount:
                return added
    return len(rows)
