"""A revision leaves a resource with the patient that it has (ADR 26)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fhirpub.fhir.elements import items_of, literals_of
from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored
from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import PATIENT, is_own
from fhirpub.plugin_api import Part, ResourceType
from fhirpub.storage.contract import Version
from fhirpub.tenant import is_member_id


def keep_patients(
    candidate: Version, latest: Version, parts: Mapping[str, JsonObject], context: Context
) -> Version:
    """Return a candidate that refers to the patients that the stored resource refers to.

    The same patient can have another id than when the resource was registered: systems of persons
    were declared since, or an operator has moved the resource. ``parts`` are those of the
    resource now. A candidate that refers to another patient on purpose is not changed.
    """
    sent, before = loads_stored(candidate.parts), loads_stored(latest.body)
    for part in patient_parts(context.types[latest.type]):
        patient = sent.get(part.name)
        if patient is None or is_held(patient, candidate):
            continue
        kept = next(_patients_at(before, part), None)
        move = _Move(part, f"{PATIENT}/{patient['id']}", kept or "")
        if move.kept not in ("", move.wanted):
            body = loads_stored(move.apply(candidate.body))
            if part.referred_by in before:  # with the identifier and the name of that patient
                body[part.referred_by] = before[part.referred_by]
            members = tuple(move.of_member(one, parts, context) for one in candidate.members)
            candidate = replace(candidate, body=dumps(body), members=members)
    return candidate


@dataclass(frozen=True, slots=True)
class _Move:
    """From the patient that a candidate refers to, to the one that is kept."""

    part: Part
    wanted: str
    kept: str

    def apply(self, body: bytes) -> bytes:
        """Return a resource whose references lead to the patient that is kept."""
        return body.replace(dumps(self.wanted), dumps(self.kept))

    def of_member(
        self, member: Version, parts: Mapping[str, JsonObject], context: Context
    ) -> Version:
        """Return a member that refers to the patient that is kept."""
        body = self.apply(member.body)
        if body == member.body:
            return member
        person, kept = (one.partition("/")[2] for one in (self.wanted, self.kept))
        is_linked = is_member_id(person) and not is_member_id(kept)
        persons = {self.part.name: person} if is_linked else {}
        searched = context.searched[member.type]
        search = searched.values_of_member(loads_stored(body), parts, persons=persons)
        return replace(member, body=body, search=search)


def patient_parts(resource_type: ResourceType) -> Iterator[Part]:
    """Yield the parts of a type that are patients and have no versions."""
    for part in resource_type.parts:
        if part.type == PATIENT and part.referred_by and not part.repeats:
            yield part


def is_held(patient: JsonObject, of: Version) -> bool:
    """Return whether a patient came with another resource than this one."""
    stated = patient["meta"]["versionId"].startswith(f"{of.id}.")
    return not (is_own(patient) or stated)


def _patients_at(resource: JsonObject, part: Part) -> Iterator[str]:
    for literal in literals_of(one for _at, one in items_of(resource, part.referred_by)):
        if literal.startswith(f"{PATIENT}/"):
            yield literal
