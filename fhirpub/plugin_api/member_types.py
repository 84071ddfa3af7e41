"""The types of parts that repeat, as types that are read and searched (ADR 24)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from fhirpub.plugin_api.resource_type import Part, ResourceType


@dataclass(frozen=True, slots=True)
class MemberType:
    """A type whose resources come with others.

    Attributes:
        resource_type: How it is served. It has the search parameters of all parts of the type, and
            of the type itself if it is also registered alone.
        part: The first of the parts that declare it.
    """

    resource_type: ResourceType
    part: Part


def member_types(types: Mapping[str, ResourceType]) -> dict[str, MemberType]:
    """Return the types of all parts that repeat, by name."""
    found: dict[str, MemberType] = {}
    for part in _repeating(types.values()):
        known = found.get(part.type)
        base = known.resource_type if known else types.get(part.type) or _only_member(part)
        found[part.type] = MemberType(_extended(base, part), known.part if known else part)
    return found


def member_type_of(part: Part) -> MemberType:
    """Return the type of a part whose resources are not registered alone."""
    return MemberType(_extended(_only_member(part), part), part)


def _extended(base: ResourceType, part: Part) -> ResourceType:
    """Return a type with the search parameters of a part, too."""
    search = {parameter.name: parameter for parameter in (*base.search, *part.search)}
    return replace(base, search=tuple(search.values()))


def _repeating(types: Iterable[ResourceType]) -> Iterator[Part]:
    for resource_type in types:
        yield from resource_type.repeating


def _only_member(part: Part) -> ResourceType:
    """Return a type that is not registered alone."""
    return ResourceType(
        name=part.type,
        parts=(),
        create_statuses=frozenset(),
        update_statuses=frozenset(),
        updatable=frozenset(),
        example=part.example,
    )
