"""The half of the embedded store that keeps webhooks: endpoints, and deliveries in their queues.

Every write is one statement or few: after each of them the writing thread has to wait until the
event loop's thread releases the interpreter.
"""

from __future__ import annotations

import json
import sqlite3
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from fhirpub.storage.sqlite import webhook_schema as sql
from fhirpub.storage.sqlite.database import DatabaseMixin, Row
from fhirpub.storage.sqlite.parameters import json_list, json_pairs
from fhirpub.storage.webhook_contract import (
    Attempt,
    AttemptResult,
    Delivery,
    DeliveryKey,
    DeliveryQuery,
    DeliveryQueueStore,
    DeliveryState,
    Endpoint,
    Endpoints,
    EndpointSecret,
    OutboxEntry,
    QueuedDelivery,
)

_INSERT_BATCH_SIZE = 128
_ENDPOINTS_KEPT = 16_384
_SWEEP_BATCH_SIZE = 500
"""Few, since they block every other write."""


class SqliteWebhooks(DatabaseMixin, Endpoints, DeliveryQueueStore):
    """Endpoints and deliveries in the file."""

    async def put_endpoint(self, tenant: str, endpoint: Endpoint) -> bool:
        if endpoint.tenant != tenant:
            return False
        row = _endpoint_row(endpoint)
        if endpoint.revision == 1:
            return await self._execute(sql.ADD_ENDPOINT, row) > 0
        return await self._execute(sql.REPLACE_ENDPOINT, row[:-2]) > 0

    async def endpoint(self, tenant: str, endpoint_id: str) -> Endpoint | None:
        rows = await self._fetch_inline(sql.ENDPOINT_BY_ID, (endpoint_id, tenant))
        return _endpoint(rows[0]) if rows else None

    async def endpoints(self, tenant: str) -> Sequence[Endpoint]:
        return [_endpoint(row) for row in await self._fetch_in_thread(sql.ENDPOINTS_OF, (tenant,))]

    async def deliveries(self, tenant: str, query: DeliveryQuery) -> Sequence[Delivery]:
        return [
            _delivery(row)
            for row in await self._fetch_in_thread(*sql.list_deliveries(tenant, query))
        ]

    async def count_deliveries(self, tenant: str, endpoint_id: str) -> Mapping[DeliveryState, int]:
        return dict(await self._fetch_in_thread(sql.COUNTS, (endpoint_id, tenant)))

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
        return [_endpoint(row) for row in rows]

    async def save_health(self, endpoint_id: str, condition: bytes) -> None:
        await self._execute(sql.PUT_CONDITION, (condition, endpoint_id))

    async def copy_endpoint(self, endpoint: Endpoint, *, over: Endpoint | None) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            key = (endpoint.id, endpoint.tenant)
            kept = connection.execute(sql.ENDPOINT_BY_ID, key).fetchall()
            if [_endpoint(row) for row in kept] != ([] if over is None else [over]):
                return False
            connection.execute(sql.COPY_ENDPOINT, _endpoint_row(endpoint))
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

    async def pending_outbox(self, *, limit: int) -> Sequence[tuple[str, OutboxEntry]]:
        rows = await self._fetch_in_thread(sql.UNRELAYED, (limit,))
        return [
            (
                tenant,
                OutboxEntry(id=id_, version=version, type=type_, updated=updated, events=events),
            )
            for tenant, id_, version, type_, updated, events in rows
        ]

    async def mark_published(self, keys: Collection[tuple[str, int]]) -> None:
        await self._execute(sql.RELAYED, (json_pairs(keys),))

    async def outbox_contains(
        self, keys: Collection[tuple[str, int]]
    ) -> frozenset[tuple[str, int]]:
        return frozenset(await self._fetch_in_thread(sql.UNRELAYED_OF, (json_pairs(keys),)))

    async def last_sequences(self, endpoints: Collection[str]) -> Mapping[str, int]:
        rows = await self._fetch_in_thread(sql.ENDS, (json_list(endpoints),))
        return {endpoint: sequence for endpoint, sequence in rows if sequence is not None}

    async def append(self, deliveries: Sequence[Delivery]) -> int:
        rows = [_delivery_row(delivery) for delivery in deliveries]

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
        added: int = await self._open.write(work, size=size)
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
        return [_waiting(row) for row in await self._fetch_in_thread(sql.WAITING, parameters)]

    async def begin(
        self, keys: Collection[DeliveryKey], *, now: int, until: int
    ) -> Sequence[Delivery]:
        rows = await self._update_endpoint(sql.BEGIN, (now, until, json_pairs(keys)))
        return [_delivery(row) for row in rows]

    async def finish(self, outcomes: Sequence[AttemptResult]) -> Sequence[bool]:
        rows = json.dumps([_outcome(outcome) for outcome in outcomes])
        if await self._execute(sql.FINISH, (rows,)) == len(outcomes):
            return [True] * len(outcomes)
        found = await self._fetch_in_thread(
            sql.LOGS, (json_pairs(outcome.key for outcome in outcomes),)
        )
        logs = {(endpoint, event_id): _attempts(log) for endpoint, event_id, log in found}
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
        return [_delivery(row) for row in rows]

    async def put_deliveries(self, deliveries: Collection[Delivery]) -> None:
        rows = [_delivery_row(delivery) for delivery in deliveries]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(sql.PUT_DELIVERY, rows)

        await self._open.write(work, size=sum(len(delivery.body) for delivery in deliveries))

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


