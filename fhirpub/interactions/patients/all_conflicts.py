"""Every identifier of a person that several Patients of a tenant have (ADR 26)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator, Sequence
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
"""After about so many, a search stops for now."""

Identifier = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Conflict:
    """An identifier in a declared system, and the Patients that have it."""

    system: str
    value: str
    patients: Sequence[str]


class ConflictSearch:
    """Looks for identifiers that several Patients have, in all versions, each read once.

    The order is that of their ids, so that memory does not grow with their number, and a search
    can go on after any of them.
    """

    def __init__(
        self,
        *,
        tenant: Tenant,
        context: Context,
        store: StoreAdmin,
        after: tuple[str, int] = ("", 0),
    ) -> None:
        """Begin after a version, named by its id and number."""
        self._tenant = tenant
        self._context = context
        self._store = store
        self._looked_up: OrderedDict[Identifier, None] = OrderedDict()
        self.after = after
        """The version that was read last."""
        self.read = 0
        """How many versions were read."""
        self.is_more = True
        """Whether there may be more versions."""

    async def conflicts(self, *, max_read: int) -> AsyncGenerator[Conflict, None]:
        """Yield conflicts, about `MAX_CONFLICTS`, each once; read about ``max_read`` versions."""
        reported: set[Identifier] = set()
        while self.read < max_read:
            page = await self._store.scan(after=self.after, limit=_PAGE)
            if not page:
                self.is_more = False
                return
            for tenant_id, version in page:
                if tenant_id != self._tenant.id or not version.parts:
                    continue
                for identifier in _doubtful(version, self._tenant, self._context):
                    conflict = await self._look_up(identifier)
                    if conflict is not None and identifier not in reported:
                        reported.add(identifier)
                        yield conflict
            self.after = page[-1][1].id, page[-1][1].version
            self.read += len(page)
            if len(reported) >= MAX_CONFLICTS:
                return

    async def _look_up(self, identifier: Identifier) -> Conflict | None:
        """Return the conflict of an identifier, unless it was looked up recently."""
        if identifier in self._looked_up:
            return None
        self._looked_up[identifier] = None
        if len(self._looked_up) > _REMEMBERED:
            self._looked_up.popitem(last=False)
        match = TokenMatch(*identifier)
        found = await patients_with(match, tenant=self._tenant, context=self._context)
        return Conflict(*identifier, found) if len(found) > 1 else None


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
