"""Tests of the audit trail: records are sealed once, and blocks are found by keys and times."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fhirpub.storage.audit_contract import (
    HASH_BYTES,
    MAX_BLOCK_SPAN_MS,
    AuditBlock,
    AuditedVersion,
    AuditQuery,
    SealedBlock,
    UnsealedAudit,
)
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.records import Reopen
from fhirpub.testing.samples import LAB, a_version, new_id, new_member_id, successor

_RECORD = b'{"action":"read"}\n'
_WRITE = b'{"action":"register"}'


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


async def read_unsealed(store: Store) -> UnsealedAudit:
    """Return all that is not sealed; an engine may need more than one call to find it."""
    while True:
        unsealed = await store.unsealed_audit(limit=1_000)
        if unsealed.is_complete or unsealed.ends:
            return unsealed


async def seal_all(store: Store) -> list[AuditBlock]:
    """Seal what is not sealed, in blocks that hold it as it is, and return them."""
    sealed: list[AuditBlock] = []
    while True:
        unsealed = await store.unsealed_audit(limit=1_000)
        blocks = blocks_of(unsealed)
        assert await store.seal_audit(blocks, unsealed)
        sealed += [each.block for each in blocks]
        if unsealed.is_complete:
            return sealed


def blocks_of(unsealed: UnsealedAudit) -> list[SealedBlock]:
    """Return the next block of each tenant with its records, the versions' first."""
    blocks = []
    for tenant, (number, _hash) in unsealed.ends.items():
        entries = tuple(entry for entry in unsealed.entries if entry.tenant == tenant)
        records = b"".join(entry.records.rstrip(b"\n") + b"\n" for entry in entries)
        count = records.count(b"\n")
        block = AuditBlock(
            tenant=tenant,
            number=number + 1,
            first=number,
            last=number,
            records=records,
            hashes=number.to_bytes(HASH_BYTES, "big") * count,
        )
        blocks.append(SealedBlock(block=block, keys=frozenset(), entries=entries))
    return blocks