def _endpoint_row(endpoint: Endpoint) -> Row:
    secrets = [[b64encode(secret.sealed).decode(), secret.expires] for secret in endpoint.secrets]
    return (
        endpoint.id,
        endpoint.tenant,
        endpoint.created,
        endpoint.state,
        endpoint.revision,
        endpoint.url,
        json.dumps(endpoint.events),
        endpoint.payload,
        endpoint.ordering,
        endpoint.description,
        endpoint.why,
        json.dumps(secrets),
        endpoint.token,
        endpoint.reopened,
        endpoint.condition,
    )


# All of them are read each second, and hardly ever one has changed.
@lru_cache(_ENDPOINTS_KEPT)
def _endpoint(row: Row) -> Endpoint:
    return Endpoint(
        id=row[0],
        tenant=row[1],
        created=row[2],
        state=row[3],
        revision=row[4],
        url=row[5],
        events=tuple(json.loads(row[6])),
        payload=row[7],
        ordering=row[8],
        description=row[9],
        why=row[10],
        secrets=tuple(EndpointSecret(b64decode(load[0]), load[1]) for load in json.loads(row[11])),
        token=row[12],
        reopened=row[13],
        condition=row[14],
    )


def _delivery_row(delivery: Delivery) -> Row:
    attempts = delivery.attempts
    return (
        delivery.endpoint,
        delivery.event_id,
        delivery.sequence,
        delivery.resource,
        delivery.state,
        delivery.due,
        delivery.number,
        attempts[-1].begun if attempts else 0,
        delivery.leased,
        delivery.tenant,
        delivery.event_type,
        delivery.created,
        delivery.ended,
        json.dumps([_attempt_row(attempt) for attempt in attempts]),
        delivery.body,
    )


def _delivery(row: Row) -> Delivery:
    return Delivery(
        endpoint=row[0],
        event_id=row[1],
        sequence=row[2],
        resource=row[3],
        state=row[4],
        due=row[5],
        number=row[6],
        leased=row[8],
        tenant=row[9],
        event_type=row[10],
        created=row[11],
        ended=row[12],
        attempts=_attempts(row[13]),
        body=row[14],
    )


def _waiting(row: Row) -> QueuedDelivery:
    return QueuedDelivery(
        endpoint=row[0],
        sequence=row[1],
        event_id=row[2],
        resource=row[3],
        created=row[4],
        due=row[5],
        number=row[6],
        leased=row[7],
    )


def _attempt_row(attempt: Attempt) -> Row:
    return (
        attempt.number,
        attempt.begun,
        attempt.ended,
        attempt.status,
        attempt.reason,
        attempt.duration,
        attempt.dialled,
        b64encode(attempt.answer).decode(),
    )


def _attempts(log: str) -> tuple[Attempt, ...]:
    return tuple(_attempt(load) for load in json.loads(log))


def _attempt(row: Sequence[Any]) -> Attempt:
    return Attempt(
        number=row[0],
        begun=row[1],
        ended=row[2],
        status=row[3],
        reason=row[4],
        duration=row[5],
        dialled=tuple(row[6]),
        answer=b64decode(row[7]),
    )


def _outcome(outcome: AttemptResult) -> Row:
    attempt = outcome.attempt
    ended = attempt.ended if outcome.state in ("delivered", "dead") else None
    row = json.dumps(_attempt_row(attempt))
    return (
        *outcome.key,
        attempt.number,
        attempt.begun,
        outcome.state,
        outcome.due,
        ended,
        row,
    )
