"""Whether what a store holds has the keys that the declared rules give it (ADR 41).

The id of a resource follows from its key. With a rule that gives stored resources other keys a
repetition would be registered as another resource, so that the service does not start with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from fhirpub.errors import ConfigurationError
from fhirpub.fhir.strict_json import JsonObject, loads_stored
from fhirpub.interactions.identity.identification import Identification, identification_of
from fhirpub.plugin_api import ResourceType
from fhirpub.storage.contract import KEY_RULES, SearchQuery, Version
from fhirpub.storage.criteria import IDENTIFIER, Criterion, TokenMatch
from fhirpub.storage.erasure.contract import erasures_of
from fhirpub.storage.store import Store

_PAGE = 100


def described_rules(
    types: Mapping[str, ResourceType], before: Mapping[str, str]
) -> dict[str, str]:
    """Return the rules by which a store will have its keys, as they are recorded in it.

    Those that no type declares, and that never were others, are not recorded.
    """
    described = {
        f"{KEY_RULES}{name}": identification_of(one).described for name, one in types.items()
    }
    return {name: said for name, said in described.items() if said or name in before}


def changed_rules(types: Mapping[str, ResourceType], before: Mapping[str, str]) -> list[str]:
    """Return the types whose keys do not follow from the rules that are recorded in a store."""
    return [
        name
        for name, one in types.items()
        if identification_of(one).described != before.get(f"{KEY_RULES}{name}", "")
    ]


async def refuse_other_keys(
    store: Store, types: Mapping[str, ResourceType], before: Mapping[str, str]
) -> None:
    """Raise ConfigurationError if declared rules give other keys to what a store holds.

    Costs nothing while no rule changes. Raises StoreUnavailable.
    """
    changed = {name: identification_of(types[name]) for name in changed_rules(types, before)}
    if not changed:
        return
    others = await _count_erased(store, changed)
    there = Counter(others)
    tenants = [tenant.id for tenant in await store.tenants()]
    if any([await is_found(_registered_as(name), tenants, store) for name in changed]):
        await _count_others(store, changed, there, others)
    problems = [
        _explained(name, there[name], others[name], changed[name], before)
        for name in sorted(+others)
    ]
    if problems:
        raise ConfigurationError("\n".join(problems))


async def _count_erased(store: Store, changed: Collection[str]) -> Counter[str]:
    """Count what was erased for good, by its type: of its content nothing is left to compare."""
    found: Counter[str] = Counter()
    async for one in erasures_of(store):
        if one.type in changed and one.version and not one.allows_reuse:
            found[one.type] += 1
    return found


def _registered_as(name: str) -> SearchQuery:
    """Return the search for a resource of a type that was not brought by others."""
    alone = Criterion(IDENTIFIER, (TokenMatch("", ""),), negated=True)
    return SearchQuery(type=name, criteria=(alone,), limit=1, count_up_to=0)


async def is_found(query: SearchQuery, tenants: Iterable[str], store: Store) -> bool:
    """Return whether a search finds anything of one of the tenants."""
    for tenant in tenants:
        if (await store.search(tenant, query)).versions:
            return True
    return False


async def _count_others(
    store: Store,
    changed: Mapping[str, Identification],
    there: Counter[str],
    others: Counter[str],
) -> None:
    """Count what is registered, and what would have another key, by its type."""
    after = ("", 0)
    while page := await store.scan(after=after, limit=_PAGE):
        for _tenant_id, version in page:
            if version.type in changed and version.is_first:
                there[version.type] += 1
                others[version.type] += _has_other_key(version, changed[version.type])
        after = (page[-1][1].id, page[-1][1].version)


def _has_other_key(first: Version, identification: Identification) -> bool:
    """Return whether a rule gives another key to what was registered as this version.

    A function may look at what was changed since it was sent.
    """
    if identification.rule.key is not None:
        return True
    return identification.key_in(loads_stored(first.body)) != (first.system, first.value)


def _explained(
    name: str,
    number: int,
    others: int,
    identification: Identification,
    before: Mapping[str, str],
) -> str:
    was = loads_stored((before.get(f"{KEY_RULES}{name}") or "{}").encode())
    now = loads_stored((identification.described or "{}").encode())
    differing = "; ".join(_differences(was, now))
    return (
        f"{name}: the plugin declares another rule for identifiers than the one by which the "
        f"store was filled ({differing}). {others} of {number} resources would no longer be found "
        "under their identifiers, and a repetition would register them twice. Go back to the "
        "release of the plugin with the earlier rule, or begin with an empty store and register "
        "the resources again"
    )


def _differences(was: JsonObject, now: JsonObject) -> Iterator[str]:
    for field in sorted(was.keys() | now.keys()):
        before, after = (rule.get(field, "the default") for rule in (was, now))
        if before != after:
            yield f"{field}: was {before}, is {after}"
