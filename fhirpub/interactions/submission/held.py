"""Parts that were not sent, since the resource refers to one that the tenant holds (ADR 26)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fhirpub.fhir.elements import items_of
from fhirpub.fhir.strict_json import JsonObject, loads_stored
from fhirpub.interactions.submission.record import Submission
from fhirpub.plugin_api import Entry, ResourceType
from fhirpub.tenant import is_resource_id

ReadBody = Callable[[Any, ResourceType], Submission]


@dataclass(frozen=True, slots=True)
class Held:
    """A part of another registration: the reference to it as it was sent, and it as JSON.

    ``at`` is the place of the reference.
    """

    part: str
    literal: str
    at: str
    body: bytes = b""

    @property
    def id(self) -> str:
        """The id that the reference leads to."""
        return self.literal.rpartition("/")[2]


def held_part_of(submission: Submission, type_name: str, base: str) -> Held | None:
    """Return the part of a type that a submission lacks and that it refers to by an id of ours.

    ``base`` is the FHIR base, with which the reference may begin.
    """
    for part in submission.type.parts:
        is_missing = part.required and part.name not in submission.parts
        if part.type != type_name or not is_missing:
            continue
        for at, element in items_of(submission.entry.resource, part.referred_by):
            literal = element.get("reference") if isinstance(element, dict) else None
            if isinstance(literal, str) and _is_ours(literal, type_name, base):
                place = submission.entry.at
                return Held(part.name, literal, f"{place}.{at}.reference")
    return None


def _is_ours(literal: str, type_name: str, base: str) -> bool:
    kind, _, resource_id = literal.removeprefix(f"{base}/").partition("/")
    return kind == type_name and is_resource_id(resource_id)


_lenient: dict[tuple[int, str], tuple[ResourceType, ResourceType]] = {}


def read_with(
    content: Any, resource_type: ResourceType, *, read: ReadBody, held: Held
) -> Submission:
    """Read a body whose part is held, as ``read`` reads one that has it."""
    submission = read(content, _without_demand(resource_type, held.part))
    submission.type = resource_type
    part = next(one for one in resource_type.parts if one.name == held.part)
    submission.held = frozenset({held.part})
    submission.parts[held.part] = Entry(_as_held(held), part.type)
    submission.local[held.literal] = held.part
    return submission


def _without_demand(resource_type: ResourceType, name: str) -> ResourceType:
    """Return a type that does not demand a part; one for each declaration, which never changes."""
    known = _lenient.get((id(resource_type), name))
    if known is None:
        parts = tuple(
            replace(part, required=False) if part.name == name else part
            for part in resource_type.parts
        )
        known = (resource_type, replace(resource_type, parts=parts))
        _lenient[id(resource_type), name] = known
    return known[1]


def _as_held(held: Held) -> JsonObject:
    """Return the part with a version that shows that it is of another resource."""
    resource: JsonObject = loads_stored(held.body)
    meta: Mapping[str, Any] = resource["meta"]
    version = f"{held.id}.1" if meta["versionId"] == "1" else meta["versionId"]
    return {**resource, "meta": {**meta, "versionId": version}}
