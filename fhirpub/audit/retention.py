"""Deletes the records whose retention has ended, under a signed statement about what went."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.audit.chain import with_keys
from fhirpub.audit.checkpoint import Checkpoint, Sign
from fhirpub.storage.audit_contract import AuditBlock, AuditStore

_BATCH_SIZE = 100


async def delete_expired(
    store: AuditStore, tenant: str, *, before: int, sign: Sign, now: int
) -> int:
    """Delete the first blocks of a chain, up to `_BATCH_SIZE`.

    The statement that they were deleted, with the hash that the rest of the chain follows, is
    durable before the first of them is gone. The last block stays, so that the chain goes on.

    Args:
        store: The store.
        tenant: The tenant of the chain.
        before: Delete blocks all of whose records are older than this, in milliseconds.
        sign: Signs the statement.
        now: The current time in milliseconds.

    Returns:
        How many blocks were deleted; fewer than `_BATCH_SIZE` if no others have expired.

    Raises:
        StoreUnavailable: Some may have been deleted; the next call goes on.
    """
    page = await store.audit_chain(tenant, limit=_BATCH_SIZE + 1)
    expired = _expired(page, before)
    if not expired:
        return 0
    last = expired[-1]
    statement = Checkpoint(tenant=tenant, number=last.number, hash=last.end, at=now, deleted=True)
    await store.put_audit_checkpoint(tenant, last.number, await sign(statement.claims()))
    await store.delete_audit_blocks(tenant, [*map(with_keys, expired)])
    return len(expired)


def _expired(page: Sequence[AuditBlock], before: int) -> list[AuditBlock]:
    """Return the blocks from the first on that have expired, without the last of the page."""
    expired = []
    for block in page[:-1]:
        if block.last >= before:
            break
        expired.append(block)
    return expired
