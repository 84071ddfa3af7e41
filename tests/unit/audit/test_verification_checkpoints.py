"""All checkpoints of a chain count, however many there are, and whichever came first."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

from fhirpub.audit.checkpoint import Checkpoint
from fhirpub.audit.verification import UNCOVERED_MS
from fhirpub.storage.store import Store
from fhirpub.testing.samples import LAB
from tests.audit_trail import NOON
from tests.unit.audit.test_verification import attest, fill, remove, sign, verdict


async def test_checkpoints_of_more_than_a_page_count(store: Store) -> None:
    usual = Checkpoint(tenant=LAB, number=0, hash=b"x" * 32, at=NOON)
    signed = {one: json.dumps(replace(usual, number=one).claims()) for one in range(1, 1_002)}
    await asyncio.gather(
        *(store.put_audit_checkpoint(LAB, number, text) for number, text in signed.items())
    )

    found = await verdict(store)

    assert found.checkpoints == 1_001
    assert found.problem is not None
    assert "signed up to block 1001" in found.problem.text


async def test_each_of_several_checkpoints_of_a_block_is_compared(store: Store) -> None:
    (block,) = await fill(store, 0)
    await sign(store, block)

    found = await verdict(store, outside=[attest(block), attest(block, hash=b"x" * 32)])

    assert found.problem is not None
    assert "is not the one that was signed" in found.problem.text


async def test_one_block_that_was_removed_at_the_end_is_missed(store: Store) -> None:
    first, second = await fill(store, 0, 1)
    outside = [attest(first), attest(replace(second, number=3))]

    found = await verdict(store, outside=outside)

    assert found.problem is not None
    assert "signed up to block 3" in found.problem.text


async def test_the_deletion_of_a_block_counts_beside_a_usual_checkpoint_of_it(
    store: Store,
) -> None:
    first, _second = await fill(store, 0, 1)
    await sign(store, first)
    await remove(store, first)

    found = await verdict(store, outside=[attest(first, deleted=True)])

    assert (found.problem, found.blocks) == (None, 1)


async def test_what_was_signed_otherwise_begins_behind_a_deletion(store: Store) -> None:
    first, _second, third = await fill(store, 0, 1, 2)
    await sign(store, first, deleted=True)
    await remove(store, first)

    found = await verdict(store, outside=[attest(third, hash=b"x" * 32)])

    assert found.problem is not None
    assert found.problem.block == 2


async def test_what_a_deletion_covers_needs_no_other_checkpoint(store: Store) -> None:
    (only,) = await fill(store, 0)
    await sign(store, only, deleted=True)

    assert (await verdict(store, now=only.last + UNCOVERED_MS + 1)).problem is None
