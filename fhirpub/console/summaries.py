"""Resources as rows of tables: what lists and tables of results show of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fhirpub.console.describe import words_of
from fhirpub.console.visit import address

_DATES = (
    "issued",
    "effectiveDateTime",
    "effectiveInstant",
    "date",
    "authoredOn",
    "occurrenceDateTime",
    "started",
    "receivedTime",
    "birthDate",
)
_ABNORMAL = frozenset("H HH HU HX L LL LU LX A AA POS R > <".split())
_CRITICAL = frozenset("HH HU LL LU AA".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A resource in a list."""

    path: str
    identifier: str
    what: str
    person: str
    status: str
    date: str
    updated: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A resource with a value, in the table of a report."""

    path: str
    what: str
    value: str
    flag: str
    """What the laboratory says of the value, such as ``high``."""
    level: str
    """``bad`` for a critical value, ``warn`` for one that is not normal."""
    reference: str
    status: str
    is_part: bool = False
    """Whether it is a component of the one above."""


def summary_of(resource: Mapping[str, Any]) -> Summary:
    """Return a resource as a row."""
    identifiers = resource.get("identifier") or resource.get("accessionIdentifier") or []
    first = identifiers[0] if isinstance(identifiers, list) and identifiers else identifiers
    person = resource.get("subject") or resource.get("patient") or {}
    return Summary(
        path=address("resources", resource["resourceType"], resource["id"]),
        identifier=str(first.get("value", "")) if isinstance(first, Mapping) else "",
        what=_what(resource),
        person=str(person.get("display") or _key(person) or person.get("reference", "")),
        status=str(resource.get("status", "")),
        date=next((str(resource[name]) for name in _DATES if name in resource), ""),
        updated=str(resource.get("meta", {}).get("lastUpdated", "")),
    )


def results_of(resources: Sequence[Mapping[str, Any]]) -> Sequence[Result]:
    """Return those resources that have a value or parts with values, as rows.

    They are in the order in which the first of them, such as a report, lists the others.
    """
    rows = []
    for resource in sorted(resources, key=_place_in(resources[0])):
        parts = resource.get("component", ())
        if _value_of(resource) or parts:
            rows.append(_result(resource, resource))
            rows += [_result(part, resource, is_part=True) for part in parts]
    return rows


def _place_in(listing: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], int]:
    """Return what places resources as another lists them; it comes first, all others last."""
    listed = [
        one["reference"]
        for element in listing.values()
        if isinstance(element, list)
        for one in element
        if isinstance(one, Mapping) and "reference" in one
    ]
    places = {reference: place for place, reference in enumerate(listed)}
    places[reference_to(listing)] = -1
    return lambda resource: places.get(reference_to(resource), len(listed))


def reference_to(resource: Mapping[str, Any]) -> str:
    """Return the reference by which other resources name one."""
    return f"{resource['resourceType']}/{resource['id']}"


def _result(
    measured: Mapping[str, Any], resource: Mapping[str, Any], *, is_part: bool = False
) -> Result:
    flags = measured.get("interpretation", ())
    codes = {coding.get("code") for flag in flags for coding in flag.get("coding", ())}
    level = "bad" if codes & _CRITICAL else "warn" if codes & _ABNORMAL else ""
    return Result(
        path=address("resources", resource["resourceType"], resource["id"]),
        what=words_of(measured.get("code")),
        value=_value_of(measured) or words_of(measured.get("dataAbsentReason")),
        flag=words_of(flags),
        level=level,
        reference=words_of(measured.get("referenceRange", [])),
        status=str(resource.get("status", "")),
        is_part=is_part,
    )


def _value_of(measured: Mapping[str, Any]) -> str:
    return next(
        (words_of(value) for name, value in measured.items() if name.startswith("value")), ""
    )


def _what(resource: Mapping[str, Any]) -> str:
    for name in ("code", "type", "vaccineCode", "name", "title", "description"):
        if name in resource:
            return words_of(resource[name])
    return ""


def _key(reference: Mapping[str, Any]) -> str:
    return str(reference.get("identifier", {}).get("value", ""))
