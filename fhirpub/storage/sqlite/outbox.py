"""The part of the embedded store that knows which versions are not published yet (ADR 11).

Every step of the mark leaves it and the exceptions right, and is stored only if no other process
has moved the mark in between. What stands behind the mark is read without the writer: versions
never change, so that what was read is still right when the step is stored.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fhirpub.storage.erasure.tombstones import fhir_type
from fhirpub.storage.sqlite.database import DatabaseMixin, transaction
from fhirpub.storage.sqlite.parameters import json_pairs
from fhirpub.storage.sqlite.rows import Row
from fhirpub.storage.sqlite.tables import webhooks as sql
from fhirpub.storage.webhook_contract import DeliveryQueueStore, OutboxEntry

MAX_ROWS_PASSED = 10_000
"""The maximum number of versions without events that one read passes over."""
_MAX_PASSED_FOR_EACH = 100
"""The mark is moved past pending versions if more versions without events stand among them, or
more than one read passes over: to read those again would cost more than to write an exception for
each pending one."""

_Key = tuple[str, int]
_Entries = Sequence[tuple[str, OutboxEntry]]


@dataclass(frozen=True, slots=True)
class _Step:
    """A change of the mark, and of the exceptions, which are rowids."""

    mark: int
    to: int
    added: Sequence[int] = ()
    removed: Sequence[int] = ()
    is_last: bool = True

    @classmethod
    def publishing(
        cls, numbers: Collection[int], *, mark: int, to: int, behind: Collection[int]
    ) -> _Step:
        """Return the step that publishes versions, of all with events that are ``behind``."""
        published = set(numbers)
        added = [number for number in behind if number <= to and number not in published]
        removed = [number for number in numbers if number <= mark]
        return cls(mark, to, added, removed, is_last=max(numbers, default=0) <= to)


@dataclass(frozen=True, slots=True)
class _Page:
    """The rowids of pending versions, as one read found them.

    ``behind`` has all that are behind the mark, up to ``to``.
    """

    mark: int
    to: int
    numbers: Mapping[_Key, int]
    behind: Sequence[int]
    is_complete: bool

    @property
    def is_sparse(self) -> bool:
        """Whether the next read should not pass over all that this one has passed over."""
        passed = self.to - self.mark - len(self.behind)
        return not self.is_complete or passed > _MAX_PASSED_FOR_EACH * (len(self.behind) + 1)

    def step_for(self, keys: Collection[_Key]) -> _Step | None:
        """Return the step that publishes versions, None if some of them are not of this page."""
        if not self.numbers.keys() >= set(keys):
            return None
        numbers = [self.numbers[key] for key in keys]
        to = max(self.mark, *numbers)
        return _Step.publishing(numbers, mark=self.mark, to=to, behind=self.behind)


class SqliteOutbox(DatabaseMixin, DeliveryQueueStore):
    """The outbox in the file."""

    _page: _Page | None = None
    """The last one. Its versions are published next, and that step is known without a read."""

    async def pending_outbox(self, *, limit: int) -> Sequence[tuple[str, OutboxEntry]]:
        while True:
            page, entries = await self._open.read(partial(read_page, limit=limit))
            past = _Step(page.mark, page.to, added=page.behind)
            if page.is_sparse and await self._take(past):
                page = replace(page, mark=page.to, behind=())
            self._page = page
            if page.is_complete:
                return entries

    async def mark_published(self, keys: Collection[tuple[str, int]]) -> None:
        step = self._page.step_for(keys) if self._page and keys else None
        if not keys or (step and await self._take(step)):
            return
        pairs, is_last = json_pairs(keys), False
        while not is_last:
            step = await self._open.read(partial(_read_step, pairs=pairs))
            is_last = await self._take(step) and step.is_last

    async def outbox_contains(
        self, keys: Collection[tuple[str, int]]
    ) -> frozenset[tuple[str, int]]:
        return frozenset(await self._fetch_in_thread(sql.PENDING_OF, (json_pairs(keys),)))

    async def _take(self, step: _Step) -> bool:
        """Store a step; return False if the mark is no longer where the step begins."""
        if step.to == step.mark and not step.removed:
            return True

        def work(connection: sqlite3.Connection) -> bool:
            if step.to > step.mark:
                if not connection.execute(sql.MOVE_MARK, (step.to, step.mark)).rowcount:
                    return False
                if step.added:
                    connection.execute(sql.ADD_EXCEPTIONS, (json.dumps(step.added),))
            if step.removed:
                connection.execute(sql.REMOVE_EXCEPTIONS, (json.dumps(step.removed),))
            return True

        changed = 1 + len(step.added) + len(step.removed)
        taken: bool = await self._open.write(work, index_rows=changed)
        return taken


def read_page(connection: sqlite3.Connection, *, limit: int) -> tuple[_Page, _Entries]:
    """Return the first pending versions, and their entries."""
    # One transaction: what becomes an exception in between would be found twice.
    with transaction(connection, "BEGIN"):
        ((mark, end),) = connection.execute(sql.MARK_AND_END)
        exceptions = connection.execute(sql.EXCEPTIONS, (limit,)).fetchall()
        room = limit - len(exceptions)
        to = min(end, mark + MAX_ROWS_PASSED + room)
        behind = connection.execute(sql.BEHIND, (mark, to, room)).fetchall()
    is_complete = to == end
    if len(behind) == room:
        to, is_complete = (behind[-1][0] if behind else mark), True
    rows = [*exceptions, *behind]
    numbers = {(row[2], row[3]): row[0] for row in rows}
    page = _Page(mark, to, numbers, [row[0] for row in behind], is_complete)
    return page, [_entry_of(row) for row in rows]


def _entry_of(row: Row) -> tuple[str, OutboxEntry]:
    _number, tenant, id_, version, type_, updated, events = row
    entry = OutboxEntry(
        id=id_, version=version, type=fhir_type(type_), updated=updated, events=events
    )
    return tenant, entry


def _read_step(connection: sqlite3.Connection, *, pairs: str) -> _Step:
    """Return the step that publishes versions; the first one, if the mark has far to go."""
    with transaction(connection, "BEGIN"):
        ((mark, _end),) = connection.execute(sql.MARK_AND_END)
        numbers = [number for (number,) in connection.execute(sql.NUMBERS_OF, (pairs,))]
        to = max(mark, min(max(numbers, default=0), mark + MAX_ROWS_PASSED))
        behind = [number for (number,) in connection.execute(sql.NUMBERS_BEHIND, (mark, to))]
    return _Step.publishing(numbers, mark=mark, to=to, behind=behind)
