"""The body of a registration, read from a file, with attached documents."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fhirpub.errors import Refused
from fhirpub.fhir.strict_json import JsonObject, dumps, loads
from fhirpub.fhir.times import instant
from fhirpub.plugin_api import ResourceType

Types = Mapping[str, ResourceType]
NO_TYPES: Types = MappingProxyType({})
_PARTS = frozenset({"patient", "organization", "practitioner"})
_DOCUMENTS = "presentedForm"


class UnusableSubmission(ValueError):
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
        try:
            body = loads(raw)
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

    def attach(self, files: Iterable[Path]) -> None:
        """Add documents as attachments with their data and its SHA-256."""
        added = [attachment(file) for file in files]
        if not added:
            return
        home = self.entry if _DOCUMENTS in self.entry else self.entry["resource"]
        attached = home.setdefault(_DOCUMENTS, [])
        if not isinstance(attached, list):
            raise UnusableSubmission(f"{_DOCUMENTS} must be an array")
        attached += added

    def to_json(self) -> bytes:
        """Return the body to send."""
        return dumps(self.body)


def attachment(file: Path) -> JsonObject:
    """Return a file as a FHIR Attachment.

    Its date is that of the file: a command that is run again must send the same.
    """
    data = file.read_bytes()
    return {
        "contentType": mimetypes.guess_type(file.name)[0] or "application/octet-stream",
        "title": os.fsencode(file.name).decode(errors="replace"),  # a name may be Latin-1
        "data": base64.b64encode(data).decode(),
        "hash": hashlib.sha256(data).hexdigest(),
        "creation": instant(file.stat().st_mtime_ns // 1_000_000),
    }


def _entries(body: JsonObject) -> Iterator[JsonObject]:
    listed = body.get("parameter")
    for item in listed if isinstance(listed, list) else []:
        if isinstance(item, dict):
            yield item


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
    if not isinstance(type_name, str) or not type_name or name in _PARTS:
        return False
    return bool(name == type_name[0].lower() + type_name[1:])
