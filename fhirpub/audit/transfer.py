"""Copies the chains of all tenants into another store; safe to interrupt and to repeat."""

from __future__ import annotations

from fhirpub.audit.chain import with_keys
from fhirpub.errors import ConfigurationError
from fhirpub.storage.audit_contract import AuditBlock, AuditStore

_PAGE = 100


async def transfer_trail(source: AuditStore, target: AuditStore) -> int:
    """Copy what is sealed, with the checkpoints; return how many blocks were copied.

    Raises:
        ConfigurationError: The target has a trail of its own.
        StoreUnavailable: Another call goes on.
    """
    copied = 0
    for tenant in await source.audited_tenants():
        copied += await _transfer_chain(source, target, tenant)
        after = 0
        while page := await source.audit_checkpoints(tenant, after=after):
            for number, checkpoint in page:
                await target.put_audit_checkpoint(tenant, number, checkpoint)
            after = page[-1][0]
    return copied


async def _transfer_chain(source: AuditStore, target: AuditStore, tenant: str) -> int:
    copied, after = 0, 0
    while page := await source.audit_chain(tenant, after=after, limit=_PAGE):
        first = page[0].number - 1
        there = await target.audit_chain(tenant, after=first, limit=len(page))
        known = {block.number: block for block in there}
        for block in page:
            _compare(block, known.get(block.number, block))
            if block.number not in known:
                await target.put_audit_block(with_keys(block))
                copied += 1
        after = page[-1].number
    if (await target.audit_end(tenant))[0] > after:
        raise _conflict(tenant)
    return copied


def _compare(block: AuditBlock, there: AuditBlock) -> None:
    if block != there:
        raise _conflict(block.tenant)


def _conflict(tenant: str) -> ConfigurationError:
    chain = f"of tenant {tenant}" if tenant else "of the service"
    return ConfigurationError(
        f"the target has an audit trail {chain} of its own: it is not a copy of this store"
    )
