"""What a resource type is searched by, and the values for it, taken when a version is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from fhirpub.fhir.date_value import stretch_of
from fhirpub.fhir.elements import items_of
from fhirpub.plugin_api import ResourceType, SearchParameter
from fhirpub.storage.criteria import EARLIEST, LATEST, SearchValue, decoded, encoded

_DEFINITIONS = "http://hl7.org/fhir/SearchParameter"
_PATIENT = "Patient"
_HISTORY = "/_history/"

Take = Callable[[str, Any, "Searched"], Iterable[SearchValue]]


@dataclass(frozen=True, slots=True)
class Known:
    """A parameter of a type. ``target`` is the type that its references must have, if any."""

    parameter: SearchParameter
    target: str = ""

    @property
    def stored(self) -> str:
        """The name that values are stored under: parameters over the same elements share it."""
        return "|".join(self.parameter.paths)


class Searched:
    """A resource type as searches see it; one for the life of the service."""

    def __init__(self, resource_type: ResourceType, *, fhir_url: str, zone: tzinfo) -> None:
        """Take a declaration that has been checked."""
        self.type = resource_type
        self.zone = zone
        self.relative_to = f"{_without_scheme(fhir_url)}/"
        known = [*_of_every_type(resource_type), *map(Known, resource_type.search)]
        self.parameters = {each.parameter.name: each for each in known}
        self._taken = {each.stored: each.parameter for each in known}
        self._chained = {
            f"{part.referred_by}:{part.type}.identifier": part
            for part in resource_type.parts
            if part.type == _PATIENT
        }

    def chains_of(self, known: Known, target: str) -> list[str]:
        """Return under which names the identifiers of what is referred to are stored."""
        return [
            name
            for name, part in self._chained.items()
            if part.referred_by in known.parameter.paths
            and {target, known.target} <= {"", part.type}
        ]

    def included(self) -> list[str]:
        """Return the parameters that lead to something that can be included."""
        led_to = {part.referred_by for part in self.type.parts}
        return [
            name
            for name, known in self.parameters.items()
            if known.parameter.type == "reference" and led_to & {*known.parameter.paths}
        ]

    def values(self, resource: Mapping[str, Any], parts: Mapping[str, Any]) -> bytes:
        """Return what the first version of a resource is found by."""
        values = [*self._of_resource(resource)]
        for name, part in self._chained.items():
            for one in parts.get(part.name, {}).get("identifier", ()):
                values += _tokens(name, one, self)
        return encoded(values)

    def next_values(self, resource: Mapping[str, Any], before: bytes) -> bytes:
        """Return what a later version is found by: its parts are those of the first."""
        inherited = [each for each in decoded(before) if each[0] in self._chained]
        return encoded([*self._of_resource(resource), *inherited])

    def _of_resource(self, resource: Mapping[str, Any]) -> Iterator[SearchValue]:
        for name, parameter in self._taken.items():
            take = _TAKE[parameter.type]
            for path in parameter.paths:
                for item in _at(resource, path):
                    yield from take(name, item, self)


def _of_every_type(resource_type: ResourceType) -> Iterator[Known]:
    yield Known(SearchParameter(name="status", type="token", paths=("status",)))
    for part in resource_type.parts:
        if part.type == _PATIENT:
            patient = SearchParameter(
                name="patient",
                type="reference",
                paths=(part.referred_by,),
                definition=f"{_DEFINITIONS}/clinical-patient",
            )
            yield Known(patient, target=_PATIENT)


def _at(resource: Mapping[str, Any], path: str) -> Iterator[Any]:
    """Return what stands at a dotted path, through lists."""
    head, _, rest = path.partition(".")
    for _place, item in items_of(resource, head):
        if not rest:
            yield item
        elif isinstance(item, dict):
            yield from _at(item, rest)


def _tokens(name: str, item: Any, _searched: Searched) -> Iterator[SearchValue]:
    if isinstance(item, str):
        yield name, item, ""
    elif isinstance(item, bool):
        yield name, "true" if item else "false", ""
    elif "coding" in item:
        for coding in item["coding"]:
            if "code" in coding:
                yield name, coding["code"], coding.get("system", "")
    else:  # a Coding has a code, an Identifier a value
        value = item.get("code", item.get("value"))
        if value is not None:
            yield name, value, item.get("system", "")


def _times(name: str, item: Any, searched: Searched) -> Iterator[SearchValue]:
    if isinstance(item, str):
        stretch = stretch_of(item, default_zone=searched.zone)
        if stretch is not None:
            yield name, *stretch
        return
    events = [stretch_of(each, default_zone=searched.zone) for each in item.get("event", ())]
    known = [each for each in events if each is not None]
    first, last = (
        stretch_of(item.get(end, ""), default_zone=searched.zone) for end in ("start", "end")
    )
    if first or last:
        known.append((first[0] if first else EARLIEST, last[1] if last else LATEST))
    if known:  # of a Timing the outer limits count
        yield name, min(each[0] for each in known), max(each[1] for each in known)


def _references(name: str, item: Any, searched: Searched) -> Iterator[SearchValue]:
    literal = item.get("reference", "")
    if literal and not literal.startswith("#"):
        type_name, resource_id = split_reference(literal, searched)
        yield name, resource_id, type_name


def split_reference(literal: str, searched: Searched) -> tuple[str, str]:
    """Return type and id of a reference to what could be here; else no type, and all of it."""
    plain = _without_scheme(literal)
    relative = plain.removeprefix(searched.relative_to)
    if relative == plain and ":" in literal:
        return "", literal
    type_name, _, resource_id = relative.partition(_HISTORY)[0].rpartition("/")
    return type_name, resource_id


def _without_scheme(url: str) -> str:
    """Return a URL without http or https, between which FHIR makes no difference."""
    return url.removeprefix("http://").removeprefix("https://")


_TAKE: dict[str, Take] = {"token": _tokens, "date": _times, "reference": _references}
