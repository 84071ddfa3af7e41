"""Removes what is empty: ``null``, ``""``, ``[]`` and ``{}``, which FHIR has nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fhirpub.errors import Issue
from fhirpub.fhir.lenient.corrections import Corrections
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.problems import ContentProblem

_RULE = "is empty: left out; in a list, the places of what follows are counted without it"
_PLAIN_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]{0,63}")


def remove_empty_values(content: Any) -> Iterator[Issue]:
    """Remove all empty values of a body, also those that are empty once others are removed.

    In a list whose items belong to those of another list by their positions, such as ``given``
    and ``_given``, ``null`` has a meaning: its items stay. Yields a warning with the places.
    """
    removed = Corrections(ContentProblem.VALUE_EMPTY, _RULE)
    if isinstance(content, dict):
        kind = content.get("resourceType")
        at = kind if isinstance(kind, str) and _PLAIN_NAME.fullmatch(kind) else ""
        _clean_object(content, at, removed)
    return removed.issues()


def _clean_object(holder: JsonObject, at: str, removed: Corrections) -> None:
    for name, value in [*holder.items()]:
        before, place = removed.count, _below(at, name)
        if isinstance(value, dict):
            _clean_object(value, place, removed)
        elif isinstance(value, list) and not _is_paired(name, holder):
            _clean_list(value, place, removed)
        if _is_empty(value):
            del holder[name]
            removed.add_instead(before, place)


def _clean_list(items: list[Any], at: str, removed: Corrections) -> None:
    """Remove the empty items of a list; there are no lists in lists."""
    kept = []
    for index, item in enumerate(items):
        before, place = removed.count, f"{at}[{index}]"
        if isinstance(item, dict):
            _clean_object(item, place, removed)
        if _is_empty(item):
            removed.add_instead(before, place)
        else:
            kept.append(item)
    items[:] = kept


def _is_paired(name: str, holder: Mapping[str, Any]) -> bool:
    partner = name[1:] if name.startswith("_") else f"_{name}"
    beside = holder.get(partner)
    return isinstance(beside, list) and bool(beside)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def _below(at: str, name: str) -> str:
    """Return the FHIRPath of a member; it ends before a name that FHIR could not have."""
    if _PLAIN_NAME.fullmatch(name) is None:
        return at
    element = name.removeprefix("_")
    return f"{at}.{element}" if at else element
