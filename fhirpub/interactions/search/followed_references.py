"""Which references of a type a search follows, and what they lead to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from fhirpub.interactions.indexing.persons import PATIENT, names_of_own_patients
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.interactions.search.includes import Include
from fhirpub.storage.criteria import SearchValue
from fhirpub.tenant import Tenant, is_resource_id

Key = tuple[str, str]
"""The type and the id of a resource."""


class FollowedReferences:
    """The references of one type that some includes follow forward, all of them at once.

    Args:
        searched: The type.
        includes: What is asked for; those in reverse follow nothing forward.
    """

    def __init__(self, searched: SearchIndexer, includes: Iterable[Include]) -> None:
        self._searched = searched
        self._targets: defaultdict[str, set[str]] = defaultdict(set)
        self._with_parts = False
        for one in includes:
            for name, target in () if one.reverse else one.references_of(searched):
                self._targets[name].add(target)
                self._with_parts |= not one.parameter

    @property
    def names(self) -> frozenset[str]:
        """The names of the search values that show what the references lead to."""
        return frozenset(self._targets)

    def keys_in(
        self, values: Collection[SearchValue], resource_id: str, tenant: Tenant
    ) -> Iterator[Key]:
        """Yield what the references of a resource lead to, maybe repeatedly.

        Args:
            values: The search values of the resource, at least those of `names`.
            resource_id: Its id.
            tenant: Its tenant.
        """
        own_patients = names_of_own_patients(values)
        for name, code, system in values:
            if system == PATIENT and code and name in own_patients:
                continue  # that is the person that it is found by as well
            if system and self._leads_to(name, str(system)):
                found = str(code)
                if not found:  # a part, whose id follows from that of the version
                    found = self._searched.own_part(str(system), resource_id, tenant)
                if is_resource_id(found):  # others are not held
                    yield str(system), found
        for part in self._searched.type.parts if self._with_parts else ():
            if not part.repeats and (part.type != PATIENT or own_patients):
                yield part.type, tenant.part_id(resource_id, part.name)

    def _leads_to(self, name: str, type_name: str) -> bool:
        return name in self._targets and not self._targets[name].isdisjoint(("", type_name))
