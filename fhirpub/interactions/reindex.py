"""Rebuilds the search index when the indexed search parameters change.

That happens when a release or a plugin declares other search parameters, and once for a store
of a release that took none. Until it is done nothing is served, so that no search misses what
it should find. See ADR 19.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.runtime.logging import logger
from fhirpub.storage.contract import SearchQuery, Version
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant

_PAGE = 100

_log = logger()


async def reindex_if_needed(store: Store, searched: Mapping[str, SearchIndexer]) -> None:
    """Bring the values of all versions up to date; costs one read if they are.

    Safe to interrupt, to repeat, and for several processes at once. Types that are not enabled
    are left as they are. Raises StoreUnavailable.
    """
    rules = {name: search_indexer.rules for name, search_indexer in searched.items()}
    said = await store.search_rules()
    before = loads_stored(said.encode()) if said else {}
    after = before | rules
    if after == before:
        return
    tenants = {tenant.id: tenant for tenant in await store.tenants()}
    changed = {name for name in rules if rules[name] != before.get(name)}
    there = {name for name in changed if await _is_there(name, tenants, store)}
    if there:
        await _take_anew({name: searched[name] for name in there}, tenants, store)
    await store.put_search_rules(dumps(after).decode())


async def _is_there(type_name: str, tenants: Collection[str], store: Store) -> bool:
    query = SearchQuery(type=type_name, limit=1, count_up_to=0)
    for tenant in tenants:
        if (await store.search(tenant, query)).versions:
            return True
    return False


async def _take_anew(
    searched: Mapping[str, SearchIndexer], tenants: Mapping[str, Tenant], store: Store
) -> None:
    _log.info("reindex started", types=" ".join(sorted(searched)))
    after, search, changed = ("", 0), b"[]", 0
    while page := await store.scan(after=after, limit=_PAGE):
        replacing = []
        for tenant_id, version in page:
            of = searched.get(version.type)
            tenant = tenants.get(tenant_id)
            if of is None or tenant is None:
                continue
            search = _values(version, of, search, tenant)
            if search != version.search:
                key = (tenant_id, version.id, version.version)
                replacing.append(store.replace_search(*key, search))
        await asyncio.gather(*replacing)
        changed += len(replacing)
        after = (page[-1][1].id, page[-1][1].version)
    _log.info("reindex finished", versions=changed)


def _values(version: Version, searched: SearchIndexer, before: bytes, tenant: Tenant) -> bytes:
    """Return a version's values; ``before`` are those of the version before it, if it has one."""
    resource = loads_stored(version.body)
    if version.version == 1:
        return searched.values(resource, loads_stored(version.parts or b"{}"), limited=False)
    return searched.next_values(resource, before, tenant, limited=False)
