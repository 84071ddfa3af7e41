"""Verifies a chain: each record follows from those before it, and the checkpoints attest it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from fhirpub.audit.chain import beginning, first_wrong, records_of, time_of
from fhirpub.audit.checkpoint import Checkpoint, Read, checkpoint_of
from fhirpub.storage.audit_contract import AuditBlock, AuditStore

UNCOVERED_MS = 3_600_000
"""How long ago the last records may have been written that no checkpoint covers."""
_PAGE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong, and where it begins.

    Attributes:
        text: What is wrong, with what it may mean.
        block: The number of the block.
        place: The place of the record in it, counted from 0.
    """

    text: str
    block: int
    place: int = 0

    def __str__(self) -> str:
        return f"block {self.block}, record {self.place}: {self.text}"


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What was verified of a chain, and the first problem if there is one."""

    tenant: str
    blocks: int = 0
    records: int = 0
    checkpoints: int = 0
    first: int | None = None
    """The time of the first record, in milliseconds."""
    last: int | None = None
    problem: Problem | None = None


@dataclass(slots=True)
class _Attested:
    """Checkpoints whose signatures are right, by the blocks that they cover."""

    by_block: dict[int, list[Checkpoint]] = field(default_factory=dict)
    wrong: Problem | None = None

    def note_wrong(self, number: int, text: str) -> None:
        """Note a checkpoint that attests nothing, unless there was one before."""
        self.wrong = self.wrong or Problem(text=text, block=number)

    @property
    def deleted(self) -> Checkpoint | None:
        """The last statement that blocks were deleted."""
        every = (one for some in self.by_block.values() for one in some if one.deleted)
        return max(every, key=lambda one: one.number, default=None)

    @property
    def last(self) -> int:
        """The last block that one covers; 0 if there is none."""
        return max(self.by_block, default=0)


async def verify(
    store: AuditStore,
    tenant: str,
    *,
    read: Read,
    now: int,
    outside: Iterable[str] = (),
    on_progress: Callable[[Verdict], None] = lambda _verdict: None,
) -> Verdict:
    """Verify the chain of a tenant.

    Args:
        store: The store.
        tenant: The tenant; empty for the chain of the service.
        read: Verifies a checkpoint.
        now: The current time in milliseconds.
        outside: Checkpoints that were kept outside the store, of any tenants.
        on_progress: Called after each page.

    Returns:
        What was verified. Its ``problem`` is the first in the order of the chain.

    Raises:
        StoreUnavailable: The store cannot be read.
    """
    verdict = Verdict(tenant=tenant)
    attested = await _attested(store, tenant, read, outside)
    verdict.checkpoints = sum(map(len, attested.by_block.values()))
    walk = _Walk(tenant, attested)
    async for block in blocks_of(store, tenant):
        records = records_of(block)
        verdict.problem = walk.check(block, records)
        if verdict.problem is not None:
            break
        verdict.blocks += 1
        verdict.records += len(records)
        verdict.first = block.first if verdict.first is None else verdict.first
        verdict.last = block.last
        if verdict.blocks % _PAGE == 0:
            on_progress(verdict)
    else:
        verdict.problem = walk.check_end(verdict, now=now)
    if verdict.problem is None:
        verdict.problem = attested.wrong
    on_progress(verdict)
    return verdict


async def _attested(
    store: AuditStore, tenant: str, read: Read, outside: Iterable[str]
) -> _Attested:
    attested = _Attested()
    after = 0
    while page := await store.audit_checkpoints(tenant, after=after):
        for number, signed in page:
            await _add(attested, signed, tenant, read, number=number)
        after = page[-1][0]
    for signed in outside:
        await _add(attested, signed, tenant, read)
    return attested


async def _add(
    attested: _Attested, signed: str, tenant: str, read: Read, *, number: int = 0
) -> None:
    """Add a checkpoint of the store, or one from outside if it is of this tenant."""
    try:
        checkpoint = checkpoint_of(await read(signed))
    except ValueError as error:
        attested.note_wrong(number, f"a checkpoint is not right: {error}")
        return
    if number and (checkpoint.tenant, checkpoint.number) != (tenant, number):
        attested.note_wrong(number, "a checkpoint is of another chain or block")
        return
    if checkpoint.tenant == tenant:
        attested.by_block.setdefault(checkpoint.number, []).append(checkpoint)


async def blocks_of(store: AuditStore, tenant: str) -> AsyncIterator[AuditBlock]:
    """Yield the blocks of a chain in their order, read in pages."""
    after = 0
    while page := await store.audit_chain(tenant, after=after, limit=_PAGE):
        for block in page:
            yield block
        after = page[-1].number


class _Walk:
    """Follows a chain from block to block."""

    def __init__(self, tenant: str, attested: _Attested) -> None:
        self._attested = attested
        self._number = 0
        self._end = beginning(tenant)
        self._covered = 0
        """The last block that a checkpoint has attested."""
        deleted = attested.deleted
        if deleted is not None:  # whatever is left of what was deleted, the rest follows it
            self._number = self._covered = deleted.number
            self._end = deleted.hash
        self._deleted = self._number

    def check(self, block: AuditBlock, records: Sequence[bytes]) -> Problem | None:
        """Return what is wrong with the next block, None if it follows and is attested.

        ``records`` are those of the block.
        """
        if block.number <= self._deleted:
            return None
        if block.number != self._number + 1:
            text = f"blocks {self._number + 1} to {block.number - 1} are missing"
            return Problem(text=text, block=self._number + 1)
        place = first_wrong(records, block.hashes, self._end)
        if place is not None:
            text = "does not follow from the record before: one of them was changed or removed"
            return Problem(text=text, block=block.number, place=place)
        if not _states_its_times(block, records):
            text = "the times of the block are not those of its records"
            return Problem(text=text, block=block.number)
        self._number, self._end = block.number, block.end
        for checkpoint in self._attested.by_block.get(block.number, ()):
            if checkpoint.hash != block.end:
                text = (
                    f"the chain up to block {block.number} is not the one that was signed: "
                    "records were changed after this one, and all hashes computed again"
                )
                return Problem(text=text, block=self._covered + 1)
        if block.number in self._attested.by_block:
            self._covered = block.number
        return None

    def check_end(self, verdict: Verdict, *, now: int) -> Problem | None:
        """Return what is wrong with the end of the chain."""
        if self._attested.last > self._number:
            text = f"the chain ends here, and was signed up to block {self._attested.last}"
            return Problem(text=text, block=self._number + 1)
        if verdict.last is None or self._covered == self._number:
            return None
        if now - verdict.last > UNCOVERED_MS:
            text = "the last records are older than an hour, and no checkpoint covers them"
            return Problem(text=text, block=self._covered + 1)
        return None


def _states_its_times(block: AuditBlock, records: Iterable[bytes]) -> bool:
    """Return whether the times by which a block is found are those of its records."""
    times = [*map(time_of, records)]
    return (block.first, block.last) == (min(times), max(times))
