"""The names of the elements in which a repetition differs from what is registered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fhirpub.fhir.strict_json import loads_stored
from fhirpub.interactions.repetition.canonical import canonical
from fhirpub.storage.contract import Version

_OURS = frozenset({"versionId", "lastUpdated"})


def differing_elements(first: Version, second: Version) -> tuple[str, ...]:
    """Return the elements in which two registrations of one identifier differ as stored.

    Those of the resource have their names, such as ``conclusion``, those of a part also its
    name: ``patient.birthDate``, those of a member its type: ``Observation.valueQuantity``, if the
    first registration has it. There are none if all that differs is not stored: an entry that
    is not taken, or whether a time has an offset.
    """
    names = [
        *differing_names(loads_stored(first.body), loads_stored(second.body)),
        *_of_parts(loads_stored(first.parts), loads_stored(second.parts)),
        *_of_members(first.members, second.members),
    ]
    return tuple(sorted(set(names)))


def _of_parts(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    for part in first.keys() | second.keys():
        if part in first and part in second:
            found = differing_names(first[part], second[part])
            yield from (f"{part}.{name}" for name in found)
        else:
            yield part


def _of_members(first: Sequence[Version], second: Sequence[Version]) -> Iterator[str]:
    known = {member.id: member for member in first}
    for member in second:
        if member.id in known:
            names = differing_names(loads_stored(known[member.id].body), loads_stored(member.body))
            yield from (f"{member.type}.{name}" for name in names)


def differing_names(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the elements in which two stored resources differ."""
    first, second = _content(first), _content(second)
    for name in first.keys() | second.keys():
        if canonical(first.get(name)) != canonical(second.get(name)):
            yield name.removeprefix("_")


def _content(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored resource without the id, version and time that the server gives it."""
    meta = {name: value for name, value in resource["meta"].items() if name not in _OURS}
    return {**resource, "id": "", "meta": meta}
