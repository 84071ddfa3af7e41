"""Tests of what waits to be sealed: returned in pages, and sealed by the next calls."""

from __future__ import annotations

from fhirpub.storage.audit_contract import HASH_BYTES, MAX_UNSEALED_BYTES
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.audit.sealing import a_copy, blocks_of, read_unsealed, seal_all
from fhirpub.testing.samples import a_version, new_id

_RECORD = b'{"action":"read"}\n'
_WRITE = b'{"action":"register"}'


async def check_two_pages(store: Store) -> None:
    """Check that two records are sealed before the third one, which their page has no room for."""
    first = await read_unsealed(store)
    assert await store.seal_audit(blocks_of(first), first)
    second = await read_unsealed(store)

    assert [entry.records[:1] for entry in first.entries] == [b"0", b"1"]
    assert not first.is_complete
    assert [entry.records for entry in second.entries] == [b"2"]


class UnsealedAuditContract:
    """A page of what waits is bounded, in number and in size, and what it leaves follows."""

    async def test_a_limit_leaves_the_rest_to_the_next_call(self, store: Store) -> None:
        tenant = new_id()
        for number in range(5):
            await store.add_audit_records({tenant: b"%d\n" % number})
        await store.unsealed_audit(limit=1)

        unsealed = await store.unsealed_audit(limit=2)

        assert [entry.records for entry in unsealed.entries] == [b"0\n", b"1\n"]
        assert not unsealed.is_complete

    async def test_writes_beyond_a_limit_are_sealed_by_the_next_calls(self, store: Store) -> None:
        tenant = new_id()
        for number in range(5):
            await store.add(tenant, a_version(audit=b"%d" % number, updated=number))

        pages = []
        while not (unsealed := await store.unsealed_audit(limit=2)).is_complete:
            pages.append([entry.records for entry in unsealed.entries])
            assert await store.seal_audit(blocks_of(unsealed), unsealed)

        pages.append([entry.records for entry in unsealed.entries])
        assert [page for page in pages if page] == [[b"0", b"1"], [b"2", b"3"], [b"4"]]

    async def test_records_of_writes_come_before_what_was_handed_in(self, store: Store) -> None:
        tenant = new_id()
        await store.add_audit_records({tenant: _RECORD})
        await store.add(tenant, a_version(audit=_WRITE))

        unsealed = await read_unsealed(store)

        assert [entry.records for entry in unsealed.entries] == [_WRITE, _RECORD]
        assert [entry.version is None for entry in unsealed.entries] == [False, True]

    async def test_large_records_of_writes_are_sealed_in_several_pages(self, store: Store) -> None:
        tenant, half = new_id(), MAX_UNSEALED_BYTES // 2
        for number, size in enumerate((half, half, 1)):
            audit = b"%d" % number + b"x" * (size - 1)
            await store.add(tenant, a_version(audit=audit, updated=number))

        await check_two_pages(store)

    async def test_a_page_of_what_was_handed_in_ends_with_the_record_that_fills_it(
        self, store: Store
    ) -> None:
        tenant, half = new_id(), MAX_UNSEALED_BYTES // 2
        for number, size in enumerate((half, half, 1)):
            await store.add_audit_records({tenant: b"%d" % number + b"x" * (size - 1)})

        await check_two_pages(store)

    async def test_what_was_handed_in_after_it_was_read_is_not_sealed_with_it(
        self, store: Store
    ) -> None:
        tenant = new_id()
        await store.add_audit_records({tenant: b"1\n"})
        await store.add(tenant, a_version(audit=b"w1"))
        unsealed = await read_unsealed(store)
        await store.add_audit_records({tenant: b"2\n"})
        await store.add(tenant, a_version(audit=b"w2"))

        assert await store.seal_audit(blocks_of(unsealed), unsealed)

        (block,) = await seal_all(store)
        assert block.records == b"w2\n2\n"

    async def test_records_of_two_tenants_are_sealed_in_the_chains_of_each(
        self, store: Store
    ) -> None:
        one, other = new_id(), new_id()
        await store.put_audit_block(a_copy(one, 1))
        await store.add_audit_records({one: b"1\n", other: b"2\n"})

        unsealed = await read_unsealed(store)
        assert await store.seal_audit(blocks_of(unsealed), unsealed)

        ends = {one: (1, b"h" * HASH_BYTES), other: (0, b"")}
        assert unsealed.ends == ends
        assert [block.number for block in await store.audit_chain(one)] == [1, 2]
        assert [block.records for block in await store.audit_chain(other)] == [b"2\n"]

    async def test_large_records_are_returned_in_several_pages(self, store: Store) -> None:
        tenant, large = new_id(), b"x" * (5 * 1024 * 1024) + b"\n"
        for _ in range(5):
            await store.add_audit_records({tenant: large})

        unsealed = await read_unsealed(store)

        assert 1 <= len(unsealed.entries) < 5
        assert not unsealed.is_complete

    async def test_the_ends_of_tenants_without_entries_are_returned_if_they_are_needed(
        self, store: Store
    ) -> None:
        known, new = new_id(), new_id()
        await store.add_audit_records({known: _RECORD})
        (block,) = await seal_all(store)

        unsealed = await store.unsealed_audit(limit=9, tenants=[known, new])

        assert unsealed.ends == {known: (1, block.end), new: (0, b"")}

    async def test_a_seal_that_comes_late_lets_nothing_be_sealed_again(
        self, store: Store, other_store: Store
    ) -> None:
        tenant, other = new_id(), new_id()
        late = await store.unsealed_audit(limit=9, tenants=[tenant])
        await other_store.add(other, a_version(audit=_WRITE))
        (sealed,) = await seal_all(other_store)

        await store.seal_audit([a_copy(tenant, 1)], late)

        assert await seal_all(other_store) == []
        assert await store.audit_chain(other) == [sealed]
