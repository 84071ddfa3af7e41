"""What a store promises about the audit trail: no record is lost, and each is sealed once.

A record is a line of JSON. That of a write arrives in its version (``Version.audit``), within the
commit; all others are handed in with `AuditStore.add_audit_records`. One process at a time seals
what has arrived, into the blocks of a chain for each tenant (ADR 35); of two that assume it, one
finds the number of its block taken. The lines themselves mean nothing to a store.

Every method may raise StoreUnavailable; every write is safe to repeat.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fhirpub.storage.contract import MAX_PAGE_BYTES

HASH_BYTES = 32
"""The size of a hash of the chain: SHA-256."""
MAX_UNSEALED_BYTES = 256 * 1024
"""The size in bytes at which records of one kind are no longer handed in, or sealed, together."""
MAX_BLOCK_SPAN_MS = 3_600_000
"""The longest time between the first and the last record of a block, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditBlock:
    """Records of one tenant that were sealed together.

    Attributes:
        tenant: The tenant; empty for the records of the service itself.
        number: The place of the block in the chain of its tenant, counted from 1.
        first: The earliest time of its records, in milliseconds.
        last: The latest time of its records, at most ``MAX_BLOCK_SPAN_MS`` after ``first``.
        records: The records, each a line of JSON that ends with a line feed.
        hashes: The hash of the chain after each record, one behind the other.
    """

    tenant: str
    number: int
    first: int
    last: int
    records: bytes
    hashes: bytes

    @property
    def end(self) -> bytes:
        """The hash of the chain after the last record."""
        return self.hashes[-HASH_BYTES:]

    @property
    def place(self) -> tuple[int, int]:
        """The place of the block in the order of `AuditQuery`."""
        return self.first, self.number


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedVersion:
    """What the record of a write needs of its version.

    Attributes:
        type: The FHIR type of the resource.
        id: The id of the resource.
        version: The number of the version.
        updated: When it was created, in milliseconds.
    """

    type: str
    id: str
    version: int
    updated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsealedEntry:
    """Records that are durable, and not sealed yet.

    Attributes:
        tenant: Their tenant; empty for those of the service itself.
        records: What was handed in, lines of JSON; or the record of a write, as `Version.audit`
            has it.
        version: The version that was written; None for what was handed in.
        source: Where the engine finds the entry; opaque.
    """

    tenant: str
    records: bytes
    version: AuditedVersion | None
    source: object


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsealedAudit:
    """Entries of the audit trail that wait to be sealed.

    Attributes:
        entries: The entries, those of writes first, each kind in the order in which it came.
        ends: The number of the last block of each tenant that has entries here, and the hash of
            its chain after it; 0 and nothing if it has none.
        place: Where the engine finds them; opaque.
        is_complete: Whether there were no others. If there were, what follows is returned once
            these are sealed, also if there are none.
    """

    entries: Sequence[UnsealedEntry]
    ends: Mapping[str, tuple[int, bytes]]
    place: object
    is_complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedBlock:
    """A block with the keys that it is found by, and the entries that it was made of.

    Attributes:
        block: The block.
        keys: Signed 64-bit numbers, computed from the tenant and from what its records name.
        entries: The entries whose records it holds; none in a copy.
    """

    block: AuditBlock
    keys: frozenset[int]
    entries: tuple[UnsealedEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Blocks of a tenant that may contain what is searched, the newest first.

    Attributes:
        keys: The block has all of these keys, see `SealedBlock`.
        since: The block ends at this time or later, in milliseconds.
        until: The block begins at this time or before, in milliseconds.
        before: The block stands behind this place, the ``first`` and ``number`` of a block, in
            the order of descending places.
        limit: The maximum number of blocks.
        size: The size of records in bytes at which no other block follows.
    """

    keys: tuple[int, ...] = ()
    since: int | None = None
    until: int | None = None
    before: tuple[int, int] | None = None
    limit: int = 20
    size: int = MAX_PAGE_BYTES


class AuditStore(ABC):
    """The audit trail: records that wait to be sealed, blocks, and signed checkpoints."""

    @abstractmethod
    async def add_audit_records(self, records: Mapping[str, bytes]) -> None:
        """Store records durably, to be sealed.

        A call that is repeated after StoreUnavailable may store them twice.

        Args:
            records: Lines of JSON, each with its line feed, by tenant.
        """

    @abstractmethod
    async def unsealed_audit(self, *, limit: int, tenants: Collection[str] = ()) -> UnsealedAudit:
        """Return entries that are not sealed.

        Args:
            limit: The maximum number of entries of writes, and of others; fewer if these reach
                ``MAX_UNSEALED_BYTES``.
            tenants: Tenants whose ends are needed, also if they have no entries.
        """

    @abstractmethod
    async def seal_audit(self, blocks: Sequence[SealedBlock], unsealed: UnsealedAudit) -> bool:
        """Add blocks that hold all entries of ``unsealed``, which are then sealed.

        They may hold other records as well, which were never handed in.

        Killed anywhere in between, no record is in two blocks, and none is lost: what is sealed
        already is left out of what `unsealed_audit` returns next.

        Args:
            blocks: The next blocks of each tenant in ``unsealed.ends``, in the order of its chain.
                Each entry is in one of them.
            unsealed: What `unsealed_audit` returned to this process last.

        Returns:
            Whether they were added. False means that the number of one of them is taken: another
            process seals. Blocks of other tenants may have been added then.
        """

    @abstractmethod
    async def put_audit_block(self, sealed: SealedBlock) -> None:
        """Store a copy of a block of another store, unless there is one of its number."""

    @abstractmethod
    async def audit_end(self, tenant: str) -> tuple[int, bytes]:
        """Return the number of the last block of a chain and the hash at its end, never stale.

        0 and nothing if the tenant has no chain.
        """

    @abstractmethod
    async def audit_chain(
        self, tenant: str, *, after: int = 0, limit: int = 100
    ) -> Sequence[AuditBlock]:
        """Return blocks in the order of the chain.

        Args:
            tenant: The tenant; empty for the chain of the service.
            after: Return only blocks with a higher number.
            limit: The maximum number of blocks.

        Returns:
            The blocks; fewer than ``limit`` also if they reach about ``MAX_PAGE_BYTES``. Empty
            only if there are no more.
        """

    @abstractmethod
    async def find_audit_blocks(self, tenant: str, query: AuditQuery) -> Sequence[AuditBlock]:
        """Return blocks in the descending order of ``first`` and ``number``."""

    @abstractmethod
    async def audited_tenants(self) -> Sequence[str]:
        """Return the tenants that have a chain, ordered; the empty one is the service's."""

    @abstractmethod
    async def delete_audit_blocks(self, tenant: str, blocks: Sequence[SealedBlock]) -> None:
        """Delete the first blocks of a chain, and the checkpoints below the last of them.

        The last block of a chain must stay: the next one continues from it. A call that was
        interrupted may have deleted some of the blocks.

        Args:
            tenant: The tenant of the blocks.
            blocks: The blocks, in the order of the chain.
        """

    @abstractmethod
    async def put_audit_checkpoint(self, tenant: str, number: int, checkpoint: str) -> None:
        """Store a signed statement about the chain up to a block.

        Args:
            tenant: The tenant of the chain.
            number: The number of the last block that it covers; one that was stored under it is
                replaced.
            checkpoint: The statement, as a compact JWS (RFC 7515).
        """

    @abstractmethod
    async def audit_checkpoints(
        self, tenant: str, *, after: int = 0, limit: int = 1_000
    ) -> Sequence[tuple[int, str]]:
        """Return checkpoints in ascending order of the blocks that they cover.

        Args:
            tenant: The tenant of the chain.
            after: Return only those that cover a block with a higher number.
            limit: The maximum number of checkpoints.

        Returns:
            The number of the last block that each covers, with the statement.
        """
