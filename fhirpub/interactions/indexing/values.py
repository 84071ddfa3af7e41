"""The values that a resource is found by, as they are taken from its elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Protocol

from fhirpub.fhir.date_value import TimeRange, parse_range
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.times import zone_of
from fhirpub.interactions.indexing.numbers import place_of
from fhirpub.interactions.indexing.quantities import (
    may_be_several,
    numbers_under,
    ranges_of,
    units_under,
)
from fhirpub.interactions.indexing.texts import (
    exact_text,
    exact_under,
    shorten,
    texts_of,
    written_texts,
)
from fhirpub.storage.criteria import EARLIEST, LATEST, SearchValue

_HISTORY = "/_history/"
_NOTHING: JsonObject = {}


class Searched(Protocol):
    """What values depend on, beside the resource."""

    @property
    def systems(self) -> Mapping[str, str]:
        """The systems of codes without one, by the name that values are stored under."""

    @property
    def zone(self) -> tzinfo:
        """The zone of times without one."""

    @property
    def relative_to(self) -> str:
        """The FHIR base, without its scheme."""


Take = Callable[[list[SearchValue], str, Any, Searched], None]
"""Appends what an element is found by to the values, under a name."""


def values_at(holder: JsonObject, head: str, rest: str) -> Sequence[Any]:
    """Return what stands at an element, and below it, through lists."""
    member = holder[head]
    items = member if type(member) is list else (member,)
    if not rest:
        return items
    further, _, last = rest.partition(".")
    return [one for item in items if further in item for one in values_at(item, further, last)]


def _tokens(values: list[SearchValue], name: str, item: Any, searched: Searched) -> None:
    if isinstance(item, str):
        values.append((name, item, searched.systems.get(name, "")))
    elif isinstance(item, bool):
        values.append((name, "true" if item else "false", ""))
    else:  # a Coding has a code, an Identifier a value
        for coding in item.get("coding", (item,)):
            code = coding["code"] if "code" in coding else coding.get("value")
            if code is not None:
                values.append((name, code, coding.get("system", "")))


def extract_typed(values: list[SearchValue], name: str, item: Any) -> None:
    """Take the types of an identifier, each together with its value."""
    for coding in item.get("type", _NOTHING).get("coding", ()):
        if "code" in coding and "value" in item:
            code = encode_typed_code(coding["code"], item["value"])
            values.append((name, code, coding.get("system", "")))


def encode_typed_code(code: str, value: str) -> str:
    """Return the code of an identifier's type, and its value, as one text without doubt."""
    escaped = code.replace("\\", "\\\\").replace("|", "\\|")
    return f"{escaped}|{value}"


def _times(values: list[SearchValue], name: str, item: Any, searched: Searched) -> None:
    if isinstance(item, str):
        one = parse_range(item, default_zone=searched.zone)
        if one is not None:
            values.append((name, *one))
        return

    def stretch(text: str, beside: str = "") -> TimeRange | None:
        return parse_range(text, default_zone=zone_of(beside) or searched.zone)

    known = [element for element in map(stretch, item.get("event", ())) if element is not None]
    bounds = item.get("repeat", _NOTHING).get("boundsPeriod", item)
    start, end = bounds.get("start", ""), bounds.get("end", "")
    first, last = stretch(start, end), stretch(end, start)  # a date is of the time's zone
    if first or last:
        known.append((first[0] if first else EARLIEST, last[1] if last else LATEST))
    if known:  # of a Timing the outer limits count
        values.append(
            (name, min(element[0] for element in known), max(element[1] for element in known))
        )


def _references(values: list[SearchValue], name: str, item: Any, searched: Searched) -> None:
    literal = item.get("reference", "#")
    if literal[:1] != "#":
        type_name, resource_id = split_reference(literal, searched)
        values.append((name, resource_id, type_name))


def split_reference(literal: str, searched: Searched) -> tuple[str, str]:
    """Return type and id of a reference to what could be here; else no type, and all of it."""
    if ":" in literal:
        plain = without_scheme(literal)
        relative = plain.removeprefix(searched.relative_to)
        if relative == plain:
            return "", literal
        literal = relative
    type_name, _, resource_id = literal.partition(_HISTORY)[0].rpartition("/")
    return type_name, resource_id


def without_scheme(url: str) -> str:
    """Return a URL without http or https, between which FHIR makes no difference."""
    return url.removeprefix("http://").removeprefix("https://")


def _quantities(values: list[SearchValue], name: str, item: Any, _searched: Searched) -> None:
    """Take a number, also in base units, and each way to write its unit.

    Units are tokens without a code, which no index holds: they are few, so that they would find
    most of all numbers.
    """
    ranges, units = ranges_of(item)
    values += [(numbers_under(name, unit), *range_) for unit, range_ in ranges.items()]
    under = units_under(name)
    values += [(under, "", unit) for unit in units]


def _several_quantities(
    values: list[SearchValue], name: str, item: Any, _searched: Searched
) -> None:
    """Take a number of which there may be others beside it, under each of its units.

    Their units would otherwise be those of any of them.
    """
    ranges, units = ranges_of(item)
    values += [(numbers_under(name, unit), *range_) for unit, range_ in ranges.items()]
    values += [(numbers_under(name, unit), *ranges[""]) for unit in units]


def _numbers(values: list[SearchValue], name: str, item: Any, _searched: Searched) -> None:
    if item is not None:  # a gap in a list of numbers
        place = place_of(item)
        values.append((name, place, place + 1))


def _uris(values: list[SearchValue], name: str, item: Any, _searched: Searched) -> None:
    if item:  # a gap in a list of uris, some of which have extensions only
        values.append((name, shorten(item), ""))


def _texts(values: list[SearchValue], name: str, item: Any, _searched: Searched) -> None:
    """Take texts as they are compared, and as they were written for ``:exact``.

    The latter are tokens without a code, which no index holds: the former lead to them.
    """
    if item is None:  # a gap in a list of strings, some of which have extensions only
        return
    found = texts_of(item)
    values += [(name, text, kind) for text, kind in found]
    exact = exact_under(name)
    if found:
        values += [(exact, "", exact_text(text, kind)) for text, kind in written_texts(item)]


TAKE: dict[str, Take] = {
    "token": _tokens,
    "date": _times,
    "reference": _references,
    "quantity": _quantities,
    "number": _numbers,
    "string": _texts,
    "uri": _uris,
}


def take_for(type_: str, name: str) -> Take:
    """Return what takes the values of elements that are stored under a name."""
    if type_ == "quantity" and may_be_several(name):
        return _several_quantities
    return TAKE[type_]
