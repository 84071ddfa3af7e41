"""A verification counts what is right, and names the first thing that is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.audit.checkpoint import Checkpoint
from fhirpub.audit.verification import UNCOVERED_MS, Problem, Verdict, blocks_of, verify
from fhirpub.storage.audit_contract import AuditBlock, SealedBlock
from fhirpub.storage.store import Store
from fhirpub.testing.samples import LAB, OTHER
from tests.audit_trail import NOON, a_record, seal

HOUR = 3_600_000
LATER = NOON + 100 * HOUR


async def read(statement: str) -> Mapping[str, Any]:
    """Return claims without a signature: signatures are tested with manipulated stores."""
    if statement == "forged":
        raise ValueError("the signature is wrong")
    claims: Mapping[str, Any] = json.loads(statement)
    return claims


async def fill(store: Store, *hours: int, tenant: str = LAB) -> list[AuditBlock]:
    """Seal a block of two records for each hour; return the chain."""
    for hour in hours:
        at = NOON + HOUR * hour
        await seal(store, tenant, [a_record(at=at), a_record(at=at + 5)])
    return [*await store.audit_chain(tenant, limit=1_000)]


def attest(block: AuditBlock, **changes: Any) -> str:
    usual = Checkpoint(tenant=block.tenant, number=block.number, hash=block.end, at=NOON)
    return json.dumps(replace(usual, **changes).claims())


async def sign(store: Store, block: AuditBlock, **changes: Any) -> None:
    await store.put_audit_checkpoint(block.tenant, block.number, attest(block, **changes))


async def remove(store: Store, *blocks: AuditBlock) -> None:
    """Remove blocks of a chain, and no checkpoint."""
    kept = await store.audit_checkpoints(LAB)
    gone = [SealedBlock(block=one, keys=frozenset()) for one in blocks]
    await store.delete_audit_blocks(LAB, gone)
    for number, checkpoint in kept:
        await store.put_audit_checkpoint(LAB, number, checkpoint)


async def verdict(store: Store, tenant: str = LAB, *, now: int = NOON, **given: Any) -> Verdict:
    return await verify(store, tenant, read=read, now=now, **given)


async def test_an_empty_chain_is_right_at_any_time(store: Store) -> None:
    assert await verdict(store, now=LATER) == Verdict(tenant=LAB)


async def test_what_is_right_is_counted_with_its_first_and_last_time(store: Store) -> None:
    chain = await fill(store, 0, 2, 4)
    await sign(store, chain[1])
    await sign(store, chain[2])

    assert await verdict(store) == Verdict(
        tenant=LAB, blocks=3, records=6, checkpoints=2, first=NOON, last=NOON + 4 * HOUR + 5
    )


async def test_the_chain_of_another_tenant_is_not_counted(store: Store) -> None:
    await fill(store, 0)
    await fill(store, 1, 2, tenant=OTHER)

    assert (await verdict(store)).blocks == 1


async def test_the_chain_of_the_service_is_verified_alike(store: Store) -> None:
    (block,) = await fill(store, 0, tenant="")
    await sign(store, block)

    found = await verdict(store, "", now=LATER)

    assert (found.blocks, found.checkpoints, found.problem) == (1, 1, None)


async def test_records_that_are_covered_may_be_of_any_age(store: Store) -> None:
    *_, last = await fill(store, 0, 1)
    await sign(store, last)

    assert (await verdict(store, now=LATER)).problem is None


@pytest.mark.parametrize("beyond", [0, 1])
async def test_the_last_records_need_no_checkpoint_for_an_hour(store: Store, beyond: int) -> None:
    first, last = await fill(store, 0, 1)
    await sign(store, first)

    problem = (await verdict(store, now=last.last + UNCOVERED_MS + beyond)).problem

    assert (problem and problem.block) == (2 if beyond else None)


async def test_blocks_that_are_missing_are_named(store: Store) -> None:
    first, second, third, *_ = await fill(store, 0, 1, 2, 3)
    await remove(store, second, third)
    await store.put_audit_block(SealedBlock(block=first, keys=frozenset()))

    found = await verdict(store)

    assert found.problem == Problem(text="blocks 2 to 3 are missing", block=2)
    assert (found.blocks, found.records) == (1, 2)


async def test_a_chain_that_ends_before_its_last_checkpoint_is_named(store: Store) -> None:
    first, *others = await fill(store, 0, 1, 2)
    await sign(store, others[1])
    await remove(store, *others)
    await store.put_audit_block(SealedBlock(block=first, keys=frozenset()))

    problem = (await verdict(store)).problem

    assert problem == Problem(text="the chain ends here, and was signed up to block 3", block=2)


async def test_what_was_signed_otherwise_begins_behind_the_last_block_attested(
    store: Store,
) -> None:
    chain = await fill(store, 0, 1, 2, 3)
    await sign(store, chain[0])
    await sign(store, chain[2], hash=b"x" * 32)

    problem = (await verdict(store)).problem

    assert problem is not None
    assert problem.block == 2
    assert "the chain up to block 3 is not the one that was signed" in problem.text


async def test_a_checkpoint_outside_is_compared_besides_that_of_the_store(store: Store) -> None:
    (block,) = await fill(store, 0)
    await sign(store, block)

    found = await verdict(store, outside=[attest(block, hash=b"x" * 32)])

    assert found.checkpoints == 2
    assert found.problem is not None


async def test_checkpoints_outside_of_other_tenants_are_passed_over(store: Store) -> None:
    (block,) = await fill(store, 0)

    found = await verdict(store, outside=[attest(block, tenant=OTHER, number=9)])

    assert (found.checkpoints, found.problem) == (0, None)


async def test_the_block_of_a_checkpoint_that_is_not_right_is_named(store: Store) -> None:
    chain = await fill(store, 0, 1)
    await store.put_audit_checkpoint(LAB, 1, "forged")
    await store.put_audit_checkpoint(LAB, 2, attest(chain[1], tenant=OTHER))

    found = await verdict(store)

    text = "a checkpoint is not right: the signature is wrong"
    assert found.problem == Problem(text=text, block=1)
    assert (found.blocks, found.checkpoints) == (2, 0)


async def test_what_is_wrong_with_the_chain_comes_before_a_wrong_checkpoint(store: Store) -> None:
    first, second, _third = await fill(store, 0, 1, 2)
    await remove(store, second)
    await store.put_audit_block(SealedBlock(block=first, keys=frozenset()))

    problem = (await verdict(store, outside=["forged"])).problem

    assert problem is not None
    assert "missing" in problem.text


async def test_what_was_deleted_under_a_statement_is_not_missed(store: Store) -> None:
    chain = await fill(store, 0, 1, 2)
    await sign(store, chain[1], deleted=True)
    await remove(store, *chain[:2])

    found = await verdict(store)

    assert (found.blocks, found.first, found.problem) == (1, chain[2].first, None)


async def test_a_deletion_that_was_interrupted_leaves_nothing_wrong(store: Store) -> None:
    chain = await fill(store, 0, 1, 2)
    await sign(store, chain[1], deleted=True)
    await remove(store, chain[0])

    assert (await verdict(store)).problem is None


async def test_the_last_of_several_deletions_is_what_the_chain_follows(store: Store) -> None:
    chain = await fill(store, 0, 1, 2, 3)
    await sign(store, chain[0], deleted=True)
    await sign(store, chain[2], deleted=True)
    await remove(store, *chain[:3])

    assert (await verdict(store)).problem is None


async def test_what_is_left_must_follow_from_the_hash_of_the_deletion(store: Store) -> None:
    chain = await fill(store, 0, 1, 2)
    await sign(store, chain[1], deleted=True, hash=b"x" * 32)
    await remove(store, *chain[:2])

    problem = (await verdict(store)).problem

    assert problem is not None
    assert (problem.block, problem.place) == (3, 0)


async def test_a_block_that_is_missing_behind_a_deletion_is_named(store: Store) -> None:
    chain = await fill(store, 0, 1, 2)
    await sign(store, chain[0], deleted=True)
    await remove(store, *chain[:2])

    assert (await verdict(store)).problem == Problem(text="blocks 2 to 2 are missing", block=2)


@pytest.mark.parametrize("name", ["first", "last"])
async def test_a_block_must_have_the_times_of_its_records(store: Store, name: str) -> None:
    (block,) = await fill(store, 0)
    await remove(store, block)
    wrong = replace(block, **{name: getattr(block, name) + 1})
    await store.put_audit_block(SealedBlock(block=wrong, keys=frozenset()))

    problem = (await verdict(store)).problem

    text = "the times of the block are not those of its records"
    assert problem == Problem(text=text, block=1)


async def test_a_long_chain_is_read_to_its_end_with_progress_after_each_page(store: Store) -> None:
    await seal(store, LAB, [a_record(at=NOON + HOUR * hour) for hour in range(101)])
    seen: list[int] = []

    found = await verdict(store, on_progress=lambda so_far: seen.append(so_far.blocks))

    assert seen == [50, 100, 101]
    assert found.problem is None
    assert [block.number async for block in blocks_of(store, LAB)] == [*range(1, 102)]


def test_a_problem_names_the_block_and_the_record() -> None:
    assert str(Problem(text="it is wrong", block=3, place=2)) == "block 3, record 2: it is wrong"
