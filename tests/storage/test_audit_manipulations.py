"""Each manipulation of a stored chain is found, and the first record that is wrong is named."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pymongo
import pytest

from fhirpub.audit.chain import beginning, hashes_after, next_blocks, records_of
from fhirpub.audit.checkpoint import TYPE, Checkpoint
from fhirpub.audit.record import Access, Agent, encode
from fhirpub.audit.verification import UNCOVERED_MS, Verdict, verify
from fhirpub.auth.keys import KeyRing
from fhirpub.auth.statements import StatementReader, sign_statement
from fhirpub.config.settings import AuthConfig
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.audit_contract import HASH_BYTES, AuditBlock, SealedBlock
from fhirpub.storage.mongodb.schema import AUDIT_CHECKPOINT
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from fhirpub.testing.samples import LAB, OTHER
from tests.storage.mongodb.helpers import store_of

_BLOCKS, _RECORDS = 5, 4
SIGNED = (2, 4)
"""The blocks that checkpoints cover."""

Blocks = list[AuditBlock]
Manipulation = Callable[[Blocks, Blocks], Blocks]


@dataclass
class Trail:
    """Chains of two tenants in a store, and what was signed of them."""

    store: Store
    remove_checkpoints: Callable[[], None]
    began: int
    signed: dict[tuple[str, int], str]

    async def chain(self, tenant: str) -> Blocks:
        return [*await self.store.audit_chain(tenant)]

    async def replace_chain(self, tenant: str, blocks: Sequence[AuditBlock]) -> None:
        """Store other blocks, as one does who can write to the store."""
        before = [SealedBlock(block=one, keys=frozenset()) for one in await self.chain(tenant)]
        checkpoints = await self.store.audit_checkpoints(tenant)
        await self.store.delete_audit_blocks(tenant, before)
        for number, checkpoint in checkpoints:
            await self.store.put_audit_checkpoint(tenant, number, checkpoint)
        for block in blocks:
            await self.store.put_audit_block(SealedBlock(block=block, keys=frozenset()))

    async def verdict(
        self, tenant: str = LAB, *, later: int = 0, outside: Sequence[str] = ()
    ) -> Verdict:
        reader = StatementReader(self.store, type_=TYPE)
        now = self.began + later
        return await verify(self.store, tenant, read=reader.read, now=now, outside=outside)


@pytest.fixture(params=["sqlite", "mongodb"])
async def trail(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Trail]:
    store, remove_checkpoints = _open(request, tmp_path)
    await store.start()
    began = now_ms()
    signed = await _fill(store, began)
    yield Trail(store, remove_checkpoints, began, signed)
    await store.stop()


def _open(request: pytest.FixtureRequest, folder: Path) -> tuple[Store, Callable[[], None]]:
    if request.param == "mongodb":
        url: str = request.getfixturevalue("mongodb_url")

        def clear() -> None:
            with pymongo.MongoClient[dict[str, Any]](url) as client:
                client.get_default_database()[AUDIT_CHECKPOINT].delete_many({})

        return store_of(url), clear

    path = folder / "fhirpub.db"

    def remove() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("DELETE FROM audit_checkpoint")

    return SqliteStore(path, deadline_seconds=10), remove


async def _fill(store: Store, began: int) -> dict[tuple[str, int], str]:
    """Seal blocks of records, and sign some; return what was signed."""
    ring = KeyRing(store, AuthConfig(), clock=now_ms)
    signed: dict[tuple[str, int], str] = {}
    for number in range(1, _BLOCKS + 1):
        for tenant in (LAB, OTHER):
            records = [_record(tenant, number, place, began) for place in range(_RECORDS)]
            await store.add_audit_records({tenant: b"".join(records)})
        unsealed = await store.unsealed_audit(limit=100)
        while not unsealed.is_complete:
            unsealed = await store.unsealed_audit(limit=100)
        blocks = next_blocks(unsealed)
        assert await store.seal_audit(blocks, unsealed)
        for block in (sealed.block for sealed in blocks if number in SIGNED):
            checkpoint = _checkpoint(block, began)
            statement = await sign_statement(ring, checkpoint.claims(), type_=TYPE)
            await store.put_audit_checkpoint(block.tenant, number, statement)
            signed[block.tenant, number] = statement
    return signed


def _record(tenant: str, number: int, place: int, began: int) -> bytes:
    access = Access(action="read", what=(f"DiagnosticReport/{tenant[:4]}-{number}-{place}",))
    return encode(access, Agent(client="c"), at=began + number * 10 + place) + b"\n"


def _checkpoint(block: AuditBlock, at: int) -> Checkpoint:
    return Checkpoint(tenant=block.tenant, number=block.number, hash=block.end, at=at)


async def test_a_chain_that_was_not_touched_is_right(trail: Trail) -> None:
    verdict = await trail.verdict()

    assert verdict.problem is None
    assert (verdict.blocks, verdict.records) == (_BLOCKS, _BLOCKS * _RECORDS)
    assert verdict.checkpoints == len(SIGNED)


def with_records(block: AuditBlock, records: Sequence[bytes]) -> AuditBlock:
    """Return a block with other records under the hashes that it has."""
    return replace(block, records=b"".join(record + b"\n" for record in records))


def with_own_hashes(block: AuditBlock, previous: bytes) -> AuditBlock:
    """Return a block with hashes that follow from the block before."""
    return replace(block, hashes=b"".join(hashes_after(previous, records_of(block))))


def computed_again(blocks: Sequence[AuditBlock], tenant: str = LAB) -> Blocks:
    """Return a chain whose numbers and hashes are all right, as they are without a key."""
    end, chain = beginning(tenant), []
    for number, block in enumerate(blocks, 1):
        chain.append(with_own_hashes(replace(block, number=number), end))
        end = chain[-1].end
    return chain


def changed(block: AuditBlock, place: int, **members: Any) -> AuditBlock:
    records = records_of(block)
    records[place] = orjson.dumps(orjson.loads(records[place]) | members)
    return with_records(block, records)


def edited(number: int, edit: Callable[[AuditBlock], AuditBlock]) -> Manipulation:
    """Return the manipulation that edits one block, counted from 1."""
    return lambda ours, _theirs: [
        edit(block) if block.number == number else block for block in ours
    ]


def removed_record(block: AuditBlock) -> AuditBlock:
    return with_records(block, [one for n, one in enumerate(records_of(block)) if n != 1])


def removed_with_hash(block: AuditBlock) -> AuditBlock:
    shorter = removed_record(block)
    hashes = block.hashes[:HASH_BYTES] + block.hashes[2 * HASH_BYTES :]
    return replace(shorter, hashes=hashes)


def inserted_record(block: AuditBlock) -> AuditBlock:
    records = records_of(block)
    return with_records(block, [*records[:2], records[0], *records[2:]])


def swapped_records(block: AuditBlock) -> AuditBlock:
    first, second, *others = records_of(block)
    return with_records(block, [second, first, *others])


def removed_blocks(*numbers: int) -> Manipulation:
    return lambda ours, _theirs: [block for block in ours if block.number not in numbers]


def renumbered(blocks: Sequence[AuditBlock]) -> Blocks:
    return [replace(block, number=number) for number, block in enumerate(blocks, 1)]


def inserted_block(ours: Blocks, _theirs: Blocks) -> Blocks:
    forged = with_own_hashes(ours[0], ours[1].end)
    return renumbered([*ours[:2], forged, *ours[2:]])


def swapped_blocks(ours: Blocks, _theirs: Blocks) -> Blocks:
    first, second, third, *others = ours
    return renumbered([first, third, second, *others])


def record_of_another_tenant(ours: Blocks, theirs: Blocks) -> Blocks:
    records = records_of(ours[2])
    records[3] = records_of(theirs[2])[3]
    hashes = ours[2].hashes[: 3 * HASH_BYTES] + theirs[2].hashes[3 * HASH_BYTES :]
    return [*ours[:2], replace(with_records(ours[2], records), hashes=hashes), *ours[3:]]


def block_of_another_tenant(ours: Blocks, theirs: Blocks) -> Blocks:
    return [*ours[:2], replace(theirs[2], tenant=LAB), *ours[3:]]


def chain_of_another_tenant(_ours: Blocks, theirs: Blocks) -> Blocks:
    return [replace(block, tenant=LAB) for block in theirs]


def changed_and_computed_again(ours: Blocks, _theirs: Blocks) -> Blocks:
    return computed_again([*ours[:2], changed(ours[2], 1, status=404), *ours[3:]])


MANIPULATIONS: dict[str, tuple[Manipulation, int, int]] = {
    "an action": (edited(3, lambda one: changed(one, 1, action="search")), 3, 1),
    "a time": (edited(1, lambda one: changed(one, 0, at=5)), 1, 0),
    "a patient": (edited(4, lambda one: changed(one, 3, patients=["Patient/x"])), 4, 3),
    "what no checkpoint covers": (edited(5, lambda one: changed(one, 2, client="d")), 5, 2),
    "a record removed": (edited(2, removed_record), 2, 1),
    "a record removed with its hash": (edited(2, removed_with_hash), 2, 1),
    "a record removed and its block computed again": (
        lambda ours, _theirs: [
            ours[0],
            with_own_hashes(removed_record(ours[1]), ours[0].end),
            *ours[2:],
        ],
        1,
        0,
    ),
    "the last record of the chain removed": (
        edited(5, lambda one: with_records(one, records_of(one)[:-1])),
        5,
        3,
    ),
    "a block removed": (removed_blocks(3), 3, 0),
    "a block removed and the others renumbered": (
        lambda ours, _theirs: renumbered([*ours[:2], *ours[3:]]),
        3,
        0,
    ),
    "the first block removed": (removed_blocks(1), 1, 0),
    "all blocks removed": (removed_blocks(*range(1, _BLOCKS + 1)), 1, 0),
    "the end removed": (removed_blocks(4, 5), 4, 0),
    "a record inserted": (edited(3, inserted_record), 3, 2),
    "a block inserted": (inserted_block, 4, 0),
    "two records swapped": (edited(3, swapped_records), 3, 0),
    "two blocks swapped": (swapped_blocks, 2, 0),
    "a record of another tenant": (record_of_another_tenant, 3, 3),
    "a block of another tenant": (block_of_another_tenant, 3, 0),
    "the chain of another tenant": (chain_of_another_tenant, 1, 0),
    "a record changed and all computed again": (changed_and_computed_again, 3, 0),
    "a block removed and all computed again": (
        lambda ours, _theirs: computed_again([*ours[:1], *ours[2:]]),
        1,
        0,
    ),
    "the times of a block": (edited(2, lambda one: replace(one, first=one.first - 9)), 2, 0),
}


@pytest.mark.parametrize("name", MANIPULATIONS)
async def test_a_manipulation_is_found_and_the_first_wrong_record_named(
    trail: Trail, name: str
) -> None:
    manipulate, block, place = MANIPULATIONS[name]
    theirs = await trail.chain(OTHER)
    await trail.replace_chain(LAB, manipulate(await trail.chain(LAB), theirs))

    problem = (await trail.verdict()).problem

    assert problem is not None
    assert (problem.block, problem.place) == (block, place)
    assert (await trail.verdict(OTHER)).problem is None


async def test_a_checkpoint_of_another_chain_attests_nothing(trail: Trail) -> None:
    trail.remove_checkpoints()
    await trail.store.put_audit_checkpoint(LAB, 4, trail.signed[OTHER, 4])

    problem = (await trail.verdict()).problem

    assert problem is not None
    assert "another chain" in problem.text


async def test_a_checkpoint_kept_under_another_block_attests_nothing(
    trail: Trail,
) -> None:
    trail.remove_checkpoints()
    await trail.store.put_audit_checkpoint(LAB, 3, trail.signed[LAB, 4])

    problem = (await trail.verdict()).problem

    assert problem is not None
    assert "another chain or block" in problem.text


async def test_a_checkpoint_that_another_key_signed_attests_nothing(trail: Trail) -> None:
    trail.remove_checkpoints()
    header, payload, signature = trail.signed[LAB, 4].split(".")
    forged = ".".join([header, payload, signature[::-1]])
    await trail.store.put_audit_checkpoint(LAB, 4, forged)

    assert (await trail.verdict()).problem is not None


async def test_an_access_token_is_no_checkpoint(trail: Trail) -> None:
    ring = KeyRing(trail.store, AuthConfig(), clock=now_ms)
    (_first, _second, _third, fourth, _fifth) = await trail.chain(LAB)
    trail.remove_checkpoints()
    token = await sign_statement(ring, _checkpoint(fourth, 0).claims(), type_="at+jwt")
    await trail.store.put_audit_checkpoint(LAB, 4, token)

    assert (await trail.verdict()).problem is not None


async def test_old_records_that_no_checkpoint_covers_are_reported(trail: Trail) -> None:
    assert (await trail.verdict(later=UNCOVERED_MS)).problem is None

    problem = (await trail.verdict(later=UNCOVERED_MS + 1_000)).problem

    assert problem is not None
    assert problem.block == SIGNED[-1] + 1


async def test_a_chain_computed_again_without_checkpoints_is_found_after_an_hour(
    trail: Trail,
) -> None:
    await trail.replace_chain(LAB, changed_and_computed_again(await trail.chain(LAB), []))
    trail.remove_checkpoints()

    assert (await trail.verdict(later=UNCOVERED_MS + 1_000)).problem is not None


@pytest.mark.parametrize(
    ("manipulate", "block"), [(removed_blocks(4, 5), 4), (changed_and_computed_again, 3)]
)
async def test_checkpoints_outside_show_what_the_store_alone_cannot(
    trail: Trail, manipulate: Manipulation, block: int
) -> None:
    await trail.replace_chain(LAB, manipulate(await trail.chain(LAB), []))
    trail.remove_checkpoints()
    assert (await trail.verdict()).problem is None

    problem = (await trail.verdict(outside=[*trail.signed.values()])).problem

    assert problem is not None
    assert problem.block == block


async def test_what_was_deleted_under_a_signed_statement_is_not_missing(trail: Trail) -> None:
    ring = KeyRing(trail.store, AuthConfig(), clock=now_ms)
    chain = await trail.chain(LAB)
    deleted = replace(_checkpoint(chain[2], trail.began), deleted=True)
    statement = await sign_statement(ring, deleted.claims(), type_=TYPE)
    await trail.store.put_audit_checkpoint(LAB, 3, statement)
    await trail.replace_chain(LAB, chain[3:])

    verdict = await trail.verdict()

    assert verdict.problem is None
    assert verdict.blocks == 2
