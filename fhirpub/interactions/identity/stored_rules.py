"""Whether what a store holds has the keys that the declared rules give it (ADR 41).

The id of a resource follows from its key. With a rule that gives stored resources other keys a
repetition would be registered as another resource, so that the service does not start with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fhirpub.errors import ConfigurationError
from fhirpub.fhir.strict_json import JsonObject, loads_stored
from fhirpub.interactions.identity.identification import Identification, identification_of
from fhirpub.plugin_api import ResourceType
from fhirpub.storage.contract import KEY_RULES, SearchQuery, Version
from fhirpub.storage.criteria import IDENTIFIER, Criterion, TokenMatch
from fhirpub.storage.erasure.tombstones import (
    erased_type,
    fhir_type,
    is_erased,
    tombstone_of,
)
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
    names = changed_rules(types, before)
    tenants = [tenant.id for tenant in await store.tenants()] if names else []
    changed = {
        name: identification_of(types[name])
        for name in names
        if await _is_there(name, tenants, store)
    }
    if not changed:
        return
    there: Counter[str] = Counter()
    others: Counter[str] = Counter()
    after = ("", 0)
    while page := await store.scan(after=after, limit=_PAGE):
        for _tenant_id, version in page:
            name = fhir_type(version.type)
            if name in changed and (version.is_first or _is_gone(version)):
                there[name] += 1
                others[name] += _has_other_key(version, changed[name])
        after = (page[-1][1].id, page[-1][1].version)
    problems = [
        _explained(name, there[name], others[name], changed[name], before)
        for name in sorted(+others)
    ]
    if problems:
        raise ConfigurationError("\n".join(problems))


async def _is_there(name: str, tenants: Sequence[str], store: Store) -> bool:
    """Return whether a type has resources that were registered alone, or any that were erased.

    What is erased keeps no identifier that would show whether it was.
    """
    alone = Criterion(IDENTIFIER, (TokenMatch("", ""),), negated=True)
    for tenant in tenants:
        for stored, criteria in ((name, (alone,)), (erased_type(name), ())):
            query = SearchQuery(type=stored, criteria=criteria, limit=1, count_up_to=0)
            if (await store.search(tenant, query)).versions:
                return True
    return False


def _is_gone(version: Version) -> bool:
    """Return whether a version stands for an erased resource that must never come again."""
    return is_erased(version) and version.version == 1 and not tombstone_of(version).allows_reuse


def _has_other_key(first: Version, identification: Identification) -> bool:
    """Return whether a rule gives another key to what was registered as this version.

    The content of an erased resource is gone. A function may look at what was changed since.
    """
    if is_erased(first) or identification.rule.key is not None:
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
