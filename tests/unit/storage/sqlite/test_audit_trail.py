"""Which blocks a file finds, what a read of unsealed records covers, and what a deletion takes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fhirpub.storage.audit_contract import AuditQuery, SealedBlock
from fhirpub.storage.sqlite import audit_trail
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.contracts.audit.chains import a_block
from fhirpub.testing.contracts.audit.sealing import blocks_of
from fhirpub.testing.samples import LAB, OTHER, a_version

RECORD = b'{"action":"register"}'


async def put(store: SqliteStore, *blocks: SealedBlock) -> Sequence[SealedBlock]:
    for block in blocks:
        await store.put_audit_block(block)
    return blocks


async def found(store: SqliteStore, *keys: int, **given: int) -> list[int]:
    """Return the numbers of the blocks of the laboratory that a query finds."""
    query = AuditQuery(keys=keys, **given)  # type: ignore[arg-type]
    return [one.number for one in await store.find_audit_blocks(LAB, query)]


async def test_all_keys_of_deleted_blocks_are_deleted(store: SqliteStore) -> None:
    blocks = await put(store, *(a_block(LAB, number, keys=[number, 9]) for number in (1, 2, 3)))

    await store.delete_audit_blocks(LAB, blocks[:2])

    rows = await store._fetch_in_thread("SELECT number, value FROM audit_value ORDER BY 1, 2", ())
    assert rows == [(3, 3), (3, 9)]
    assert await found(store, 9) == [3]


async def test_checkpoints_below_a_deleted_block_go_and_its_own_stays(store: SqliteStore) -> None:
    blocks = await put(store, *(a_block(LAB, number) for number in (1, 2, 3)))
    for number in (1, 2, 3):
        await store.put_audit_checkpoint(LAB, number, f"c{number}")
        await store.put_audit_checkpoint(OTHER, number, f"o{number}")

    await store.delete_audit_blocks(LAB, blocks[:2])

    assert [*await store.audit_checkpoints(LAB)] == [(2, "c2"), (3, "c3")]
    assert len(await store.audit_checkpoints(OTHER)) == 3


async def test_the_ends_of_chains_are_read_that_are_asked_for_beside_those_of_entries(
    store: SqliteStore,
) -> None:
    (theirs,) = await put(store, a_block(OTHER, 1))
    await store.add(LAB, a_version(audit=RECORD))

    unsealed = await store.unsealed_audit(limit=9, tenants=[OTHER])

    assert unsealed.ends == {LAB: (0, b""), OTHER: (1, theirs.block.hashes)}


async def test_the_end_of_a_chain_is_read_of_which_only_records_were_handed_in(
    store: SqliteStore,
) -> None:
    (ours,) = await put(store, a_block(LAB, 1))
    await store.add_audit_records({LAB: RECORD + b"\n"})

    unsealed = await store.unsealed_audit(limit=9)

    assert unsealed.ends == {LAB: (1, ours.block.hashes)}


@pytest.mark.parametrize("size", [1, len(RECORD), len(RECORD) + 1, 2 * len(RECORD)])
async def test_records_of_writes_that_one_read_has_no_room_for_are_sealed_after_it(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(audit_trail, "MAX_UNSEALED_BYTES", size)
    for _ in range(5):
        await store.add(LAB, a_version(audit=RECORD))

    sealed = 0
    for _ in range(9):
        unsealed = await store.unsealed_audit(limit=9)
        sealed += len(unsealed.entries)
        assert await store.seal_audit(blocks_of(unsealed), unsealed)
        if unsealed.is_complete:
            break

    assert sealed == 5


async def test_several_blocks_of_a_tenant_are_sealed_together_if_the_first_is_next(
    store: SqliteStore,
) -> None:
    blocks = [a_block(LAB, number) for number in (1, 2, 3)]
    unsealed = await store.unsealed_audit(limit=9)

    assert not await store.seal_audit(blocks[1:], unsealed)
    assert await store.seal_audit(blocks[:2], unsealed)
    assert not await store.seal_audit(blocks[1:], unsealed)
    assert await store.seal_audit(blocks[2:], unsealed)

    assert [one.number for one in await store.audit_chain(LAB)] == [1, 2, 3]


@pytest.mark.parametrize(("limit", "is_complete"), [(2, False), (3, False), (4, True)])
async def test_a_read_that_is_full_of_what_was_handed_in_may_have_left_some(
    store: SqliteStore, limit: int, *, is_complete: bool
) -> None:
    for _ in range(3):
        await store.add_audit_records({LAB: RECORD + b"\n"})

    assert (await store.unsealed_audit(limit=limit)).is_complete is is_complete


@pytest.mark.parametrize(("since", "numbers"), [(4_999, [1]), (5_000, [1]), (5_001, [])])
async def test_a_block_is_found_by_the_time_of_its_last_record(
    store: SqliteStore, since: int, numbers: list[int]
) -> None:
    await put(store, a_block(LAB, 1, keys=[7], first=1_000, last=5_000))

    assert await found(store, 7, since=since) == numbers
    assert await found(store, since=since) == numbers


async def test_a_block_is_read_as_it_was_put(store: SqliteStore) -> None:
    (sealed,) = await put(store, a_block(LAB, 1, keys=[7], first=1_000, last=5_000))

    assert [*await store.audit_chain(LAB)] == [sealed.block]
    assert [*await store.find_audit_blocks(LAB, AuditQuery(keys=(7,)))] == [sealed.block]


async def test_a_page_of_found_blocks_has_the_size_that_is_asked_for(store: SqliteStore) -> None:
    blocks = await put(store, *(a_block(LAB, number, keys=[7]) for number in (1, 2, 3)))
    size = len(blocks[0].block.records)

    assert await found(store, 7, size=size) == [3]
    assert await found(store, 7, size=size + 1) == [3, 2]


async def test_keys_of_two_blocks_with_one_number_are_not_those_of_one(
    store: SqliteStore,
) -> None:
    await put(store, a_block(LAB, 1, keys=[7], first=10), a_block(OTHER, 1, keys=[8], first=20))

    assert await found(store, 7) == [1]
    assert await found(store, 7, 8) == await found(store, 8, 7) == []
