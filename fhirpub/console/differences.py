"""What changed between two versions of a resource, element by element."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

MOST = 200
"""So many differences of two versions are shown."""
_MOST_CHARACTERS = 500
_CHARACTERS_AHEAD = 50
"""So many are shown of what two long texts have in common, ahead of their difference."""
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
        _difference(place, old.get(place, ""), new.get(place, ""))
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
        yield place, _OF_DOCUMENT.sub(r"\1…", str(value))


def _difference(place: str, before: str, after: str) -> Difference:
    """Return a difference; of texts that are too long, the part where it begins."""
    start = 0
    if max(len(before), len(after)) > _MOST_CHARACTERS:
        start = max(0, _length_of_common(before, after) - _CHARACTERS_AHEAD)
    return Difference(place, _part(before, start), _part(after, start))


def _length_of_common(one: str, other: str) -> int:
    """Return how many characters two texts begin with that are the same."""
    lengths = range(1, min(len(one), len(other)) + 1)
    # Some comparisons of whole parts take less time than one of each character.
    return bisect_left(lengths, x=True, key=lambda length: not one.startswith(other[:length]))


def _part(text: str, start: int) -> str:
    end = start + _MOST_CHARACTERS
    return f"{'… ' if start else ''}{text[start:end]}{' …' if len(text) > end else ''}"
