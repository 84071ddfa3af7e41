"""From one store into another, whatever the engines: safe to interrupt and to repeat.

A version never changes, and adding one that is there changes nothing: so a copy that was cut off
is simply made again, and what is there already is compared instead of written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.contract import Store, Version

T = TypeVar("T")
Put = Callable[[T], Awaitable[None]]

ENVIRONMENTS = ("sandbox", "production")
_PAGE = 200
_SIDE_BY_SIDE = 16
"""Resources under way at once: each may hold megabytes."""


@dataclass(slots=True)
class Progress:
    """How far a copy has come, in versions. ``total`` was counted at its beginning.

    ``kept`` names the clients and signing keys that the target has in another state, such as
    disabled since: it keeps its own.
    """

    total: int
    copied: int = 0
    there: int = 0
    kept: list[str] = field(default_factory=list)

    @property
    def seen(self) -> int:
        """How many are in the target now."""
        return self.copied + self.there


async def migrate(
    source: Store, target: Store, *, tell: Callable[[Progress], None] = lambda _progress: None
) -> Progress:
    """Copy tenants, clients, signing keys, and every version with its documents.

    ``tell`` is called after every page. What comes into the source meanwhile may be missed:
    another run copies it. Raises ConfigurationError if the target holds reports or tenants that
    are not those of the source, StoreUnavailable.
    """
    progress = Progress(await source.count())
    await _copy_access(source, target, progress)
    places = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def copy(versions: Sequence[tuple[str, Version]]) -> None:
        async with places:
            for tenant, each in versions:
                if await _copy_version(tenant, each, source, target):
                    progress.copied += 1
                else:
                    progress.there += 1

    after = ("", 0)
    while page := await source.walk(after=after, limit=_PAGE):
        resources = [list(each) for _id, each in groupby(page, key=lambda each: each[1].id)]
        await asyncio.gather(*map(copy, resources))
        after = (page[-1][1].id, page[-1][1].version)
        tell(progress)
    return progress


async def _copy_version(tenant: str, version: Version, source: Store, target: Store) -> bool:
    """Return whether the version had to be copied."""
    known = await target.version(tenant, version.id, version.version)
    if known is None:
        blobs = await source.blobs(tenant, version.documents)
        if len(blobs) < len(version.documents):
            raise StoreUnavailable(f"a document of {version.type}/{version.id} is missing")
        if await target.add(tenant, version, list(blobs.values())):
            return True
        known = await target.version(tenant, version.id, version.version)
    if known != version:
        raise ConfigurationError(
            f"the target holds another {version.type}/{version.id} version {version.version}: "
            "it is not a copy of this store"
        )
    return False


async def _copy_access(source: Store, target: Store, progress: Progress) -> None:
    for tenant in await source.tenants():
        other = await target.tenant(tenant.id)
        if other is not None and other.salt != tenant.salt:
            raise ConfigurationError(f"the target has another tenant with the id {tenant.id}")
        await _settle(tenant, other, tenant.id, target.put_tenant, progress)
    for client in await source.clients():
        has = await target.client(client.id)
        await _settle(client, has, client.id, target.put_client, progress)
    for environment in ENVIRONMENTS:
        known = {each.kid: each for each in await target.signing_keys(environment)}
        for key in await source.signing_keys(environment):
            await _settle(key, known.get(key.kid), key.kid, target.put_signing_key, progress)


async def _settle(record: T, there: T | None, name: str, put: Put[T], progress: Progress) -> None:
    """Copy a record that the target lacks; leave one that it has in another state."""
    if there is None:
        await put(record)
    elif there != record:
        progress.kept.append(name)
