"""Every identifier of a person that several Patients of a tenant have (ADR 26)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass

from fhirpub.fhir.strict_json import JsonObject, loads_stored
from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import current_values, is_own, person_of
from fhirpub.interactions.patients.conflicts import patients_with
from fhirpub.interactions.patients.parts import sources_of_type
from fhirpub.storage.contract import StoreAdmin, Version
from fhirpub.storage.criteria import TokenMatch
from fhirpub.tenant import Tenant

_PAGE = 100
_REMEMBERED = 100_000
"""So many identifiers are known to have been looked up, about 30 MB: those of the last reports."""
MAX_CONFLICTS = 1_000
"""So many conflicts are reported at a time."""

Identifier = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Conflict:
    """An identifier in a declared system, and the Patients that have it."""

    system: str
    value: str
    patients: Sequence[str]


async def all_conflicts(
    *, tenant: Tenant, context: Context, store: StoreAdmin, on_progress: Callable[[int], None]
) -> AsyncGenerator[Conflict, None]:
    """Yield identifiers that several Patients have, at most `MAX_CONFLICTS`, each once.

    All versions in the store are read once, in the order of their ids, so that memory does not
    grow with their number. ``on_progress`` is called with the number that was read.
    """
    looked_up: OrderedDict[Identifier, None] = OrderedDict()
    reported: set[Identifier] = set()
    after, read = ("", 0), 0
    while page := await store.scan(after=after, limit=_PAGE):
        for tenant_id, version in page:
            if tenant_id != tenant.id or not version.parts:
                continue
            for identifier in _doubtful(version, tenant, context):
                if identifier in looked_up or identifier in reported:
                    continue
                _remember(looked_up, identifier)
                match = TokenMatch(*identifier)
                found = await patients_with(match, tenant=tenant, context=context)
                if len(found) > 1:
                    reported.add(identifier)
                    yield Conflict(*identifier, found)
                    if len(reported) == MAX_CONFLICTS:
                        return
        after, read = (page[-1][1].id, page[-1][1].version), read + len(page)
        on_progress(read)


def _remember(looked_up: OrderedDict[Identifier, None], identifier: Identifier) -> None:
    looked_up[identifier] = None
    if len(looked_up) > _REMEMBERED:
        looked_up.popitem(last=False)


def _doubtful(version: Version, tenant: Tenant, context: Context) -> Iterator[Identifier]:
    """Yield the identifiers of a statement that lead to another Patient than the stated one.

    Of two Patients with one identifier, it leads to one at most: the other one shows it.
    """
    parts = loads_stored(version.parts)
    for source in sources_of_type(version.type, context):
        if source.part in parts:
            yield from _leading_elsewhere(parts[source.part], tenant, context)


def _leading_elsewhere(
    patient: JsonObject, tenant: Tenant, context: Context
) -> Iterator[Identifier]:
    systems = context.config.patients.person_systems
    person = patient["id"]
    if is_own(patient):  # from before its systems were declared
        person = person_of(patient, systems, tenant) or person
    for system in systems:
        for value in sorted(current_values(patient, system)):
            if tenant.person_id(system, value) != person:
                yield system, value
