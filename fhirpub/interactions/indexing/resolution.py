"""From the search parameters that a type declares to where their values are stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from fhirpub.errors import ConfigurationError
from fhirpub.fhir.schema import Schemas
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
    "quantity": frozenset({"Quantity"}),
    "string": frozenset({"string", "HumanName"}),
}


@dataclass(frozen=True, slots=True)
class ResolvedParameter:
    """A parameter of a type. ``target`` is the type that its references must have, if any.

    ``apart`` is the name that values are stored under, unless it follows from the elements. A
    parameter with a ``kind`` is served by the texts of this kind that another one stores there.
    """

    parameter: SearchParameter
    target: str = ""
    apart: str = ""
    kind: str | None = None

    @property
    def stored(self) -> str:
        """The name that values are stored under: parameters over the same elements share it."""
        return self.apart or "|".join(self.parameter.paths)


def resolve_parameters(
    resource_type: ResourceType, member: Part | None, identifiers: tuple[str, ...]
) -> Iterator[ResolvedParameter]:
    """Yield what a type is searched by; ``member`` is the part by which it comes with others.

    ``identifiers`` are the elements whose identifiers are search values, if they are.
    """
    yield from _common_parameters(resource_type, member, identifiers)
    names = {one.paths for one in resource_type.search if one.type == "string"}
    for parameter in resource_type.search:
        yield _resolve(parameter, names)


def _resolve(parameter: SearchParameter, names: Collection[tuple[str, ...]]) -> ResolvedParameter:
    """Return a parameter; parts of a name are among the texts of the name, if that is indexed."""
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
