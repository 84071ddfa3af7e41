"""What was probably meant by an address that leads nowhere, or by a method that it does not have.

Such requests need no token: nothing is looked up, and nothing is repeated but the service's own
names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from fhirpub.fhir.xml.tables import tables
from fhirpub.problems import RequestProblem
from fhirpub.suggestion import nearest
from fhirpub.web.error_mapping import MethodNotAllowed, NoSuchAddress

_BASE = ["fhir", "r4"]
_ID = "{}"
_END = ""
"""A segment that no path has: an address may end here."""
_MOST_SEGMENTS = 8
_METHODS = frozenset({"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"})
_NOTHING = "there is nothing at this address"

Node = dict[str, Any]
"""The segments that may follow, each with those behind it."""


class Addresses:
    """All addresses of the service, as a tree of their segments."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Read the templates of the paths, in which ``{}`` is a blank."""
        self._root: Node = {}
        self._by_last: dict[str, str] = {}
        for path in paths:
            node = self._root
            for segment in (segments := _segments(path)):
                node = node.setdefault(segment, {})
            node[_END] = {}
            self._by_last.setdefault(segments[-1].lower(), _shown(segments))
        self._fhir: Node = self._root.get("fhir", {}).get("r4", {})
        self._types = sorted(tables().resources & self._fhir.keys())
        each = (name for one in self._types for name in self._fhir[one])
        self._operations = sorted({name for name in each if name.startswith("$")})
        self._found = [name for name in self._types if _END in self._fhir[name]]

    def refuse(self, method: str, path: str) -> NoSuchAddress:
        """Return the refusal of a path that the service does not have."""
        segments = self._from_base(_segments(path)[:_MOST_SEGMENTS])
        if method == "POST" and segments == [*_BASE, "Bundle"]:
            said = "a Bundle is not stored: send a batch to the FHIR base, /fhir/r4"
            return NoSuchAddress(said, RequestProblem.BATCH_UNSUPPORTED)
        if segments[:2] == _BASE and len(segments) > 2:
            name = self._type_meant(segments[2])
            if name and name not in self._fhir:
                said = f"{name} is not among the types of this service: {', '.join(self._types)}"
                return NoSuchAddress(said, RequestProblem.TYPE_UNKNOWN)
            if len(segments) == 3 and name and name not in self._found:
                said = f"each {name} is only read, by its id: /fhir/r4/{name}/{{id}}"
                return NoSuchAddress(said, RequestProblem.TYPE_NOT_SEARCHABLE)
        last = segments[-1].lower() if segments else ""
        meant = self._nearest(segments) or self._by_last.get(nearest(last, self._by_last), "")
        if meant:
            return NoSuchAddress(f"{_NOTHING}: did you mean {meant}?")
        types = ", ".join(self._found)
        if last.startswith("$"):
            return NoSuchAddress(f"{_NOTHING}: the operations are {', '.join(self._operations)}")
        return NoSuchAddress(
            f"{_NOTHING}: the base is /fhir/r4, with the types {types}; "
            "/openapi.json describes every address"
        )

    def refuse_method(self, method: str, path: str, methods: Collection[str]) -> MethodNotAllowed:
        """Return the refusal of a method by a path that has others."""
        usable = " or ".join(name for name in methods if name in _METHODS - {"HEAD"})
        said = f"{method if method in _METHODS else 'this method'} is not supported here"
        segments = _segments(path)
        if segments[:2] == _BASE and len(segments) > 2:
            return MethodNotAllowed(f"{said}: {self._advise(method, segments, methods, usable)}")
        return MethodNotAllowed(f"{said}: use {usable}")

    def _advise(
        self, method: str, segments: Sequence[str], methods: Collection[str], usable: str
    ) -> str:
        if method == "DELETE":
            instead = ", an error is marked by PATCH with a status such as entered-in-error"
            return f"nothing is deleted{instead if 'PATCH' in methods else ''}"
        if method == "PUT" and "PATCH" in methods:
            return "change elements by PATCH, and publish by POST"
        siblings = self._fhir.get(segments[2], {})
        meant = nearest(segments[-1], [name for name in siblings if name[:1] in ("$", "_")])
        if method == "POST" and len(segments) == 4 and meant:
            return f"did you mean {_shown([*segments[:3], meant])}?"
        return f"use {usable}"

    def _from_base(self, segments: list[str]) -> list[str]:
        """Return the segments behind the right base, if they name a type behind another one."""
        if segments[:2] != _BASE:
            for index, segment in enumerate(segments):
                if segment in tables().resources or nearest(segment, self._types):
                    return [*_BASE, *segments[index:]]
        return segments

    def _type_meant(self, name: str) -> str:
        """Return the type of R4 that a segment names, or nearly names."""
        known = tables().resources
        if name in known:
            return name
        near = nearest(name, [*self._types, *self._fhir])
        return near if near in known else "" if near else nearest(name, known)

    def _nearest(self, segments: Sequence[str]) -> str:
        """Return the address that differs least, or nothing."""
        node, found = self._root, []
        for segment in segments:
            name = segment if segment in node else nearest(segment, node.keys() - {_ID, _END})
            if not name and _ID in node and not segment.startswith("$"):
                name = _ID
            if not name:
                return ""
            found.append(name)
            node = node[name]
        while _END not in node and node is not self._fhir and len(found) < _MOST_SEGMENTS:
            name = next(iter(node))  # the first address below, of /health the one of /health/live
            found.append(name)
            node = node[name]
        return _shown(found) if _END in node else ""


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


def _shown(segments: Iterable[str]) -> str:
    """Return a path in which the blanks are ids: those that were sent are not repeated."""
    return "/" + "/".join("{id}" if segment == _ID else segment for segment in segments)
