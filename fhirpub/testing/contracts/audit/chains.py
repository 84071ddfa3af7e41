"""Tests of the chains of the audit trail: read in order, found by keys and times, deleted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fhirpub.storage.audit_contract import (
    HASH_BYTES,
    MAX_BLOCK_SPAN_MS,
    AuditBlock,
    AuditQuery,
    SealedBlock,
)
from fhirpub.storage.store import Store
from fhirpub.testing.samples import new_id

_RECORD = b'{"action":"read"}\n'


def a_block(tenant: str, number: int = 1, keys: Sequence[int] = (), **times: int) -> SealedBlock:
    """Return a block of one record, whose hashes are its number.

    Args:
        tenant: The id of its tenant.
        number: Its number.
        keys: The keys that it is found by.
        **times: Its ``first`` and ``last`` time; by default its number, and ``first``.

    Returns:
        The block.
    """
    first = times.get("first", number)
    block = AuditBlock(
        tenant=tenant,
        number=number,
        first=first,
        last=times.get("last", first),
        records=_RECORD,
        hashes=number.to_bytes(HASH_BYTES, "big"),
    )
    return SealedBlock(block=block, keys=frozenset(keys))


class AuditChainContract:
    """A chain belongs to its tenant, and its blocks are found by what their records name."""

    async def test_a_chain_is_read_in_pages(self, store: Store, reader: Store) -> None:
        tenant = new_id()
        for number in range(1, 6):
            await store.put_audit_block(a_block(tenant, number))

        first = await reader.audit_chain(tenant, limit=3)
        rest = await reader.audit_chain(tenant, after=3)

        assert [*first, *rest] == [a_block(tenant, number).block for number in range(1, 6)]
        assert await reader.audit_chain(tenant, after=5) == []

    async def test_the_end_of_a_chain_is_that_of_its_last_block(
        self, store: Store, reader: Store
    ) -> None:
        tenant = new_id()
        assert await reader.audit_end(tenant) == (0, b"")
        for number in range(1, 12):
            await store.put_audit_block(a_block(tenant, number))

        assert await reader.audit_end(tenant) == (11, (11).to_bytes(HASH_BYTES, "big"))

    async def test_a_chain_belongs_to_its_tenant(self, store: Store) -> None:
        tenant, other = new_id(), new_id()
        await store.put_audit_block(a_block(tenant, keys=[7]))

        assert await store.audit_chain(other) == []
        assert await store.find_audit_blocks(other, AuditQuery(keys=(7,))) == []
        assert await store.find_audit_blocks(other, AuditQuery()) == []
        assert other not in await store.audited_tenants()

    async def test_a_block_that_is_there_stays_as_it_is(self, store: Store) -> None:
        tenant = new_id()
        await store.put_audit_block(a_block(tenant, first=1))
        await store.put_audit_block(a_block(tenant, first=2))

        (block,) = await store.audit_chain(tenant)

        assert block.first == 1

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            (AuditQuery(), [3, 2, 1]),
            (AuditQuery(keys=(5,)), [3, 1]),
            (AuditQuery(keys=(5, -6)), [3]),
            (AuditQuery(keys=(-6, 5)), [3]),
            (AuditQuery(keys=(9,)), []),
            (AuditQuery(since=2_001), [3, 2]),
            (AuditQuery(since=2_501), [3]),
            (AuditQuery(until=2_000), [2, 1]),
            (AuditQuery(until=1_999, since=1_000), [1]),
            (AuditQuery(keys=(5,), since=1_001), [3]),
            (AuditQuery(limit=2), [3, 2]),
            (AuditQuery(size=1), [3]),
            (AuditQuery(size=len(_RECORD) + 1), [3, 2]),
            (AuditQuery(keys=(5,), size=1), [3]),
            (AuditQuery(before=(3_000, 3)), [2, 1]),
            (AuditQuery(before=(3_000, 4)), [3, 2, 1]),
            (AuditQuery(keys=(5,), before=(3_000, 3), until=2_500), [1]),
        ],
    )
    async def test_blocks_are_found_by_keys_and_times(
        self, store: Store, query: AuditQuery, found: list[int]
    ) -> None:
        tenant = new_id()
        await store.put_audit_block(a_block(tenant, 1, [5], first=1_000))
        await store.put_audit_block(a_block(tenant, 2, [6], first=2_000, last=2_500))
        await store.put_audit_block(a_block(tenant, 3, [5, -6, 2**63 - 1], first=3_000))

        blocks = await store.find_audit_blocks(tenant, query)

        assert [block.number for block in blocks] == found

    async def test_a_long_block_is_found_by_the_time_of_its_last_record(
        self, store: Store
    ) -> None:
        tenant, last = new_id(), 10 * MAX_BLOCK_SPAN_MS
        await store.put_audit_block(a_block(tenant, first=last - MAX_BLOCK_SPAN_MS, last=last))

        (block,) = await store.find_audit_blocks(tenant, AuditQuery(since=last))

        assert block.number == 1

    async def test_deleted_blocks_are_not_found(self, store: Store, reader: Store) -> None:
        tenant = new_id()
        blocks = [a_block(tenant, number, [5]) for number in range(1, 4)]
        for block in blocks:
            await store.put_audit_block(block)

        for number, checkpoint in enumerate(("one", "two", "three"), 1):
            await store.put_audit_checkpoint(tenant, number, checkpoint)

        await store.delete_audit_blocks(tenant, blocks[:2])

        assert [block.number for block in await reader.audit_chain(tenant)] == [3]
        assert list(await reader.audit_checkpoints(tenant)) == [(2, "two"), (3, "three")]
        assert await reader.find_audit_blocks(tenant, AuditQuery(keys=(5,))) == [blocks[2].block]

    async def test_checkpoints_are_read_in_the_order_of_their_blocks(
        self, store: Store, reader: Store
    ) -> None:
        tenant = new_id()
        await store.put_audit_checkpoint(tenant, 2, "other")
        await store.put_audit_checkpoint(tenant, 10, "ten")
        await store.put_audit_checkpoint(tenant, 2, "two")

        assert list(await reader.audit_checkpoints(tenant)) == [(2, "two"), (10, "ten")]
        assert list(await reader.audit_checkpoints(tenant, after=2)) == [(10, "ten")]
        assert list(await reader.audit_checkpoints(tenant, limit=1)) == [(2, "two")]
        assert list(await reader.audit_checkpoints(new_id())) == []
