"""Blocks are deleted from the first on, under a statement that is stored before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fhirpub.audit.checkpoint import Checkpoint, checkpoint_of
from fhirpub.audit.record import key_of
from fhirpub.audit.retention import delete_expired
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.audit_contract import AuditQuery
from fhirpub.storage.store import Store
from fhirpub.testing.samples import LAB, OTHER
from tests.audit_trail import CLIENT, NOON, a_record, seal

HOUR = 3_600_000


async def sign(claims: Mapping[str, Any]) -> str:
    return json.dumps(dict(claims))


async def fill(store: Store, *hours: int, tenant: str = LAB) -> None:
    """Seal one block of one record for each hour."""
    await seal(store, tenant, [a_record(at=NOON + HOUR * hour) for hour in hours])


async def numbers(store: Store, tenant: str = LAB) -> list[int]:
    return [block.number for block in await store.audit_chain(tenant, limit=1_000)]


@pytest.mark.parametrize(("before", "left"), [(NOON, [1, 2, 3]), (NOON + 1, [2, 3])])
async def test_a_block_expires_once_its_last_record_is_older(
    store: Store, before: int, left: list[int]
) -> None:
    await fill(store, 0, 1, 2)

    deleted = await delete_expired(store, LAB, before=before, sign=sign, now=NOON + HOUR * 3)

    assert deleted == 3 - len(left)
    assert await numbers(store) == left


async def test_the_statement_names_the_last_block_that_went_and_its_hash(store: Store) -> None:
    await fill(store, 0, 1, 2)
    chain = await store.audit_chain(LAB)
    now = NOON + HOUR * 10

    await delete_expired(store, LAB, before=now, sign=sign, now=now)

    ((number, statement),) = await store.audit_checkpoints(LAB)
    assert number == 2
    assert checkpoint_of(json.loads(statement)) == Checkpoint(
        tenant=LAB, number=2, hash=chain[1].end, at=now, deleted=True
    )


async def test_nothing_is_stated_where_nothing_has_expired(store: Store) -> None:
    await fill(store, 0, 1)

    assert await delete_expired(store, LAB, before=NOON, sign=sign, now=NOON) == 0

    assert await store.audit_checkpoints(LAB) == []


async def test_a_chain_of_one_block_stays(store: Store) -> None:
    await fill(store, 0)

    assert await delete_expired(store, LAB, before=NOON * 2, sign=sign, now=NOON * 2) == 0

    assert await numbers(store) == [1]


async def test_the_chain_of_another_tenant_is_not_touched(store: Store) -> None:
    await fill(store, 0, 1)
    await fill(store, 0, 1, tenant=OTHER)

    await delete_expired(store, LAB, before=NOON * 2, sign=sign, now=NOON * 2)

    assert await numbers(store, OTHER) == [1, 2]
    assert await store.audit_checkpoints(OTHER) == []


async def test_what_stands_behind_a_block_that_has_not_expired_stays(store: Store) -> None:
    await fill(store, 0)
    await fill(store, 9)
    await fill(store, 1)
    await fill(store, 2)

    deleted = await delete_expired(store, LAB, before=NOON + 5 * HOUR, sign=sign, now=NOON)

    assert deleted == 1
    assert await numbers(store) == [2, 3, 4]


async def test_a_hundred_blocks_at_most_are_deleted_by_one_call(store: Store) -> None:
    await fill(store, *range(103))

    counts = [
        await delete_expired(store, LAB, before=NOON * 2, sign=sign, now=NOON) for _ in range(3)
    ]

    assert counts == [100, 2, 0]
    assert await numbers(store) == [103]


async def test_what_was_deleted_is_found_by_no_search(store: Store) -> None:
    await fill(store, 0, 1)

    await delete_expired(store, LAB, before=NOON * 2, sign=sign, now=NOON)

    agent = key_of(LAB, "agent", CLIENT.client)
    found = await store.find_audit_blocks(LAB, AuditQuery(keys=(agent,)))
    assert [block.number for block in found] == [2]


async def test_nothing_is_deleted_if_the_statement_cannot_be_signed(store: Store) -> None:
    async def fail(_claims: Mapping[str, Any]) -> str:
        raise StoreUnavailable("no key")

    await fill(store, 0, 1, 2)

    with pytest.raises(StoreUnavailable):
        await delete_expired(store, LAB, before=NOON + HOUR * 3, sign=fail, now=NOON + HOUR * 3)

    assert await numbers(store) == [1, 2, 3]


@pytest.mark.parametrize(("before", "left"), [(NOON + 5, [1, 2]), (NOON + 6, [2])])
async def test_a_block_stays_as_long_as_one_of_its_records(
    store: Store, before: int, left: list[int]
) -> None:
    await seal(store, LAB, [a_record(at=NOON), a_record(at=NOON + 5)])
    await fill(store, 1)

    await delete_expired(store, LAB, before=before, sign=sign, now=NOON + HOUR * 3)

    assert await numbers(store) == left
