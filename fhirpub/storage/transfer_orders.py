"""From one store into another: what operators ordered, which is quotas, erasures and holds.

And what clients did, and by which rules the keys in it were made.
"""

from __future__ import annotations

from dataclasses import replace

import orjson

from fhirpub.storage.contract import KEY_RULES
from fhirpub.storage.erasure.contract import Erasure, erasures_of
from fhirpub.storage.store import Store

_PAGE = 1_000
_OF_TWO = '{"rule":"that of two stores"}'


async def copy_erasures(source: Store, target: Store) -> None:
    """Copy orders to erase, and holds, and erase what the target still has (ADR 36).

    A copy of before an erasure still has the content. An order is finished in the target when
    nothing is left there: if the copy is interrupted before, a service on it goes on.
    """
    async for erasure in erasures_of(source):
        await _repeat(erasure, target)
    for tenant in await source.tenants():
        await target.erase_documents(tenant.id, ())
        for hold in await source.holds(tenant.id):
            await target.put_hold(hold)
    async for erasure in erasures_of(source):
        if await target.version(erasure.tenant, erasure.id, erasure.version):
            await target.put_erasure(erasure)


async def _repeat(erasure: Erasure, target: Store) -> None:
    """Erase what the target has of a resource; its order is not finished there."""
    tombstone = await target.version(erasure.tenant, erasure.id, erasure.version)
    number = erasure.version if tombstone else 0  # until the next run copies it
    await target.put_erasure(replace(erasure, version=number, finished=None))
    while tombstone and await target.erase_versions(erasure.tenant, tombstone):
        pass


async def copy_uses(source: Store, target: Store) -> None:
    """Copy when clients were last used, and which assertions were.

    The target must not accept those once more (ADR 38).
    """
    await target.put_client_uses(await source.client_uses())
    after = ("", "")
    while page := await source.used_assertions(after=after, limit=_PAGE):
        await target.put_used_assertions(page)
        after = (page[-1].owner, page[-1].jti)


async def copy_quotas(source: Store, target: Store) -> list[str]:
    """Return the names of limits that the target goes on having: no record shows which is later.

    What was used is not copied: it is counted again from the first request on.
    """
    there = {(item.owner, item.quota): item for item in await target.quota_overrides()}
    ours = await source.quota_overrides()
    new = [item for item in ours if (item.owner, item.quota) not in there]
    if new:
        await target.put_quota_overrides(new)
    differing = [item for item in ours if there.get((item.owner, item.quota), item) != item]
    return [f"{item.quota} of {item.owner}" for item in differing]


def rules_of_keys(rules: str, there: str) -> str:
    """Return the rules of two stores that keys follow from (ADR 41).

    Where they differ it is none that a type declares, so that the next start compares the keys.
    """
    one, other = _read(rules), _read(there)
    kept = {
        name: said if one.get(name, said) == other.get(name, said) else _OF_TWO
        for name, said in {**one, **other}.items()
        if name.startswith(KEY_RULES)
    }
    return orjson.dumps(kept).decode()


def _read(rules: str) -> dict[str, str]:
    try:
        read = orjson.loads(rules)
    except orjson.JSONDecodeError:
        return {}
    return read if isinstance(read, dict) else {}
