"""What changed between two versions of a resource, element by element."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

MOST = 200
"""So many differences of two versions are shown."""
_MOST_CHARACTERS = 500
_OF_VERSIONS = frozenset({"meta"})
_OF_DOCUMENT = re.compile(r"(?<=/Binary/)([A-Za-z0-9-]{36}\.)[0-9]+(?=\.[0-9]+$)")
"""The number of the version in the address of a document, which says nothing of the document."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An element that differs; a text is empty where the version has no such element."""

    place: str
    before: str
    after: str


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Return what differs, at most `MOST`, in the order of the later version."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    places = dict.fromkeys([*new, *old])
    changed = (
        Difference(place, old.get(place, ""), new.get(place, ""))
        for place in places
        if old.get(place) != new.get(place)
    )
    return list(islice(changed, MOST))


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, member in value.items():
            if place or name not in _OF_VERSIONS:
                yield from _leaves(member, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for number, member in enumerate(value):
            yield from _leaves(member, f"{place}[{number}]")
    else:
        text = _OF_DOCUMENT.sub(r"\1…", str(value))
        yield place, text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} …"
