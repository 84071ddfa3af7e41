"""Tests of the audit trail: records are sealed once, and blocks are found by keys and times."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from fhirpub.storage.audit_contract import (
    HASH_BYTES,
    AuditBlock,
    AuditedVersion,
    SealedBlock,
    UnsealedAudit,
)
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.records import Reopen
from fhirpub.testing.samples import LAB, a_version, new_id, new_member_id, successor

_RECORD = b'{"action":"read"}\n'
_WRITE = b'{"action":"register"}'


async def read_unsealed(store: Store) -> UnsealedAudit:
    """Return all that is not sealed."""
    return await store.unsealed_audit(limit=1_000)


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


def a_copy(tenant: str, number: int) -> SealedBlock:
    """Return a block that was made of nothing that is here.

    Args:
        tenant: The id of its tenant.
        number: Its number.
    """
    block = AuditBlock(
        tenant=tenant, number=number, first=1, last=1, records=_RECORD, hashes=b"h" * HASH_BYTES
    )
    return SealedBlock(block=block, keys=frozenset())


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

    async def test_a_block_whose_number_is_taken_is_not_added(self, store: Store) -> None:
        tenant = new_id()
        await store.add_audit_records({tenant: _RECORD})
        unsealed = await read_unsealed(store)
        taken = a_copy(tenant, 1)
        await store.put_audit_block(taken)

        assert not await store.seal_audit(blocks_of(unsealed), unsealed)

        assert await store.audit_chain(tenant) == [taken.block]
        (block,) = await seal_all(store)
        assert (block.number, block.records) == (2, _RECORD)

    async def test_a_block_may_hold_records_that_were_never_handed_in(self, store: Store) -> None:
        tenant = new_id()
        unsealed = await store.unsealed_audit(limit=9, tenants=[tenant])
        block = AuditBlock(
            tenant=tenant, number=1, first=1, last=1, records=_RECORD, hashes=b"h" * HASH_BYTES
        )

        assert await store.seal_audit([SealedBlock(block=block, keys=frozenset())], unsealed)

        assert await store.audit_chain(tenant) == [block]

    async def test_records_survive_a_restart(self, store: Store, reopen: Reopen) -> None:
        tenant = new_id()
        await store.add_audit_records({tenant: _RECORD})
        await store.stop()

        (block,) = await seal_all(await reopen())

        assert block.records == _RECORD
