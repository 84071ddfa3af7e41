"""The body of a registration, read from a file, with attached documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fhirpub.cli.publish.documents import Documents, attachment, is_path
from fhirpub.cli.publish.files import UnusableFile
from fhirpub.errors import Refused
from fhirpub.fhir.strict_json import JsonObject, dumps, loads
from fhirpub.fhir.xml.reader import read_xml
from fhirpub.plugin_api import ResourceType

Types = Mapping[str, ResourceType]
NO_TYPES: Types = MappingProxyType({})
_PARTS = frozenset({"patient", "organization", "practitioner"})
_DOCUMENTS = "presentedForm"
_TYPE = re.compile(r"[A-Za-z]+")


class UnusableSubmission(UnusableFile):
    """The file is not the body of a registration; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A Parameters resource, and the entry in it to register."""

    body: JsonObject
    entry: JsonObject

    @classmethod
    def from_json(cls, raw: bytes, types: Types = NO_TYPES) -> Submission:
        """Parse the bytes of a file. Raises UnusableSubmission.

        ``types`` are those whose entries may come with entries of other types: with a report come
        its results.
        """
        return cls._of(raw, loads, types)

    @classmethod
    def from_xml(cls, raw: bytes, types: Types = NO_TYPES) -> Submission:
        """Parse the bytes of a file in XML, like :meth:`from_json`. Raises UnusableSubmission."""
        return cls._of(raw, read_xml, types)

    @classmethod
    def _of(cls, raw: bytes, parse: Callable[[bytes], Any], types: Types) -> Submission:
        try:
            body = parse(raw)
        except Refused as problem:
            raise UnusableSubmission(problem.issues[0].diagnostics) from problem
        if not isinstance(body, dict) or body.get("resourceType") != "Parameters":
            raise UnusableSubmission("must be a Parameters resource, the body of a $register")
        found = [entry for entry in _entries(body) if _is_registered(entry)]
        if not found:
            raise UnusableSubmission(
                "has no entry to register, such as a DiagnosticReport named diagnosticReport"
            )
        return cls(body, _main_entry(found, types))

    @property
    def type_name(self) -> str:
        """The FHIR type of the resource to register."""
        return str(self.entry["resource"]["resourceType"])

    @property
    def has_documents(self) -> bool:
        """Whether the report names or contains documents of its own."""
        return any(True for _ in self._attachments())

    @property
    def paths(self) -> list[str]:
        """The documents that are named by their paths."""
        return [item["url"] for _, item in self._attachments() if is_path(item)]

    def attach(self, files: Iterable[Path]) -> None:
        """Add documents as attachments with their data and its SHA-256."""
        self.add([attachment(file) for file in files])

    def add(self, attachments: Sequence[JsonObject]) -> None:
        """Add attachments to those of the resource. Raises UnusableSubmission."""
        if not attachments:
            return
        home = self.entry if _DOCUMENTS in self.entry else self.entry["resource"]
        attached = home.setdefault(_DOCUMENTS, [])
        if not isinstance(attached, list):
            raise UnusableSubmission(f"{_DOCUMENTS} must be an array")
        attached += attachments

    def read_documents(self, documents: Documents) -> None:
        """Replace the paths of documents by their data. Raises UnusableSubmission."""
        for place, item in self._attachments():
            if not is_path(item):
                continue
            try:
                found = documents.read(item.pop("url"))
            except UnusableFile as problem:
                raise UnusableSubmission(f"{place}.url {problem}") from problem
            item |= {**found, **item}

    def _attachments(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield the attachments of all entries, each with its place."""
        for number, entry in _numbered_entries(self.body):
            place = f"Parameters.parameter[{number}]"
            for where, home in ((place, entry), (f"{place}.resource", entry.get("resource"))):
                listed = home.get(_DOCUMENTS) if isinstance(home, dict) else None
                for at, item in enumerate(listed if isinstance(listed, list) else []):
                    if isinstance(item, dict):
                        yield f"{where}.{_DOCUMENTS}[{at}]", item

    def to_json(self) -> bytes:
        """Return the body to send."""
        return dumps(self.body)


def _entries(body: JsonObject) -> Iterator[JsonObject]:
    return (entry for _number, entry in _numbered_entries(body))


def _numbered_entries(body: JsonObject) -> Iterator[tuple[int, JsonObject]]:
    """Yield the entries that are objects, each with its place in the list."""
    listed = body.get("parameter")
    for number, item in enumerate(listed if isinstance(listed, list) else []):
        if isinstance(item, dict):
            yield number, item


def _main_entry(entries: Sequence[JsonObject], types: Types) -> JsonObject:
    """Return the entry with which all others can come; if there is none, the first."""
    for entry in entries:
        declared = types.get(entry["resource"]["resourceType"])
        parts = {part.name for part in declared.parts} if declared else set()
        if all(other is entry or other["name"] in parts for other in entries):
            return entry
    return entries[0]


def _is_registered(entry: JsonObject) -> bool:
    """Return whether an entry is named after its own type and can be the one to register."""
    name: Any = entry.get("name")
    resource = entry.get("resource")
    type_name = resource.get("resourceType") if isinstance(resource, dict) else None
    # The name becomes part of an address, which it must not change.
    if not isinstance(type_name, str) or not _TYPE.fullmatch(type_name) or name in _PARTS:
        return False
    return bool(name == type_name[0].lower() + type_name[1:])
