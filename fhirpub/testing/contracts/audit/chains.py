"""Tests of the chains of the audit trail: read in order, found by keys and times, deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fhirpub.storage.audit_contract import (
    HASH_BYTES,
    MAX_BLOCK_SPAN_MS,
    AuditBlock,
    AuditQuery,
    SealedBlock,
)
from fhirpub.storage.contract import MAX_PAGE_BYTES
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
            (AuditQuery(before=(2_999, 9)), [2, 1]),
            (AuditQuery(before=(1_000, 1)), []),
            (AuditQuery(before=(3_000, 3), until=1_000), [1]),
            (AuditQuery(before=(2_000, 2), until=5_000), [1]),
            (AuditQuery(since=0, until=0), []),
            (AuditQuery(since=3_000), [3]),
            (AuditQuery(since=3_001), []),
            (AuditQuery(until=999), []),
            (AuditQuery(keys=(2**63 - 1, 5)), [3]),
            (AuditQuery(keys=(5,), limit=1), [3]),
            (AuditQuery(size=len(_RECORD)), [3]),
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

    async def test_blocks_of_one_moment_are_found_in_the_descending_order_of_their_numbers(
        self, store: Store
    ) -> None:
        tenant = new_id()
        for number in (1, 2, 3):
            await store.put_audit_block(a_block(tenant, number, [5], first=7))

        for keys in ((), (5,)):
            found = await store.find_audit_blocks(tenant, AuditQuery(keys=keys))
            rest = await store.find_audit_blocks(tenant, AuditQuery(keys=keys, before=(7, 2)))

            assert [block.number for block in found] == [3, 2, 1]
            assert [block.number for block in rest] == [1]

    async def test_a_chain_of_large_blocks_is_read_in_several_pages(self, store: Store) -> None:
        tenant = new_id()
        for number in (1, 2, 3):
            large = a_block(tenant, number)
            block = replace(large.block, records=b"x" * (MAX_PAGE_BYTES // 2 - 1) + b"\n")
            await store.put_audit_block(replace(large, block=block))

        found: list[AuditBlock] = []
        while page := await store.audit_chain(tenant, after=len(found)):
            assert len(page) < 3
            found += page

        assert [block.number for block in found] == [1, 2, 3]

    async def test_a_block_of_the_first_moment_is_found_without_a_time(self, store: Store) -> None:
        tenant = new_id()
        await store.put_audit_block(a_block(tenant, first=0))

        assert len(await store.find_audit_blocks(tenant, AuditQuery())) == 1
        assert len(await store.find_audit_blocks(tenant, AuditQuery(since=0))) == 1
        assert await store.find_audit_blocks(tenant, AuditQuery(since=1)) == []

    async def test_a_chain_has_nothing_behind_its_last_block(self, store: Store) -> None:
        tenant = new_id()
        await store.put_audit_block(a_block(tenant))

        for after in (1, 2**63 - 1):
            assert await store.audit_chain(tenant, after=after) == []

    async def test_tenants_with_a_chain_are_listed_in_order_the_service_first(
        self, store: Store
    ) -> None:
        tenants = sorted(new_id() for _ in range(3))
        for tenant in (*tenants[::-1], "", tenants[0]):
            number = (await store.audit_end(tenant))[0] + 1
            await store.put_audit_block(a_block(tenant, number))

        assert [*await store.audited_tenants()] == ["", *tenants]

    async def test_a_deletion_leaves_the_chains_of_other_tenants_as_they_are(
        self, store: Store
    ) -> None:
        tenant, other = new_id(), new_id()
        blocks = [a_block(tenant, number, [5]) for number in (1, 2)]
        theirs = [a_block(other, number, [6]) for number in (1, 2)]
        for sealed in (*blocks, *theirs):
            await store.put_audit_block(sealed)
            await store.put_audit_checkpoint(sealed.block.tenant, sealed.block.number, "one")

        await store.delete_audit_blocks(tenant, blocks)

        assert [block.number for block in await store.audit_chain(other)] == [1, 2]
        found = await store.find_audit_blocks(other, AuditQuery(keys=(6,)))
        assert [block.number for block in found] == [2, 1]
        assert [*await store.audit_checkpoints(other)] == [(1, "one"), (2, "one")]
        assert [*await store.audit_checkpoints(tenant)] == [(2, "one")]

    async def test_a_deletion_of_no_block_deletes_nothing(self, store: Store) -> None:
        tenant = new_id()
        await store.put_audit_block(a_block(tenant))
        await store.put_audit_checkpoint(tenant, 1, "one")

        await store.delete_audit_blocks(tenant, [])

        assert len(await store.audit_chain(tenant)) == 1
        assert [*await store.audit_checkpoints(tenant)] == [(1, "one")]

    async def test_checkpoints_of_another_chain_are_not_returned(self, store: Store) -> None:
        tenant, other = new_id(), new_id()
        await store.put_audit_checkpoint(tenant, 1, "ours")
        await store.put_audit_checkpoint(other, 1, "theirs")

        assert [*await store.audit_checkpoints(tenant)] == [(1, "ours")]
        assert [*await store.audit_checkpoints(other)] == [(1, "theirs")]

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
