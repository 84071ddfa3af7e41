"""What a resource type is searched by, and the values for it, taken when a version is made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from functools import cached_property
from itertools import islice
from typing import Any

from fhirpub.fhir.schema import Schemas
from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.fhir.terminology import Terminology
from fhirpub.interactions.identity.identification import identification_of
from fhirpub.interactions.indexing.limits import (
    MAX_SEARCH_VALUES,
    encode_limited,
    refuse_excess,
)
from fhirpub.interactions.indexing.pairs import Pairing
from fhirpub.interactions.indexing.persons import (
    PATIENT,
    StatementNames,
    is_own,
    links_of,
    statement_id,
    take_statement,
)
from fhirpub.interactions.indexing.resolution import (
    IDENTIFIERS,
    ResolvedParameter,
    check_element,
    resolve_parameters,
)
from fhirpub.interactions.indexing.values import (
    TAKE,
    extract_typed,
    take_for,
    values_at,
    without_scheme,
)
from fhirpub.plugin_api import Part, ResourceType
from fhirpub.storage.criteria import (
    IDENTIFIER,
    SearchValue,
    TokenMatch,
    decode,
    encode,
)
from fhirpub.tenant import Tenant, is_resource_id

_FORM = 4
"""Changes when values are taken otherwise than before."""
_VALUE_SETS = "http://hl7.org/fhir/ValueSet"
_NOTHING: JsonObject = {}
_TYPED_IDENTIFIERS = frozenset({f"{IDENTIFIER}:of-type", f"{IDENTIFIERS}:of-type"})


class SearchIndexer:
    """A resource type as searches see it; one for the life of the service."""

    person_systems: Sequence[str] = ()
    """The systems whose identifiers stand for a person (ADR 26)."""

    def __init__(
        self,
        resource_type: ResourceType,
        *,
        schemas: Schemas,
        terminology: Terminology,
        fhir_url: str,
        zone: tzinfo,
        member: Part | None = None,
    ) -> None:
        """Take a declaration; raises ConfigurationError for elements that it cannot compare.

        ``member`` is the part by which resources of the type come with others, if they do.
        """
        self.type = resource_type
        self.member = member
        self.zone = zone
        self.relative_to = f"{without_scheme(fhir_url)}/"
        self.identification = identification_of(resource_type)
        self.identifiers = self._identifier_elements(schemas)
        known = list(resolve_parameters(resource_type, member, self.identifiers))
        self.parameters = {
            resolved_parameter.parameter.name: resolved_parameter for resolved_parameter in known
        }
        stored = {
            resolved_parameter.stored: resolved_parameter.parameter
            for resolved_parameter in known
            if resolved_parameter.stores
        }
        self._taken = [
            (name, take_for(parameter.type, name), *path.partition(".")[::2])
            for name, parameter in stored.items()
            for path in parameter.paths
        ]
        pairings = {pair.name: pair for one in known for pair in one.pairings}
        self._pairings = [(pair.heads, pair) for pair in pairings.values()]
        self.systems: dict[str, str] = {}
        identifiers = [] if self.identifiers else [(IDENTIFIER, IDENTIFIER)]
        for name, parameter in stored.items():
            for path in parameter.paths:
                values = check_element(parameter, path, resource_type, schemas)
                self.systems[name] = terminology.system_of(f"{_VALUE_SETS}/{values}")
                if values == "Identifier":
                    identifiers.append((name, path))
        self.typed = {name: f"{name}:of-type" for name, _path in identifiers}
        """Under which names identifiers are stored together with their types."""
        self._taken_typed = [
            (self.typed[name], *path.partition(".")[::2]) for name, path in identifiers
        ]
        self._describe_parts(resource_type, member)

    def _describe_parts(self, resource_type: ResourceType, member: Part | None) -> None:
        """Note which parts are searched through the resource, and which it refers to."""
        alone = [part for part in resource_type.parts if not part.repeats]
        self._chained = {
            f"{part.referred_by}:{part.type}.identifier": part
            for part in alone
            if part.type == PATIENT and part.referred_by
        }
        self._chain_of_member = (
            f"{member.patient}:{PATIENT}.identifier" if member and member.patient else ""
        )
        types = [part.type for part in alone]
        self._only = [part for part in alone if types.count(part.type) == 1]

    def _identifier_elements(self, schemas: Schemas) -> tuple[str, ...]:
        """Return the elements whose identifiers are search values; none if its key finds it.

        A member may have several identifiers, or none (ADR 24), if the rule of a type allows it.
        """
        if self.member is None and self.identification.is_single:
            return ()
        declared = self.identification.rule.elements
        has_list = schemas.element(self.type.name, IDENTIFIER) is not None
        usual = (IDENTIFIER,) if has_list or declared == (IDENTIFIER,) else ()
        return tuple(dict.fromkeys((*usual, *declared)))

    @cached_property
    def statements(self) -> Mapping[str, StatementNames]:
        """Under which names what is stated about its patients is stored, by their part."""
        patients = self._chained.values()
        return {part.name: StatementNames.of(part.referred_by) for part in patients}

    @property
    def rules(self) -> str:
        """What the values that are taken depend on, as a short text to compare."""
        taken = [(name, take.__name__, head, rest) for name, take, head, rest in self._taken]
        described = [
            _FORM,
            taken,
            self._taken_typed,
            list(self._chained),
            self.systems,
            str(self.zone),
            *(
                [[_described(pairing) for _heads, pairing in self._pairings]]
                if self._pairings
                else ()
            ),
            *([self._chain_of_member] if self._chain_of_member else ()),
            *([sorted(self.statements)] if self.statements else ()),
            *(self.person_systems if self.statements or self._chain_of_member else ()),
            *([self.identification.described] if self.identification.has_forms else ()),
        ]
        return hashlib.sha256(dumps(described)).hexdigest()[:16]

    def chains_of(self, known: ResolvedParameter, target: str) -> list[str]:
        """Return under which names the identifiers of what is referred to are stored."""
        chains = {name: part.referred_by for name, part in self._chained.items()}
        if self.member and self._chain_of_member:
            chains[self._chain_of_member] = self.member.patient
        return [
            name
            for name, element in chains.items()
            if element in known.parameter.paths and {target, known.target} <= {"", PATIENT}
        ]

    def includable(self) -> list[str]:
        """Return the parameters whose references can be followed."""
        return [
            name for name, known in self.parameters.items() if known.parameter.type == "reference"
        ]

    def own_part(self, type_name: str, resource_id: str, tenant: Tenant) -> str:
        """Return the id of the part that an empty code of this type stands for."""
        for part in self._only:
            if part.type == type_name:
                return tenant.part_id(resource_id, part.name)
        return ""

    def owners(self, type_name: str | None, part_id: str, tenant: Tenant) -> Iterator[TokenMatch]:
        """Return how resources match that refer to a part of their own: its id leads to theirs."""
        for part in self._only:
            if type_name in (None, part.type) and is_resource_id(part_id):
                yield TokenMatch(part.type, "", tenant.part_id(part_id, part.name))

    def values(
        self,
        resource: JsonObject,
        parts: Mapping[str, Any],
        *,
        persons: Mapping[str, str] = _NOTHING,
        limited: bool = True,
    ) -> bytes:
        """Return what the first version of a resource is found by, which these parts came with.

        ``persons`` has the ids of the persons that parts are, where the parts have ids of their
        own, by the names of the parts (ADR 26). Raises TooLarge for more than `MAX_SEARCH_VALUES`
        or `MAX_SEARCH_BYTES`, unless it is not ``limited``, because it is stored already.
        """
        values = self._values_of(
            resource, {name: part["id"] for name, part in parts.items() if is_own(part)}
        )
        for name, part in self._chained.items():
            if part.name in parts:
                self._take_patient(values, name, part, parts[part.name], resource, persons)
        return encode_limited(values, limited=limited)

    def _take_patient(
        self,
        values: list[SearchValue],
        name: str,
        part: Part,
        patient: JsonObject,
        resource: JsonObject,
        persons: Mapping[str, str],
    ) -> None:
        """Append what a resource is found by that a patient came with."""
        for one in patient.get("identifier", ()):
            TAKE["token"](values, name, one, self)
        person = persons.get(part.name, "")
        if person:
            values += [(name, person, PATIENT) for name, *own in values if own == ["", PATIENT]]
        number = int(resource["meta"]["versionId"])
        if is_own(patient) or patient["meta"]["versionId"] == statement_id(resource["id"], number):
            take_statement(
                values,
                patient,
                self.statements[part.name],
                self,
                patient_id=person or patient["id"],
                is_later=number > 1,
            )

    def values_of_member(
        self,
        resource: JsonObject,
        parts: Mapping[str, Any],
        *,
        persons: Mapping[str, str] = _NOTHING,
        limited: bool = True,
    ) -> bytes:
        """Return what a version of a member is found by; ``parts`` came with it (ADR 24).

        ``persons`` and what it raises is as in `values`.
        """
        values = self._values_of(resource, {})
        for name, part in parts.items() if self._chain_of_member else ():
            if part["resourceType"] == PATIENT:
                refers = (self._chain_of_member.partition(":")[0], part["id"], PATIENT) in values
                for one in part.get("identifier", ()) if refers else ():
                    TAKE["token"](values, self._chain_of_member, one, self)
                if name in persons:
                    known = [one for one in values if one[1:] == (part["id"], PATIENT)]
                    values += [(one[0], persons[name], PATIENT) for one in known]
        return encode_limited(values, limited=limited)

    def next_values(
        self, resource: JsonObject, before: bytes, tenant: Tenant, *, limited: bool = True
    ) -> bytes:
        """Return what a later version is found by: its parts are those of the first.

        Raises TooLarge as `values` does, but for a resource that had as many before: there was no
        limit when it was stored, and it must stay open to corrections.
        """
        known = decode(before)
        inherited = [item for item in known if item[0] in self._chained]
        ids = {part.name: tenant.part_id(resource["id"], part.name) for part in self._only}
        values = self._values_of(resource, ids)
        values += [*links_of(values, known), *inherited]
        encoded = encode(values)
        if limited and (len(values) > len(known) or len(encoded) > len(before)):
            refuse_excess(len(values), len(encoded))
        return encoded

    def _in_normal_form(self, identifier: JsonObject) -> JsonObject:
        """Return an identifier whose value is as it is compared."""
        system, value = identifier.get("system"), identifier.get("value")
        normal = self.identification.normal(system, value)
        return identifier if normal == value else {**identifier, "value": normal}

    def _declared_values(self, resource: JsonObject) -> list[SearchValue]:
        """Return what the parameters of the type find a resource by."""
        values: list[SearchValue] = []
        for name, take, head, rest in self._taken:
            if head not in resource:
                continue
            before, found = len(values), resource[head]
            if rest:
                found = values_at(resource, head, rest)
            elif type(found) is not list:
                found = (found,)
            if self.identification.has_forms and name == IDENTIFIERS:
                found = [self._in_normal_form(item) for item in found]
            for item in found:
                take(values, name, item, self)
            if found and len(values) == before:
                values.append((name, None, None))
        return values

    def _values_of_pairs(self, resource: JsonObject) -> Iterator[SearchValue]:
        for heads, pairing in self._pairings:
            if any(head in resource for head in heads):
                # Of thousands of elements this is too much.
                yield from islice(pairing.values_of(resource, self), MAX_SEARCH_VALUES + 1)

    def _values_of(self, resource: JsonObject, ids: Mapping[str, str]) -> list[SearchValue]:
        values = self._declared_values(resource)
        values += self._values_of_pairs(resource)
        for name, head, rest in self._taken_typed:
            for item in values_at(resource, head, rest) if head in resource else ():
                if "type" in item:
                    is_key = self.identification.has_forms and name in _TYPED_IDENTIFIERS
                    extract_typed(values, name, self._in_normal_form(item) if is_key else item)
        if not ids:
            return values
        own = {(part.type, ids.get(part.name)) for part in self._only}
        return [
            (value[0], "", value[2]) if (value[2], value[1]) in own else value for value in values
        ]


def _described(pairing: Pairing) -> list[str]:
    return [pairing.name, pairing.type]
