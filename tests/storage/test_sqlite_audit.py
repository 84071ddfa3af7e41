"""What the embedded store reads of the audit trail at a time, and writes of it together."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.storage.audit_contract import HASH_BYTES, AuditQuery, SealedBlock, UnsealedAudit
from fhirpub.storage.contract import MAX_PAGE_BYTES
from fhirpub.storage.sqlite import audit_trail
from fhirpub.storage.sqlite.rows import cost_of
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.contracts.audit.chains import a_block
from fhirpub.testing.contracts.audit.sealing import blocks_of, read_unsealed, seal_all
from fhirpub.testing.samples import LAB, OTHER, a_version
from tests.storage.test_sqlite_audit_commits import open_store, watch

WRITE = b'{"action":"register"}'
RECORDS = b"x" * 99_999 + b"\n"
BLOCK_SIZE = len(RECORDS) + HASH_BYTES


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    store = await open_store(tmp_path / "fhirpub.db")
    yield store
    await store.stop()


async def add(store: SqliteStore, *audits: bytes) -> None:
    """Add a version for each record; an empty one brings none."""
    for audit in audits:
        await store.add(LAB, a_version(audit=audit))


def a_large_block(tenant: str, keys: Sequence[int]) -> SealedBlock:
    sealed = a_block(tenant, keys=keys)
    return replace(sealed, block=replace(sealed.block, records=RECORDS))


# What is read


@pytest.mark.parametrize(("passed", "is_complete"), [(2, False), (3, True), (4, True)])
async def test_a_read_passes_over_so_many_versions_without_a_record(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, passed: int, *, is_complete: bool
) -> None:
    monkeypatch.setattr(audit_trail, "_MAX_ROWS_PASSED", passed)
    await add(store, b"", b"", b"")

    unsealed = await read_unsealed(store)

    assert (unsealed.entries, unsealed.is_complete) == ([], is_complete)


async def test_what_stands_behind_many_versions_without_a_record_is_sealed(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_trail, "_MAX_ROWS_PASSED", 2)
    await add(store, b"", b"", b"", b"", b"", WRITE)

    (block,) = await seal_all(store)

    assert block.records == WRITE + b"\n"


async def test_versions_that_were_passed_over_are_not_read_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_trail, "_MAX_ROWS_PASSED", 2)
    await add(store, b"", b"", b"")
    await seal_all(store)
    await add(store, b"", WRITE)

    unsealed = await read_unsealed(store)

    assert [entry.records for entry in unsealed.entries] == [WRITE]
    assert unsealed.is_complete


async def test_a_page_of_writes_ends_at_the_last_of_them(store: SqliteStore) -> None:
    await add(store, b"1", b"", b"2", b"3", b"", b"4")

    first = await store.unsealed_audit(limit=3)
    assert await store.seal_audit(blocks_of(first), first)
    rest = await store.unsealed_audit(limit=3)

    assert [entry.records for entry in first.entries] == [b"1", b"2", b"3"]
    assert (first.is_complete, rest.is_complete) == (False, True)
    assert [entry.records for entry in rest.entries] == [b"4"]


async def test_an_entry_names_the_row_that_it_was_read_from(store: SqliteStore) -> None:
    await add(store, b"", WRITE)
    await store.add_audit_records({OTHER: b"r\n"})

    unsealed = await read_unsealed(store)

    assert [(entry.tenant, entry.source) for entry in unsealed.entries] == [(LAB, 2), (OTHER, 1)]


async def test_what_another_engine_has_read_is_not_sealed(store: SqliteStore) -> None:
    theirs = UnsealedAudit(entries=[], ends={}, place=None, is_complete=True)

    with pytest.raises(TypeError) as caught:
        await store.seal_audit([a_block(LAB)], theirs)

    assert str(caught.value) == "not of this store"
    assert await store.audit_chain(LAB) == []


async def test_a_page_of_a_chain_ends_with_the_block_that_fills_it(store: SqliteStore) -> None:
    half = MAX_PAGE_BYTES // 2
    for number, size in enumerate((half, half, 1), 1):
        large = a_block(LAB, number)
        block = replace(large.block, records=b"x" * (size - 1) + b"\n")
        await store.put_audit_block(replace(large, block=block))

    assert [block.number for block in await store.audit_chain(LAB)] == [1, 2]
    assert [block.number for block in await store.audit_chain(LAB, after=2)] == [3]


async def test_a_page_of_a_chain_has_a_hundred_blocks_and_one_of_checkpoints_a_thousand(
    store: SqliteStore,
) -> None:
    await asyncio.gather(*(store.put_audit_block(a_block(LAB, n)) for n in range(1, 103)))
    await asyncio.gather(
        *(store.put_audit_checkpoint(LAB, number, "signed") for number in range(1, 1_003))
    )

    assert len(await store.audit_chain(LAB)) == 100
    assert len(await store.audit_checkpoints(LAB)) == 1_000


async def test_blocks_are_searched_in_the_threads_of_their_tenant(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store._file is not None
    tenants: list[str] = []
    read_for = store._file.read_for

    async def noted(tenant: str, work: Callable[[sqlite3.Connection], object]) -> object:
        tenants.append(tenant)
        return await read_for(tenant, work)

    monkeypatch.setattr(store._file, "read_for", noted)

    await store.find_audit_blocks(LAB, AuditQuery())

    assert tenants == [LAB]


# What is written together


async def test_records_that_are_handed_in_cost_what_their_bytes_do(store: SqliteStore) -> None:
    costs = watch(store)

    await store.add_audit_records({LAB: b"1" * 40_000, OTHER: b"2" * 60_000})

    assert costs == [cost_of(100_000, 0)]


async def test_to_hand_in_nothing_writes_nothing(store: SqliteStore) -> None:
    costs = watch(store)

    await store.add_audit_records({})

    assert costs == []


def costs_of(keys: Sequence[int], last: int) -> list[int]:
    """Return the costs of commits with so many keys, and of the last one, with the block."""
    return [*(cost_of(0, count) for count in keys), cost_of(BLOCK_SIZE, last)]


@pytest.mark.parametrize(
    ("count", "commits", "last"),
    [(0, [], 0), (50, [], 50), (51, [51], 0), (400, [400], 0), (401, [400, 1], 0)],
)
async def test_many_keys_of_a_block_are_written_before_it(
    store: SqliteStore, count: int, commits: list[int], last: int
) -> None:
    costs = watch(store)

    await store.put_audit_block(a_large_block(LAB, range(count)))

    assert costs == costs_of(commits, last)
    for key in (0, count - 1):
        found = await store.find_audit_blocks(LAB, AuditQuery(keys=(key,)))
        assert len(found) == bool(count)


@pytest.mark.parametrize(("count", "commits"), [(0, []), (1, [1]), (401, [400, 1])])
async def test_the_keys_of_a_block_are_deleted_before_it(
    store: SqliteStore, count: int, commits: list[int]
) -> None:
    sealed = a_large_block(LAB, range(count))
    await store.put_audit_block(sealed)
    costs = watch(store)

    await store.delete_audit_blocks(LAB, [sealed])

    assert costs == costs_of(commits, 0)


async def test_a_seal_with_many_keys_writes_its_blocks_with_the_last_of_them(
    store: SqliteStore,
) -> None:
    unsealed = await store.unsealed_audit(limit=9, tenants=[LAB, OTHER])
    blocks = [a_large_block(LAB, range(300)), a_large_block(OTHER, range(1_000, 1_200))]
    costs = watch(store)

    assert await store.seal_audit(blocks, unsealed)

    assert costs == [cost_of(0, 400), cost_of(0, 100), cost_of(2 * BLOCK_SIZE, 0)]
    for tenant, keys in ((LAB, (0, 299)), (OTHER, (1_000, 1_199))):
        for key in keys:
            (block,) = await store.find_audit_blocks(tenant, AuditQuery(keys=(key,)))
            assert block.tenant == tenant


async def test_a_seal_that_finds_its_number_taken_stops_with_its_first_keys(
    store: SqliteStore,
) -> None:
    unsealed = await store.unsealed_audit(limit=9, tenants=[LAB])
    await store.put_audit_block(a_block(LAB, first=7))
    costs = watch(store)

    assert not await store.seal_audit([a_block(LAB, keys=range(900))], unsealed)

    assert costs == [cost_of(0, 400)]
    assert await store.find_audit_blocks(LAB, AuditQuery(keys=(0,))) == []


async def test_of_several_tenants_none_is_sealed_if_the_number_of_one_is_taken(
    store: SqliteStore,
) -> None:
    await store.add_audit_records({LAB: b"1\n", OTHER: b"2\n"})
    unsealed = await read_unsealed(store)
    await store.put_audit_block(a_block(OTHER))

    assert not await store.seal_audit(blocks_of(unsealed), unsealed)

    assert await store.audit_chain(LAB) == []
    sealed = {block.tenant: block.records for block in await seal_all(store)}
    assert sealed == {LAB: b"1\n", OTHER: b"2\n"}


async def test_a_seal_that_comes_late_moves_no_mark_back(store: SqliteStore) -> None:
    late = await store.unsealed_audit(limit=9, tenants=[OTHER])
    await add(store, WRITE)
    await seal_all(store)

    assert not await store.seal_audit([a_block(OTHER)], late)

    assert await store.audit_chain(OTHER) == []
    assert await seal_all(store) == []
