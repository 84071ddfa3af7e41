"""A submission, however it was sent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fhirpub.errors import Issue
from fhirpub.fhir.contained import Contained
from fhirpub.fhir.document import Document
from fhirpub.fhir.strict_json import JsonObject, loads
from fhirpub.fhir.xml.reader import read_xml
from fhirpub.plugin_api import Entry, Part, ResourceType

ANY_RESOURCE = {"resourceType": "Basic", "id": "validated-separately", "code": {"text": "-"}}
"""Stands for a resource that is validated separately."""


@dataclass(slots=True, kw_only=True)
class Submission:
    """A submission as received, before validation.

    ``parts`` has each part under its name, one that repeats under its name with its number, such
    as ``observation[2]``, and ``declared`` its declaration. ``local`` names each part by the
    literal that references in the body use for it, such as ``Patient/p1`` or ``#p1``.
    ``documents``, ``undecodable``, ``key``, ``digest`` and ``remarks`` fill up on the way.
    """

    type: ResourceType
    entry: Entry
    parts: dict[str, Entry]
    declared: Mapping[str, Part]
    local: dict[str, str]
    members: Mapping[str, Entry] = field(default_factory=dict)
    """The parts that repeat, each of which becomes a resource with versions (ADR 24)."""
    documents: tuple[Document, ...] = ()
    cut: Mapping[str, bytes] = field(default_factory=dict)
    """The documents that were cut out of the body before it was parsed, by their tokens."""
    undecodable: Sequence[Issue] = ()
    """The issues of documents that are no base64."""
    digest: bytes = b""
    key: tuple[str, str] | None = None
    """The system and the value from which the id follows, if there are any (ADR 41)."""
    remarks: list[Issue]
    envelope: Entry | None = None
    """The Parameters without the resources, if they have more than names and resources."""
    placeholders: tuple[JsonObject, ...] = ()
    """What represents the parts among the contained resources during validation."""
    contained_of_parts: Mapping[str, Contained] = field(default_factory=dict)
    """For each part, the contained resources that it refers to, by their local references."""
    kept: Sequence[JsonObject] = ()
    """The contained resources that are no part and that no part needs."""
    content: Sequence[JsonObject]
    """Everything that was sent, taken or not, as the entries of Parameters."""
    wrong: Sequence[Issue] = ()
    """The errors about entries, such as parts that are required and were not sent."""
    held: Collection[str] = ()
    """The parts that were not sent: the tenant holds what the resource refers to (ADR 26)."""
    number: int = 1
    """That of the version to store: above those that an erasure has left (ADR 36)."""
    untaken: Sequence[Entry] = ()
    """The entries of the Parameters that are not taken."""

    @property
    def known_key(self) -> tuple[str, str]:
        """The key of a submission that is right, which has one."""
        if self.key is None:
            raise ValueError("what is accepted has a key")
        return self.key

    def remove_placeholders(self) -> None:
        """Keep in the resource the contained resources that are no part and that no part needs."""
        if not self.placeholders:
            return
        for name, found in self.contained_of_parts.items():
            part = self.parts[name]
            self.parts[name] = Entry({**part.resource, "contained": [*found.values()]}, part.at)
        if self.kept:
            self.entry.resource["contained"] = [*self.kept]
        else:
            del self.entry.resource["contained"]


def parse(body: bytes, *, is_xml: bool) -> Any:
    """Parse a body, JSON or XML, into the values of JSON; raises InvalidContent."""
    return read_xml(body) if is_xml else loads(body)


def resources_in(entry: Entry) -> list[Entry]:
    """Return the resources in an entry of Parameters and in its parts."""
    found, waiting = [], [entry]
    for one in waiting:  # grows while it is read
        resource, parts = one.resource.get("resource"), one.resource.get("part")
        if isinstance(resource, dict):
            found.append(Entry(resource, f"{one.at}.resource"))
        waiting += [
            Entry(part, f"{one.at}.part[{index}]")
            for index, part in enumerate(parts if isinstance(parts, list) else ())
            if isinstance(part, dict)
        ]
    return found
