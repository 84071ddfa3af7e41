"""What a resource and its patient become when the resource is moved to another Patient; pure."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fhirpub.fhir.elements import items_of, objects_in
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.interactions.checks.narrative_truth import is_contradicted
from fhirpub.interactions.indexing.persons import PATIENT, is_current
from fhirpub.interactions.references import describe


@dataclass(frozen=True, slots=True)
class Target:
    """The Patient that a resource is moved to.

    Attributes:
        id: The id of the Patient.
        systems: The systems in which the identifiers of the resource's patient are replaced.
        identifiers: Those that take their place.
    """

    id: str
    systems: Collection[str]
    identifiers: Sequence[Mapping[str, str]] = ()


def corrected_patient(patient: JsonObject, target: Target) -> JsonObject:
    """Return a patient with the identifiers of another; all else stays as it was published.

    A narrative made from the data is left out if an identifier changes: it may show the old one.
    """
    sent = patient.get("identifier", ())
    kept = [one for one in sent if not (one.get("system") in target.systems and is_current(one))]
    identifiers = [*(_as_described(one, sent) for one in target.identifiers), *kept]
    after = {name: value for name, value in patient.items() if name != "identifier"}
    if identifiers:
        after["identifier"] = identifiers
    if is_contradicted(patient, after, {"identifier"}, ()):
        del after["text"]
    return after


def _as_described(identifier: Mapping[str, str], sent: Sequence[JsonObject]) -> JsonObject:
    """Return an identifier with the type and use that were sent for its system."""
    known = (one for one in sent if one.get("system") == identifier["system"] and is_current(one))
    described = next(known, {})
    kept: JsonObject = {name: described[name] for name in ("use", "type") if name in described}
    return {**kept, **identifier}


def moved(
    resource: JsonObject, patients: tuple[str, JsonObject], *, element: str = "", base: str
) -> JsonObject:
    """Return a resource that refers to another patient wherever it refers to one.

    ``patients`` are the id of the one and the other as a resource. References that showed an
    identifier or a name, and those of ``element``, show those of the other. The result is equal
    to the resource if it refers to the one nowhere.
    """
    before, patient = patients
    former = {f"{PATIENT}/{before}", f"{base}/{PATIENT}/{before}"}
    after = copy.deepcopy(resource)
    leading = [one for one in objects_in(after) if _literal(one) in former]
    described = {id(item) for _at, item in items_of(after, element)} if element else set()
    for reference in leading:
        shown = [reference.pop(name, None) for name in ("identifier", "display")]
        reference["reference"] = f"{PATIENT}/{patient['id']}"
        if any(shown) or id(reference) in described:
            describe(reference, patient)
    names = {name for name in after if after[name] != resource[name]}
    if is_contradicted(resource, after, names, ()):
        del after["text"]
    return after


def _literal(element: Mapping[str, Any]) -> str:
    literal = element.get("reference")
    return literal if isinstance(literal, str) else ""