class AuditContract:
    """Every durable record is sealed once, and a chain has no gap and no second branch."""

    async def test_a_record_that_was_handed_in_is_sealed_once_with_all_others(
        self, store: Store, reader: Store
    ) -> None:
        tenant = new_id()
        await store.add_audit_records({tenant: _RECORD * 2})
        await reader.add_audit_records({tenant: _RECORD, "": _RECORD})

        sealed = await seal_all(reader)

        assert {block.tenant: block.records for block in sealed} == {
            tenant: _RECORD * 3,
            "": _RECORD,
        }
        assert await seal_all(store) == []

    async def test_the_record_of_a_write_is_part_of_its_commit(
        self, store: Store, reader: Store
    ) -> None:
        version = a_version(audit=_WRITE)
        await store.add(LAB, version)

        unsealed = await read_unsealed(reader)

        (entry,) = unsealed.entries
        assert (entry.tenant, entry.records) == (LAB, _WRITE)
        assert entry.version == AuditedVersion(
            type=version.type, id=version.id, version=1, updated=version.updated
        )

    async def test_the_record_of_a_write_is_sealed_once(self, store: Store) -> None:
        version = a_version(audit=_WRITE)
        await store.add(LAB, version)
        await store.add(LAB, successor(version))
        await seal_all(store)
        await store.add(LAB, a_version(audit=_WRITE))

        (block,) = await seal_all(store)

        assert block.records == _WRITE + b"\n"
        assert block.number == 2

    async def test_a_write_without_a_record_is_not_sealed(self, store: Store) -> None:
        await store.add(LAB, a_version())

        assert await seal_all(store) == []

    async def test_a_version_is_read_with_its_record_until_it_is_shown(
        self, store: Store, reader: Store
    ) -> None:
        version = a_version(audit=_WRITE)
        await store.add(LAB, version)

        whole = await reader.latest(LAB, version.id)
        shown = await reader.latest_public(LAB, version.id)

        assert whole == version
        assert shown == version.without_internal_fields()

    async def test_what_a_refused_write_brought_is_not_recorded(self, store: Store) -> None:
        version = a_version(audit=_WRITE)
        await store.add(LAB, version)
        await seal_all(store)

        assert not await store.add(LAB, version)
        assert await seal_all(store) == []

    async def test_members_have_no_record_of_their_own(self, store: Store) -> None:
        member = a_version(id=new_member_id(), system="", value="", type="Observation")
        await store.add(LAB, a_version(audit=_WRITE, members=(member,)))

        (block,) = await seal_all(store)

        assert block.records.count(b"\n") == 1

    async def test_of_two_processes_that_seal_the_same_one_does(
        self, store: Store, other_store: Store
    ) -> None:
        tenant = new_id()
        await store.add_audit_records({tenant: _RECORD})
        await store.add(tenant, a_version(audit=_WRITE))
        first, second = [await read_unsealed(each) for each in (store, other_store)]

        sealed = await asyncio.gather(
            store.seal_audit(blocks_of(first), first),
            other_store.seal_audit(blocks_of(second), second),
        )

        assert sorted(sealed) == [False, True]
        (block,) = await store.audit_chain(tenant)
        assert block.records == _WRITE + b"\n" + _RECORD

    async def test_a_process_that_comes_late_seals_nothing_again(
        self, store: Store, other_store: Store
    ) -> None:
        tenant = new_id()
        await store.add_audit_records({tenant: _RECORD})
        late = await read_unsealed(store)
        await seal_all(other_store)
        await other_store.add_audit_records({tenant: _RECORD * 2})
        await seal_all(other_store)

        assert not await store.seal_audit(blocks_of(late), late)
        chain = await store.audit_chain(tenant)
        assert [block.records for block in chain] == [_RECORD, _RECORD * 2]

    async def test_records_of_a_chain_are_all_sealed_while_processes_compete(
        self, store: Store, other_store: Store
    ) -> None:
        tenant = new_id()
        written = 0

        async def seal_often(one: Store) -> None:
            for _ in range(12):
                unsealed = await one.unsealed_audit(limit=3)
                await one.seal_audit(blocks_of(unsealed), unsealed)

        async def write(one: Store, count: int) -> None:
            nonlocal written
            for number in range(count):
                await one.add_audit_records({tenant: b"%d\n" % written})
                written += 1
                await one.add(tenant, a_version(audit=b"w%d" % number))

        await asyncio.gather(
            write(store, 10), write(other_store, 0), seal_often(store), seal_often(other_store)
        )
        await seal_all(store)

        chain = await other_store.audit_chain(tenant, limit=1_000)
        lines = b"".join(block.records for block in chain).split()
        assert sorted(lines) == sorted(
            [b"%d" % number for number in range(10)] + [b"w%d" % number for number in range(10)]
        )
        assert [block.number for block in chain] == [*range(1, len(chain) + 1)]

    async def test_a_chain_grows_by_several_blocks_at_a_time(self, store: Store) -> None:
        tenant = new_id()
        for number in range(3):
            await store.add_audit_records({tenant: b"%d\n" % number})
        unsealed = await read_unsealed(store)
        (whole,) = blocks_of(unsealed)
        blocks = [
            replace(
                whole,
                block=replace(whole.block, number=number, records=entry.records),
                entries=(entry,),
            )
            for number, entry in enumerate(unsealed.entries, 1)
        ]

        assert await store.seal_audit(blocks, unsealed)

        chain = await store.audit_chain(tenant)
        assert [block.records for block in chain] == [b"0\n", b"1\n", b"2\n"]
        assert await seal_all(store) == []

    async def test_a_limit_leaves_the_rest_to_the_next_call(self, store: Store) -> None:
        tenant = new_id()
        for number in range(5):
            await store.add_audit_records({tenant: b"%d\n" % number})
        await store.unsealed_audit(limit=1)

        unsealed = await store.unsealed_audit(limit=2)

        assert [entry.records for entry in unsealed.entries] == [b"0\n", b"1\n"]
        assert not unsealed.is_complete

    async def test_versions_whose_record_is_not_sealed_are_named(self, store: Store) -> None:
        sealed, waiting, without = a_version(audit=_WRITE), a_version(audit=_WRITE), a_version()
        await store.add(LAB, sealed)
        await seal_all(store)
        await store.add(LAB, waiting)
        await store.add(LAB, without)

        keys = [(version.id, 1) for version in (sealed, waiting, without)]

        assert await store.unsealed_versions(keys) == {(waiting.id, 1)}
        assert await store.unsealed_versions([]) == frozenset()

    async def test_records_survive_a_restart(self, store: Store, reopen: Reopen) -> None:
        tenant = new_id()
        await store.add_audit_records({tenant: _RECORD})
        await store.stop()

        (block,) = await seal_all(await reopen())

        assert block.records == _RECORD

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
