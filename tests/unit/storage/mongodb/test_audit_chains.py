"""Chains of the audit trail and their checkpoints, as a server keeps them."""

from __future__ import annotations

import pytest

from fhirpub.storage.audit_contract import HASH_BYTES, AuditQuery
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.testing.contracts.audit.chains import a_block
from fhirpub.testing.samples import new_id

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_chain_is_read_in_order_behind_a_block_and_up_to_a_limit(
    shared: MongoStore,
) -> None:
    tenant, other = new_id(), new_id()
    blocks = [a_block(tenant, number) for number in range(1, 12)]
    for sealed in (*reversed(blocks), a_block(other)):
        await shared.put_audit_block(sealed)

    assert await shared.audit_chain(tenant) == [sealed.block for sealed in blocks]
    found = await shared.audit_chain(tenant, after=9, limit=1)
    assert [block.number for block in found] == [10]
    assert await shared.audit_chain(tenant, after=11) == []
    assert await shared.audit_end(tenant) == (11, (11).to_bytes(HASH_BYTES, "big"))
    assert await shared.audit_end(new_id()) == (0, b"")
    tenants = await shared.audited_tenants()
    assert {tenant, other} <= {*tenants}
    assert tenants == sorted({*tenants})


async def test_a_block_that_is_stored_stays_as_it_is(shared: MongoStore) -> None:
    tenant = new_id()
    await shared.put_audit_block(a_block(tenant, first=1))
    await shared.put_audit_block(a_block(tenant, first=2))

    assert [block.first for block in await shared.audit_chain(tenant)] == [1]
    await shared.delete_audit_blocks(tenant, [])
    assert len(await shared.audit_chain(tenant)) == 1


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        (AuditQuery(), [4, 3, 2, 1]),
        (AuditQuery(limit=2), [4, 3]),
        (AuditQuery(keys=(5,)), [3, 1]),
        (AuditQuery(keys=(5, -6)), [3]),
        (AuditQuery(since=2_500), [4, 3, 2]),
        (AuditQuery(since=2_501), [4, 3]),
        (AuditQuery(until=2_000), [2, 1]),
        (AuditQuery(before=(3_000, 4)), [3, 2, 1]),
        (AuditQuery(size=1), [4]),
    ],
    ids=["all", "limit", "key", "keys", "since", "later", "until", "before", "size"],
)
async def test_blocks_are_found_newest_first_by_what_they_hold(
    shared: MongoStore, query: AuditQuery, numbers: list[int]
) -> None:
    tenant, other = new_id(), new_id()
    await shared.put_audit_block(a_block(tenant, 1, [5], first=1_000))
    await shared.put_audit_block(a_block(tenant, 2, [6], first=2_000, last=2_500))
    await shared.put_audit_block(a_block(tenant, 3, [5, -6], first=3_000))
    await shared.put_audit_block(a_block(tenant, 4, [7], first=3_000))
    await shared.put_audit_block(a_block(other, 5, [5, -6], first=2_000))

    found = await shared.find_audit_blocks(tenant, query)

    assert [block.number for block in found] == numbers
    assert {block.tenant for block in found} == {tenant}


async def test_what_is_deleted_of_a_chain_is_its_blocks_and_the_checkpoints_below_the_last(
    shared: MongoStore,
) -> None:
    tenant, other = new_id(), new_id()
    blocks = {one: [a_block(one, number) for number in (1, 2, 3)] for one in (tenant, other)}
    for one in (tenant, other):
        for sealed in blocks[one]:
            await shared.put_audit_block(sealed)
            await shared.put_audit_checkpoint(one, sealed.block.number, "signed")

    await shared.delete_audit_blocks(tenant, blocks[tenant][:2])

    assert [block.number for block in await shared.audit_chain(tenant)] == [3]
    assert [*await shared.audit_checkpoints(tenant)] == [(2, "signed"), (3, "signed")]
    assert len(await shared.audit_chain(other)) == 3
    assert len(await shared.audit_checkpoints(other)) == 3


async def test_checkpoints_are_read_in_the_order_of_their_blocks(shared: MongoStore) -> None:
    tenant = new_id()
    for number, checkpoint in ((2, "other"), (10, "ten"), (2, "two")):
        await shared.put_audit_checkpoint(tenant, number, checkpoint)
    await shared.put_audit_checkpoint(new_id(), 3, "theirs")

    assert [*await shared.audit_checkpoints(tenant)] == [(2, "two"), (10, "ten")]
    assert [*await shared.audit_checkpoints(tenant, after=2)] == [(10, "ten")]
    assert [*await shared.audit_checkpoints(tenant, limit=1)] == [(2, "two")]
