"""The events of an EHR composition, and their author (D-240 to D-244)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fhirpub.fhir.elements import reduce_to
from fhirpub.fhir.human_name import given_names, name_to_use
from fhirpub.fhir.terminology import FORMER_V2_0203, V2_0203
from fhirpub.plugin_api.event import Change, Event

_PERSONAL = re.compile("NI|NN[A-Z]{0,3}|PPN|CZ|PRC|DL|SB|SS")
"""Types of identifiers that name a person, not a licence, an employment or a record."""
_TAX = re.compile("TAX")


@dataclass(frozen=True, slots=True)
class CompositionEvents:
    """Create an event for each registration and each update of a composition.

    A registration creates ``<composition>.created``, an update ``<composition>.updated``. Both
    carry the identifier, the status (an update also the previous one), those of the ``elements``
    that the resource has, and its author if a practitioner was registered with it (D-241). The
    event of a revision (ADR 25) also names the results that were added and changed.

    Attributes:
        composition: The type of composition in a-z, 0-9 and _, as it is named in events.
        elements: Elements of the resource to include. ``value[x]`` stands for every form of a
            choice.

    Raises:
        ValueError: ``composition`` is not such a name.
    """

    composition: str
    elements: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        Event(type=f"{self.composition}.created", data={})

    def __call__(self, change: Change) -> Iterator[Event]:
        resource, before = change.after, change.before
        identifier = change.identifier or resource["identifier"][0]
        data = {
            "id": change.id,
            "version": change.version,
            "identifier": {"system": identifier["system"], "value": identifier["value"]},
            "status": resource["status"],
        }
        if before is not None:
            data["previous_status"] = before["status"]
        data |= reduce_to(resource, self.elements)
        if change.added or change.changed:
            data |= {"added": list(change.added), "changed": list(change.changed)}
        practitioner = change.parts.get("practitioner")
        if practitioner is not None:
            data["author"] = author_of(practitioner)
        action = "created" if before is None else "updated"
        yield Event(type=f"{self.composition}.{action}", data=data)


def author_of(practitioner: Mapping[str, Any]) -> dict[str, str]:
    """Return a Practitioner as the author in an event (D-242 to D-244).

    Returns:
        The fields of the author as strings; unknown ones are omitted.
    """
    name = name_to_use(practitioner.get("name", ()))
    identifiers = [
        identifier
        for identifier in practitioner.get("identifier", ())
        if "value" in identifier and identifier.get("use") != "old"
    ]
    person, tax = _personal(identifiers), _of_type(identifiers, _TAX)
    author = {
        "author_type": "practitioner",
        "lastname": name.get("family"),
        "firstname": given_names(name),
        "person_sex": practitioner.get("gender"),
        "date_of_birth": practitioner.get("birthDate"),
        "person_id_type": _type_of(person),
        "person_id_number": person.get("value"),
        "tin": tax.get("value"),
    }
    return {field: value for field, value in author.items() if value}


def _personal(identifiers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the first identifier that names a person, else the first that may."""
    unknown = (identifier for identifier in identifiers if not _codes(identifier))
    return _of_type(identifiers, _PERSONAL) or next(unknown, {})


def _of_type(
    identifiers: Sequence[Mapping[str, Any]], wanted: re.Pattern[str]
) -> Mapping[str, Any]:
    found = (
        identifier for identifier in identifiers if any(map(wanted.fullmatch, _codes(identifier)))
    )
    return next(found, {})


def _type_of(identifier: Mapping[str, Any]) -> str:
    kind = identifier.get("type", {})
    codes = [coding["code"] for coding in kind.get("coding", ()) if "code" in coding]
    return str(next(iter([*_codes(identifier), *codes]), kind.get("text", "")))


def _codes(identifier: Mapping[str, Any]) -> list[str]:
    """Return the types of an identifier in the words of v2-0203."""
    codings = identifier.get("type", {}).get("coding", ())
    return [
        coding["code"]
        for coding in codings
        if coding.get("system") in (V2_0203, FORMER_V2_0203) and "code" in coding
    ]
