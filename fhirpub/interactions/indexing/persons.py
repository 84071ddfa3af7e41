"""Which person a patient is, and the values that a statement about one is found by (ADR 26)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fhirpub.fhir.strict_json import JsonObject
from fhirpub.interactions.indexing.values import TAKE, Searched
from fhirpub.storage.criteria import SearchValue
from fhirpub.tenant import Tenant, is_member_id

PATIENT = "Patient"
_FORMER = "old"


@dataclass(frozen=True, slots=True)
class StatementNames:
    """The names under which a type stores what its patients are found by.

    ``marker`` stands in versions that state something of a patient alone, with the Patient's id,
    and ``later`` in those of them that are not the first of their resource. Identifiers stand also
    in the versions that follow, for searches such as ``patient.identifier``.
    """

    identifier: str
    name: str
    birth_date: str
    marker: str
    later: str

    @classmethod
    def of(cls, element: str) -> StatementNames:
        """Return the names for the patient that an element refers to."""
        base = f"{element}:{PATIENT}"
        return cls(
            identifier=f"{base}.identifier",
            name=f"{base}.name",
            birth_date=f"{base}.birthDate",
            marker=base,
            later=f"{base}:later",
        )


def is_current(identifier: JsonObject) -> bool:
    """Return whether an identifier of a patient is not one of former times."""
    return bool(identifier.get("use") != _FORMER)


def current_values(patient: JsonObject, system: str) -> set[str]:
    """Return the identifiers of a patient in a system, but for those of former times."""
    return {
        one["value"]
        for one in patient.get("identifier", ())
        if one.get("system") == system and one.get("value") and is_current(one)
    }


def person_of(patient: JsonObject, systems: Sequence[str], tenant: Tenant) -> str:
    """Return the id of the person that a patient is; empty if nothing shows it.

    The first of the systems decides in which there is exactly one identifier: of two, one may be
    wrong.
    """
    for system in systems:
        values = current_values(patient, system)
        if len(values) == 1:
            return tenant.person_id(system, values.pop())
    return ""


def persons_of(
    parts: Mapping[str, JsonObject], systems: Sequence[str], tenant: Tenant
) -> dict[str, str]:
    """Return the ids of the persons that some parts are, by the names of the parts."""
    if not systems:
        return {}
    found = {
        name: person_of(part, systems, tenant)
        for name, part in parts.items()
        if part["resourceType"] == PATIENT
    }
    return {name: person for name, person in found.items() if person}


def statement_id(resource_id: str, version: int) -> str:
    """Return the version id of what a version of a resource states about a person."""
    return f"{resource_id}.{version}"


def is_own(part: JsonObject) -> bool:
    """Return whether a stored part belongs to its resource alone, from which its id follows."""
    return bool(part["meta"]["versionId"] == "1")


def marked(patient_id: str) -> tuple[str, str]:
    """Return a Patient's id as it stands in the marker of a statement.

    A token with a code is indexed: only for a person is there anything to look up.
    """
    return (patient_id, "") if is_member_id(patient_id) else ("", patient_id)


def take_statement(
    values: list[SearchValue],
    patient: JsonObject,
    names: StatementNames,
    searched: Searched,
    *,
    patient_id: str,
    is_later: bool,
) -> None:
    """Append what a statement is found by, but for identifiers."""
    for one in patient.get("name", ()):
        TAKE["string"](values, names.name, one, searched)
    if "birthDate" in patient:
        TAKE["date"](values, names.birth_date, patient["birthDate"], searched)
    values.append((names.marker, *marked(patient_id)))
    if is_later:
        values.append((names.later, "", ""))


def names_of_own_patients(values: Iterable[SearchValue]) -> set[str]:
    """Return under which names a resource refers to a patient that belongs to it alone."""
    return {name for name, first, second in values if first == "" and second == PATIENT}


def links_of(
    values: Sequence[SearchValue], before: Sequence[SearchValue]
) -> Iterator[SearchValue]:
    """Yield the persons that a resource was found by although it refers to a part of its own."""
    own = names_of_own_patients(values)
    for item in before:
        if item[0] in own and item[2] == PATIENT and is_member_id(str(item[1])):
            yield item
