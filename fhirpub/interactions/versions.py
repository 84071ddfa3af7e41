"""From resources to what is stored of them, and back to what is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from fhirpub.errors import StoreUnavailable
from fhirpub.fhir.document import AttachmentInfo, Document, attachment_info, list_form
from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored
from fhirpub.fhir.times import instant
from fhirpub.interactions.context import Context
from fhirpub.plugin_api import Change, ResourceType
from fhirpub.storage.contract import SMALL_BYTES, Blob, BlobInfo, Version
from fhirpub.tenant import is_resource_id

_DEFINITIONS = "http://hl7.org/fhir/StructureDefinition/"
_SUBSETTED = {
    "system": "http://terminology.hl7.org/CodeSystem/v3-ObservationValue",
    "code": "SUBSETTED",
}
MAX_COUNTED = 1_000
"""So many matches are counted for the total of a list, unless the client wants all (D-266)."""

_MAX_ATTACHED = 16

_DOCUMENT_ID = re.compile(r"([0-9a-f-]{36})\.([1-9][0-9]{0,9})\.([1-9][0-9]{0,8})")
_OURS = ("versionId", "lastUpdated")


def with_server_meta(
    resource: JsonObject, resource_id: str, *, version: int | str, updated: int
) -> JsonObject:
    """Return a resource under its id, with our version and time and the sender's other meta."""
    meta: JsonObject = {"versionId": str(version), "lastUpdated": instant(updated)}
    if "meta" in resource:
        sent = resource["meta"].items()
        meta |= {name: value for name, value in sent if name.lstrip("_") not in _OURS}
    ours = {"id": resource_id, "meta": meta}
    stored = {"resourceType": resource["resourceType"], **ours, **resource, **ours}
    stored.pop("_id", None)  # extensions of the sender's own id
    return stored


def meta_of_subset(resource: Mapping[str, Any]) -> JsonObject:
    """Return the meta of a resource with elements left out: tagged, and with R4's own profile.

    Other profiles may require what was left out, as vital signs require a value (vs-2).
    """
    meta = resource["meta"]
    kept = {**meta}
    if "profile" in meta or "_profile" in meta:
        kept.pop("profile", None)
        kept.pop("_profile", None)
        base = f"{_DEFINITIONS}{resource['resourceType']}"
        profiles = [one for one in meta.get("profile", ()) if one and one.split("|")[0] == base]
        if profiles:
            kept["profile"] = profiles
    if "tag" not in meta:
        return {**kept, "tag": [_SUBSETTED]}
    tags = [tag for tag in meta.get("tag", ()) if tag.get("code") != _SUBSETTED["code"]]
    return {**kept, "tag": [*tags, _SUBSETTED]}


def to_blobs(documents: Iterable[Document]) -> tuple[Blob, ...]:
    """Return the documents as they are kept, each once, as it first came (ADR 3)."""
    unique: dict[str, Document] = {}
    for document in documents:
        unique.setdefault(document.sha256, document)
    return tuple(
        Blob(document.sha256, document.content_type, document.data) for document in unique.values()
    )


def attach(blobs: Iterable[Blob]) -> tuple[tuple[Blob, ...], tuple[Blob, ...]]:
    """Return the documents that a version holds since they are small, and all others (ADR 30)."""
    attached: list[Blob] = []
    others: list[Blob] = []
    room = SMALL_BYTES
    for blob in blobs:
        if len(blob.data) <= room and len(attached) < _MAX_ATTACHED:
            attached.append(blob)
            room -= len(blob.data)
        else:
            others.append(blob)
    return tuple(attached), tuple(others)


def still_attached(latest: Version, documents: Collection[str]) -> tuple[Blob, ...]:
    """Return what the next version holds of the documents that the latest one holds."""
    return tuple(blob for blob in latest.attached if blob.sha256 in documents)


def key_of(version: Version) -> Mapping[str, str]:
    """Return the key of a version for its events."""
    return {"system": version.system, "value": version.value}


def events_of(change: Change, resource_type: ResourceType) -> bytes:
    """Return the events of a change as they are stored, each with an id that follows from it."""
    return dumps(
        [
            {"id": f"{change.id}.{change.version}.{number}", "type": one.type, "data": one.data}
            for number, one in enumerate(resource_type.events(change), start=1)
        ]
    )


def with_trace(events: bytes, traceparent: str) -> bytes:
    """Return the events of a version with the trace of the request that made it (D-372)."""
    return dumps([{**one, "traceparent": traceparent} for one in loads_stored(events)])


class Shown(NamedTuple):
    """What lists show of a version. To pickle a thousand of them takes a tenth of the time."""

    type: str
    id: str
    version: int
    body: bytes

    @classmethod
    def of(cls, version: Version) -> Self:
        """Return what is shown of a version."""
        return cls(version.type, version.id, version.version, version.body)


@dataclass(frozen=True, slots=True)
class Listing:
    """A Bundle that is still to be made."""

    bodies: Sequence[bytes]
    """The resources in it, as they are stored."""
    bundle: Callable[[Context], JsonObject]
    """Pure and picklable, for any thread or process."""

    @property
    def size(self) -> int:
        """How many bytes the resources in it have as they are stored."""
        return sum(map(len, self.bodies))


async def documents_of(
    version: Version, *, tenant_id: str, context: Context
) -> Mapping[str, BlobInfo]:
    """Return a version's documents by their SHA-256, to be put back into its JSON (ADR 3)."""
    found = {blob.sha256: blob.info for blob in version.attached}
    others = [name for name in version.documents if name not in found]
    if others:
        found |= await context.resources.blobs(tenant_id, others)
    if len(found) < len(version.documents):
        raise StoreUnavailable("a document is missing")
    return found


def without_documents(version: Shown, *, context: Context) -> JsonObject:
    """Return a version as lists show it: documents by their address, tagged so."""
    resource: JsonObject = loads_stored(version.body)
    url = f"{context.fhir_url}/Binary/{version.id}.{version.version}"
    attachments = _attachments_of(version.type, context)
    if list_form(resource, attachments, url_of=lambda number: f"{url}.{number}"):
        resource["meta"] = meta_of_subset(resource)
    return resource


def parse_document_id(document_id: str) -> tuple[str, int, int] | None:
    """Return what the id of a document consists of, if it is one of those that lists show.

    That is the id of the resource that it is in, the version, and the number of the attachment.
    """
    match = _DOCUMENT_ID.fullmatch(document_id)
    if match is None or not is_resource_id(match[1]):
        return None
    return match[1], int(match[2]), int(match[3])


def document_in(
    context: Context, body: bytes, *, type_name: str, number: int
) -> AttachmentInfo | None:
    """Return what a stored resource states about one of its documents; pure, for any thread."""
    return attachment_info(loads_stored(body), _attachments_of(type_name, context), number=number)


def _attachments_of(type_name: str, context: Context) -> tuple[str, ...]:
    resource_type = context.types.get(type_name)
    return resource_type.attachments if resource_type else ()
