"""From the search parameters that a type declares to where their values are stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from fhirpub.errors import ConfigurationError
from fhirpub.fhir.schema import Schemas
from fhirpub.interactions.indexing.pairs import Pairing, pairings_of
from fhirpub.interactions.indexing.texts import FAMILY, GIVEN
from fhirpub.plugin_api import Part, ResourceType, SearchParameter, r4_parameter
from fhirpub.storage.criteria import IDENTIFIER

IDENTIFIERS = "identifiers"
"""The name under which the identifiers are stored of types that may have several, or none."""
_PATIENT = "Patient"
_ELEMENTS = {
    "token": frozenset({"CodeableConcept", "Coding", "Identifier", "code", "boolean"}),
    "date": frozenset({"date", "dateTime", "instant", "Period", "Timing"}),
    "reference": frozenset({"Reference"}),
    "quantity": frozenset({"Quantity", "Age", "Count", "Distance", "Duration"}),
    "number": frozenset({"decimal", "integer", "positiveInt", "unsignedInt"}),
    "string": frozenset({"string", "markdown", "HumanName"}),
    "uri": frozenset({"uri", "url", "canonical", "oid", "uuid"}),
}
_SORTED = "date"
"""What is sorted by several elements is stored under one name."""


@dataclass(frozen=True, slots=True)
class ResolvedParameter:
    """A parameter of a type. ``target`` is the type that its references must have, if any.

    ``apart`` is the name that values are stored under, unless it follows from the elements. A
    parameter with a ``kind`` is served by the texts of this kind that another one stores there.
    ``others`` are the names under which others store the values of each of its elements, if they
    do: it needs none of its own. A composite has ``pairings``.
    """

    parameter: SearchParameter
    target: str = ""
    apart: str = ""
    kind: str | None = None
    others: tuple[str, ...] = ()
    pairings: tuple[Pairing, ...] = ()

    @property
    def stored(self) -> str:
        """The name that values are stored under: parameters over the same elements share it."""
        return self.apart or "|".join(self.parameter.paths)

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which its values are stored."""
        return self.others or (self.stored,)

    @property
    def stores(self) -> bool:
        """Whether values are stored for it, and for those that share them."""
        return self.kind is None and not self.others and not self.pairings

    @property
    def is_sortable(self) -> bool:
        """Whether resources can be sorted by it."""
        return self.parameter.type != "reference" and not self.others and not self.pairings


def resolve_parameters(
    resource_type: ResourceType, member: Part | None, identifiers: tuple[str, ...]
) -> Iterator[ResolvedParameter]:
    """Yield what a type is searched by; ``member`` is the part by which it comes with others.

    ``identifiers`` are the elements whose identifiers are search values, if they are.
    """
    yield from _common_parameters(resource_type, member, identifiers)
    names = {one.paths for one in resource_type.search if one.type == "string"}
    single = {(one.type, *one.paths) for one in resource_type.search if len(one.paths) == 1}
    simple = [one for one in resource_type.search if one.type != "composite"]
    known = {one.name: _resolve(one, names, single) for one in simple}
    for parameter in resource_type.search:
        yield known.get(parameter.name) or _composite(parameter, known)


def _composite(
    parameter: SearchParameter, known: Mapping[str, ResolvedParameter]
) -> ResolvedParameter:
    first, second = (known[name] for name in parameter.components)
    pairings = pairings_of(_stored_at(first), _stored_at(second), second.parameter.type)
    return ResolvedParameter(parameter, pairings=tuple(pairings))


def _stored_at(of: ResolvedParameter) -> dict[str, str]:
    """Return the elements of a parameter, each with the name that its values are stored under."""
    return {path: path if of.others else of.stored for path in of.parameter.paths}


def _resolve(
    parameter: SearchParameter,
    names: Collection[tuple[str, ...]],
    single: Collection[tuple[str, ...]],
) -> ResolvedParameter:
    """Return a parameter.

    Parts of a name are among the texts of the name, if that is indexed. What others index one by
    one, each a ``single`` element with its type, is not indexed again, unless it may be sorted by.
    """
    paths, type_ = parameter.paths, parameter.type
    if len(paths) > 1 and type_ != _SORTED and all((type_, path) in single for path in paths):
        return ResolvedParameter(parameter, others=paths)
    name, _, kind = parameter.paths[0].rpartition(".")
    is_part = kind in (FAMILY, GIVEN) and (name,) in names and len(parameter.paths) == 1
    if is_part and parameter.type == "string":
        return ResolvedParameter(parameter, apart=name, kind=kind)
    return ResolvedParameter(parameter)


def _common_parameters(
    resource_type: ResourceType, member: Part | None, identifiers: tuple[str, ...]
) -> Iterator[ResolvedParameter]:
    """Yield the parameters that no declaration names."""
    if member is None or resource_type.create_statuses or member.statuses:
        yield ResolvedParameter(SearchParameter(name="status", type="token", paths=("status",)))
    if identifiers:
        several = SearchParameter(name=IDENTIFIER, type="token", paths=identifiers)
        yield ResolvedParameter(several, apart=IDENTIFIERS)
    patients = {part.referred_by: None for part in resource_type.parts if part.type == _PATIENT}
    patients |= {member.patient: None} if member else {}
    for element in filter(None, patients):
        patient = r4_parameter("clinical-patient", "reference", element)
        yield ResolvedParameter(patient, target=_PATIENT)


def check_element(
    parameter: SearchParameter, path: str, resource_type: ResourceType, schemas: Schemas
) -> str:
    """Return the name of the values of an element; ConfigurationError if it cannot be compared."""
    found, values = schemas.type_at(resource_type.name, path)
    if found not in _ELEMENTS[parameter.type]:
        what = f"an element of type {found}" if found else "no element of it"
        takes = ", ".join(sorted(_ELEMENTS[parameter.type]))
        raise ConfigurationError(
            f"{resource_type.name}: search parameter {parameter.name}: {path} is {what}; "
            f"a {parameter.type} is one of type {takes}"
        )
    return values
