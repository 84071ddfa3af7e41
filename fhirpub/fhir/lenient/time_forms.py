"""Corrects times without seconds, and offsets without a colon or minutes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fhirpub.errors import Issue
from fhirpub.fhir.lenient.corrections import Corrections
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.xml.tables import OF_PRIMITIVE, RESOURCE, tables
from fhirpub.problems import ContentProblem

_MOMENT = re.compile(
    r"(?P<minute>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2})"
    r"(?P<second>:[0-9]{2}(?:\.[0-9]+)?)?"
    r"(?P<offset>(?P<hours>[+-][0-9]{2})(?::?(?P<minutes>[0-9]{2}))?|Z)?"
)
_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}")
_MAX_LENGTH = 64
"""Longer than any time, in whatever form."""
_MOMENTS = ("dateTime", "instant")


def correct_times(content: Any) -> Iterator[Issue]:
    """Write the times of a body in FHIR's form, wherever R4 has a time.

    ``2026-11-20T10:05-0300`` becomes ``2026-11-20T10:05:00-03:00``. An offset that is missing is
    not added. Yields warnings with the places.
    """
    walk = _Walk()
    if isinstance(content, dict):
        walk.resource(content, "")
    yield from walk.seconds.issues()
    yield from walk.offsets.issues()


class _Walk:
    """One walk through a body along the tables of R4; what is not in them is left alone."""

    def __init__(self) -> None:
        self.seconds = Corrections(ContentProblem.TIME_CORRECTED, "has no seconds: read with :00")
        self.offsets = Corrections(
            ContentProblem.TIME_CORRECTED, "has an offset in another form than -03:00: written so"
        )
        self._objects = tables().objects

    def resource(self, value: JsonObject, at: str) -> None:
        name = value.get("resourceType")
        if isinstance(name, str) and name in tables().resources:
            self._members(value, name, at or name)

    def _members(self, holder: JsonObject, path: str, at: str) -> None:
        known = self._objects[path]
        for name, value in holder.items():
            element = known.get(name.removeprefix("_"))
            if element is None:
                continue
            kind = OF_PRIMITIVE if name.startswith("_") else element.type
            place = f"{at}.{element.place}"
            if not isinstance(value, list):
                holder[name] = self._value(value, kind, place)
                continue
            for index, item in enumerate(value):
                value[index] = self._value(item, kind, f"{place}[{index}]")

    def _value(self, value: Any, kind: str, at: str) -> Any:
        if isinstance(value, str) and len(value) <= _MAX_LENGTH:
            return self._time(value, kind, at)
        if isinstance(value, dict) and kind == RESOURCE:
            self.resource(value, at)
        elif isinstance(value, dict) and kind in self._objects:
            self._members(value, kind, at)
        return value

    def _time(self, text: str, kind: str, at: str) -> str:
        if kind == "time" and _CLOCK.fullmatch(text):
            self.seconds.add(at)
            return f"{text}:00"
        match = _MOMENT.fullmatch(text) if kind in _MOMENTS else None
        if match is None:
            return text
        second = match["second"] or ":00"
        if not match["second"]:
            self.seconds.add(at)
        offset = match["offset"] or ""
        if match["hours"] and len(offset) != len("-03:00"):
            self.offsets.add(at)
            offset = f"{match['hours']}:{match['minutes'] or '00'}"
        return f"{match['minute']}{second}{offset}"
