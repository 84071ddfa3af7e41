"""A seal holds the writer of the file for a short time only, and can end between its commits."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from fhirpub.audit.chain import beginning, first_wrong, next_blocks, records_of
from fhirpub.audit.record import Access, Agent, encode, key_of
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.audit_contract import AuditQuery
from fhirpub.storage.sqlite.database import Database
from fhirpub.storage.sqlite.rows import cost_of
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import LAB, OTHER, a_version

_RECORDS = 700
_MOST_MICROSECONDS = 5_000


class Watched:
    """A file whose writes are counted with their cost; one of them may fail."""

    def __init__(self, file: Database, costs: list[int], fail_at: int) -> None:
        self._file = file
        self._costs = costs
        self._fail_at = fail_at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, item: Any, *, size: int = 0, index_rows: int = 0) -> Awaitable[Any]:
        if len(self._costs) == self._fail_at:
            raise StoreUnavailable("killed")
        self._costs.append(cost_of(size, index_rows))
        return self._file.write(item, size=size, index_rows=index_rows)


async def open_store(file: Path) -> SqliteStore:
    store = SqliteStore(file, deadline_seconds=10)
    await store.start()
    return store


def watch(store: SqliteStore, fail_at: int = -1) -> list[int]:
    """Return a list to which each write adds its cost in microseconds."""
    costs: list[int] = []
    inner: Any = store._file
    store._file = Watched(inner, costs, fail_at)  # type: ignore[assignment]
    return costs


def patient(number: int) -> str:
    return f"Patient/{number}"


def a_read(number: int) -> bytes:
    access = Access(action="read", patients=(patient(number),), what=(f"Report/{number}",))
    return encode(access, Agent(client="c"), at=1_000 + number) + b"\n"


async def fill(store: SqliteStore) -> None:
    lines = b"".join(map(a_read, range(_RECORDS)))
    await store.add_audit_records({LAB: lines, OTHER: lines})
    await store.add(LAB, a_version(audit=b'{"action":"register","status":201}'))


async def seal(store: SqliteStore) -> None:
    while True:
        unsealed = await store.unsealed_audit(limit=500)
        assert await store.seal_audit(next_blocks(unsealed), unsealed)
        if unsealed.is_complete:
            return


async def records(store: SqliteStore, tenant: str) -> list[bytes]:
    """Return the records of a chain that is right."""
    end, found = beginning(tenant), []
    for block in await store.audit_chain(tenant):
        assert first_wrong(records_of(block), block.hashes, end) is None
        end = block.end
        found += records_of(block)
    return found


async def test_no_commit_of_a_seal_takes_long(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "fhirpub.db")
    await fill(store)
    costs = watch(store)

    await seal(store)

    assert sum(costs) > 4 * _MOST_MICROSECONDS
    assert max(costs) < _MOST_MICROSECONDS
    await store.stop()


async def test_no_commit_of_a_deletion_takes_long(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "fhirpub.db")
    await fill(store)
    unsealed = await store.unsealed_audit(limit=500)
    blocks = next_blocks(unsealed)
    await store.seal_audit(blocks, unsealed)
    costs = watch(store)

    await store.delete_audit_blocks(OTHER, [one for one in blocks if one.block.tenant == OTHER])

    assert max(costs) < _MOST_MICROSECONDS
    assert await store.audit_chain(OTHER) == []
    for number in range(_RECORDS):
        query = AuditQuery(keys=(key_of(OTHER, "patient", patient(number)),))
        assert await store.find_audit_blocks(OTHER, query) == []
    await store.stop()


@pytest.mark.parametrize("fail_at", range(9))
async def test_a_seal_that_ends_between_its_commits_loses_and_repeats_nothing(
    tmp_path: Path, fail_at: int
) -> None:
    file = tmp_path / "fhirpub.db"
    store = await open_store(file)
    await fill(store)
    watch(store, fail_at)
    with pytest.raises(StoreUnavailable):
        await seal(store)
    await store.stop()

    store = await open_store(file)
    await store.add_audit_records({LAB: a_read(-500), OTHER: a_read(-500)})
    await seal(store)

    for tenant, writes in ((LAB, 1), (OTHER, 0)):
        found = await records(store, tenant)
        assert len(found) == len({*found}) == _RECORDS + 1 + writes
        for number in (-500, 0, _RECORDS // 2, _RECORDS - 1):
            query = AuditQuery(keys=(key_of(tenant, "patient", patient(number)),))
            (block,) = await store.find_audit_blocks(tenant, query)
            assert a_read(number) in block.records
    await store.stop()
