"""Walks through a resource: all its objects, fast, and their paths, on demand."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from fhirpub.fhir.strict_json import JsonObject


def objects_in(resource: JsonObject) -> list[JsonObject]:
    """Return the resource and every object below it."""
    found = [resource]
    for element in found:  # grows while it is read: breadth first, without recursion
        for member in element.values():
            kind = type(member)
            if kind is dict:
                found.append(member)
            elif kind is list:
                for one in member:
                    if type(one) is dict:
                        found.append(one)  # noqa: PERF401 - faster for lists as short as these
    return found


def with_rules(objects: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the objects with a name about which there are rules of FHIR."""
    return [element for element in objects if not _WITH_RULES.isdisjoint(element)]


def with_identity(objects: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the objects with a name that identifies: a system, a canonical, an id."""
    return [element for element in objects if not _WITH_IDENTITY.isdisjoint(element)]


_WITH_RULES = frozenset(
    {"contained", "data", "div", "end", "extension", "high", "reference"}
    | {"modifierExtension", "implicitRules", "_implicitRules"}
)
_WITH_IDENTITY = frozenset({"id", "instantiatesCanonical", "profile", "system", "valueCanonical"})


def places_in(resource: JsonObject) -> dict[int, str]:
    """Return the FHIRPath of every object of a resource, by ``id()``; empty for the resource.

    What stands beside a primitive is below its element, ``status`` for ``_status``. A path ends
    at the first name that FHIR could not have: what a sender made up is not shown.
    """
    places = {id(resource): ""}
    below = [resource]
    for item in below:  # grows while it is read
        path = places[id(item)]
        for name, member in item.items():
            plain = _PLAIN_NAME.fullmatch(name) is not None
            element = name.removeprefix("_")
            at = (f"{path}.{element}" if path else element) if plain else path
            members = enumerate(member) if isinstance(member, list) else ((None, member),)
            for index, one in members:
                if isinstance(one, dict):
                    places[id(one)] = at if index is None or not plain else f"{at}[{index}]"
                    below.append(one)
    return places


_PLAIN_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]{0,63}")


def values_at(resource: Mapping[str, Any], path: str) -> Iterator[tuple[JsonObject, str, str]]:
    """Return what a dotted element path leads to, through lists: (holder, name, FHIRPath)."""
    head, _, rest = path.partition(".")
    member = resource.get(head)
    if member is None:
        return
    if not rest:
        if isinstance(resource, dict):
            yield resource, head, head
        return
    below = enumerate(member) if isinstance(member, list) else [(None, member)]
    for index, item in below:
        if isinstance(item, dict):
            at = head if index is None else f"{head}[{index}]"
            for holder, name, place in values_at(item, rest):
                yield holder, name, f"{at}.{place}"


def items_of(resource: Mapping[str, Any], path: str) -> list[tuple[str, Any]]:
    """Return the values of an element that may or may not repeat, each with its place.

    Dots go deeper, as in ``participant.individual``.
    """
    name, _, rest = path.partition(".")
    if name not in resource:
        return []
    member = resource[name]
    if type(member) is list:
        found = [(f"{name}[{index}]", item) for index, item in enumerate(member)]
    else:
        found = [] if member is None else [(name, member)]
    if not rest:
        return found
    return [
        (f"{at}.{place}", one)
        for at, item in found
        if isinstance(item, dict)
        for place, one in items_of(item, rest)
    ]


def each_item(holder: Mapping[str, Any], path: str, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of an element as `items_of` returns them, one after the other.

    ``at`` is the place of the holder. A list of thousands of objects without what the path leads
    to costs little.
    """
    name, _, rest = path.partition(".")
    member = holder.get(name)
    if member is None:
        return
    inner = rest.partition(".")[0]
    place = f"{at}.{name}" if at else name
    is_list = type(member) is list
    for index, item in enumerate(member if is_list else (member,)):
        if not rest:
            yield f"{place}[{index}]" if is_list else place, item
        elif type(item) is dict and inner in item:
            yield from each_item(item, rest, f"{place}[{index}]" if is_list else place)


def literals_of(elements: Iterable[Any]) -> Iterator[str]:
    """Yield what elements refer to, those that are references with a literal."""
    for element in elements:
        literal = element.get("reference") if isinstance(element, dict) else None
        if isinstance(literal, str):
            yield literal


def element_of(name: str, elements: Collection[str]) -> str:
    """Return which element a property holds: note of ``_note``, value[x] of ``valueString``.

    Choices are those among ``elements`` that end with ``[x]``.
    """
    plain = name.removeprefix("_")
    if plain in elements:
        return plain
    for element in elements:
        if element.endswith("[x]"):
            stem = element.removesuffix("[x]")
            if plain.startswith(stem) and plain[len(stem) :][:1].isupper():
                return element
    return plain


def reduce_to(
    resource: Mapping[str, Any], elements: Collection[str], *, siblings: bool = False
) -> JsonObject:
    """Return the properties that hold one of the elements; ``siblings``: extensions as well."""
    if not elements:
        return {}
    named, stems = _names_and_stems(tuple(elements))
    begins = (*stems, "_") if siblings else stems
    return {
        name: value
        for name, value in resource.items()
        if name in named or (name.startswith(begins) and element_of(name, elements) in elements)
    }


@lru_cache(maxsize=1024)
def _names_and_stems(elements: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return elements as a set, and what the forms of those begin with that are choices."""
    stems = (one.removesuffix("[x]") for one in elements if one.endswith("[x]"))
    return frozenset(elements), tuple(stems)
