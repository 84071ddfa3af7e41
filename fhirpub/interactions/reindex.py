"""Rebuilds the search index when the indexed search parameters change.

That happens when a release or a plugin declares other search parameters, and once for a store
of a release that took none. Until it is done nothing is served, so that no search misses what
it should find. See ADR 19.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored
from fhirpub.interactions.identity.stored_rules import (
    described_rules,
    is_found,
    refuse_other_keys,
)
from fhirpub.interactions.indexing.persons import is_own, persons_of
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.plugin_api import ResourceType
from fhirpub.runtime.logging import logger
from fhirpub.storage.contract import SearchQuery, Version
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant

_PAGE = 100
_SIDE_BY_SIDE = 500
"""So many values are replaced together: a page may have thousands of members, more than a store
lets wait."""

_log = logger()


async def reindex_if_needed(store: Store, searched: Mapping[str, SearchIndexer]) -> None:
    """Bring the values of all versions up to date; costs one read if they are.

    Safe to interrupt, to repeat, and for several processes at once. Types that are not enabled
    are left as they are. Raises StoreUnavailable, and ConfigurationError if the types declare
    other keys for what is stored.
    """
    before = await refuse_changed_keys(store, searched)
    after = _rules_after(searched, before)
    if after == before:
        return
    tenants = {tenant.id: tenant for tenant in await store.tenants()}
    changed = {name for name in searched if after[name] != before.get(name)}
    there = {name for name in changed if await is_found(_any_of(searched[name]), tenants, store)}
    if there:
        await _reindex({name: searched[name] for name in there}, tenants, store)
    await store.put_search_rules(dumps(after).decode())


async def refuse_changed_keys(
    store: Store, searched: Mapping[str, SearchIndexer]
) -> Mapping[str, str]:
    """Return the rules by which what a store holds was computed, searches and keys.

    Raises StoreUnavailable, and ConfigurationError if the types declare other keys for it.
    """
    before = await _rules_in(store)
    await refuse_other_keys(store, _registered(searched), before)
    return before


async def is_indexed(store: Store, searched: Mapping[str, SearchIndexer]) -> bool:
    """Return whether the values in a store are those that these types are searched by."""
    before = await _rules_in(store)
    return _rules_after(searched, before) == before


def _rules_after(
    searched: Mapping[str, SearchIndexer], before: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the rules of a store once it holds what these types are searched by."""
    rules = {name: one.rules for name, one in searched.items()}
    return {**before, **rules, **described_rules(_registered(searched), before)}


def _registered(searched: Mapping[str, SearchIndexer]) -> dict[str, ResourceType]:
    """Return the types whose resources do not only come with others: these alone have keys."""
    return {name: one.type for name, one in searched.items() if one.type.create_statuses}


async def _rules_in(store: Store) -> JsonObject:
    """Return the rules by which the values in a store were computed, by type."""
    said = await store.search_rules()
    rules: JsonObject = loads_stored(said.encode()) if said else {}
    return rules


def _any_of(of: SearchIndexer) -> SearchQuery:
    """Return the search for a resource of a type, or a member of others."""
    has_members = of.member is not None
    return SearchQuery(type=of.type.name, limit=1, count_up_to=0, has_members=has_members)


async def _reindex(
    searched: Mapping[str, SearchIndexer], tenants: Mapping[str, Tenant], store: Store
) -> None:
    _log.info("reindex started", types=" ".join(sorted(searched)))
    after, before, changed = ("", 0), _Before(), 0
    while page := await store.scan(after=after, limit=_PAGE):
        replacing = [
            (tenant_id, one.id, one.version, search)
            for tenant_id, version in page
            if (tenant := tenants.get(tenant_id)) is not None
            for one, search in _values(version, searched, before, tenant)
            if search != one.search
        ]
        for start in range(0, len(replacing), _SIDE_BY_SIDE):
            some = replacing[start : start + _SIDE_BY_SIDE]
            await asyncio.gather(*(store.replace_search(*one) for one in some))
        changed += len(replacing)
        after = (page[-1][1].id, page[-1][1].version)
    _log.info("reindex finished", versions=changed)


@dataclass(slots=True)
class _Before:
    """What is known of the versions of a resource before the next one."""

    search: bytes = b"[]"
    parts: JsonObject = field(default_factory=dict)


def _values(
    version: Version, searched: Mapping[str, SearchIndexer], before: _Before, tenant: Tenant
) -> Iterator[tuple[Version, bytes]]:
    """Yield a version with its values, and each of its members; ``before`` follows along."""
    brings_parts = version.is_first or version.parts  # later ones if they state others
    if brings_parts:
        before.parts = loads_stored(version.parts or b"{}")
    if (of := searched.get(version.type)) is not None:
        resource = loads_stored(version.body)
        if brings_parts:
            persons = _persons(of, before.parts, tenant)
            before.search = of.values(resource, before.parts, persons=persons, limited=False)
        else:
            before.search = of.next_values(resource, before.search, tenant, limited=False)
        yield version, before.search
    for member in version.members:
        if (of := searched.get(member.type)) is not None:
            resource, persons = loads_stored(member.body), _persons(of, before.parts, tenant)
            values = of.values_of_member(resource, before.parts, persons=persons, limited=False)
            yield member, values


def _persons(
    searched: SearchIndexer, parts: Mapping[str, JsonObject], tenant: Tenant
) -> dict[str, str]:
    """Return which persons the parts are that have ids of their own (ADR 26)."""
    own = {name: part for name, part in parts.items() if is_own(part)}
    return persons_of(own, searched.person_systems, tenant)
