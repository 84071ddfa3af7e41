"""Records as BSON documents and back, and what must be refused before it is sent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import bson
from bson.errors import BSONError
from bson.objectid import ObjectId
from bson.raw_bson import RawBSONDocument
from pymongo import UpdateOne

from fhirpub.errors import InvalidContent, TooLarge
from fhirpub.problems import ContentProblem
from fhirpub.storage.contract import (
    SMALL_BYTES,
    Blob,
    BlobInfo,
    Version,
)
from fhirpub.storage.criteria import SearchValue, decode, encode, field_number
from fhirpub.storage.mongodb.schema import NO_EVENTS

Document = Mapping[str, Any]
Key = tuple[str, int]

MAX_BYTES = 16 * 1024 * 1024 - 16 * 1024
"""MongoDB takes 16 MiB; the rest is for what stands around a document on its way."""
PIECE_BYTES = 255 * 1024
"""As they are stored: with another number, pieces that are there would not fit together."""
LARGEST_INTEGER = 2**63 - 1
_VALUE_WEIGHT = 2 * 1024
"""A search value takes the server as long as so many bytes: of ten panels a batch is full."""
NOT_SHOWN = ("response", "parts", "events", "search", "digest", "audit")
"""What a version may lack that is read as :meth:`Version.without_internal_fields`."""


@dataclass(frozen=True, slots=True, eq=False)
class Addition:
    """A version on its way in, encoded, and its documents, the large ones in pieces.

    ``nonce`` is fresh for each call and the ``_id`` of what it inserts: the writer of a key can be
    identified by it when the reply to the insert was lost. ``size`` is what it weighs in a batch.
    ``stored`` is in bytes, of the version as its tenant's quota counts it. ``values`` is how many
    search values it has, together with its members.
    """

    tenant: str
    key: Key
    nonce: ObjectId
    document: RawBSONDocument
    blobs: tuple[dict[str, Any], ...]
    pieces: tuple[dict[str, Any], ...]
    size: int
    stored: int
    values: int

    def without_pieces(self) -> Addition:
        """Return what is left to add once the pieces are written."""
        written = sum(len(piece["data"]) for piece in self.pieces)
        return replace(self, pieces=(), size=self.size - written)


def encode_addition(
    tenant: str, version: Version, blobs: Collection[Blob], *, now: int
) -> Addition:
    """Encode one call separately: in a batch, an encoding error would fail the others too.

    Raises TooLarge, and InvalidContent for what BSON cannot hold.
    """
    nonce = ObjectId()
    try:
        fields = _version_document(nonce, tenant, version)
        document = bson.encode(fields)
        keeping = tuple(_blob_document(tenant, blob, now=now) for blob in blobs)
        pieces = tuple(piece for blob in blobs for piece in _pieces_of(tenant, blob, now=now))
    except (BSONError, OverflowError, UnicodeEncodeError):
        raise InvalidContent.because(
            "the resource cannot be stored as it is", details=ContentProblem.CHARACTER_FORBIDDEN
        ) from None
    if len(document) > MAX_BYTES:
        raise TooLarge.because(
            "the resource is larger than the store can keep", details=ContentProblem.BODY_TOO_LARGE
        )
    key, raw = (version.id, version.version), RawBSONDocument(document)
    values = sum(len(one["search"]) for one in (fields, *fields.get("members", ())))
    size = len(document) + sum(len(blob.data) for blob in blobs) + values * _VALUE_WEIGHT
    return Addition(tenant, key, nonce, raw, keeping, pieces, size, version.size, values)


def _version_document(nonce: ObjectId, tenant: str, version: Version) -> dict[str, Any]:
    v = version
    document: dict[str, Any] = {
        "_id": nonce,
        "id": v.id,
        "version": v.version,
        "tenant": tenant,
        "type": v.type,
        "system": v.system,
        "value": v.value,
        "status": v.status,
        "created": v.created,
        "updated": v.updated,
        "events": v.events,
        "body": v.body,
        "response": v.response,
        "parts": v.parts,
        "search": found_by(tenant, v.type, v.search),
    }
    if v.digest:
        document["digest"] = v.digest
    if v.attached:
        document["attached"] = [_attached_document(blob) for blob in v.attached]
    if v.documents:  # absent otherwise: the index over it has entries for those that name some
        document["documents"] = v.documents
    if v.events != NO_EVENTS:  # so too; False once they are relayed
        document["unrelayed"] = True
    if v.audit:  # absent once its record is sealed
        document["audit"], document["unsealed"] = v.audit, True
    if v.members:  # so too; at the end, where they are in the way of no other field
        document["member_types"] = sorted({member_type(tenant, one.type) for one in v.members})
        document["members"] = [_member_document(tenant, one) for one in v.members]
    return document


def _attached_document(blob: Blob) -> dict[str, Any]:
    return {"sha256": blob.sha256, "content_type": blob.content_type, "data": blob.data}


def attached_in(document: Document) -> Iterator[Blob]:
    """Yield the documents that the document of a version holds."""
    for one in document.get("attached", ()):
        yield Blob(one["sha256"], one["content_type"], one["data"])


def _member_document(tenant: str, member: Version) -> dict[str, Any]:
    """Return a member as it is embedded; its tenant and ``updated`` are those of its carrier."""
    m = member
    return {
        "id": m.id,
        "version": m.version,
        "type": m.type,
        "system": m.system,
        "value": m.value,
        "status": m.status,
        "created": m.created,
        "body": m.body,
        "search": found_by(tenant, m.type, m.search),
    }


def members_of(carrier: Document) -> Iterator[Document]:
    """Yield the members in a document in the form of versions, with the key of their carrier."""
    shared = {"tenant": carrier["tenant"], "updated": carrier["updated"]}
    shared["carrier"] = {"id": carrier["id"], "version": carrier["version"]}
    for member in carrier.get("members", ()):
        yield {**member, **shared}


def member_type(tenant: str, type_name: str) -> int:
    """Return what a version has in ``member_types`` if it brought members of a type."""
    return field_number(tenant, type_name, "")


def version_key_of(document: Document) -> Key:
    """Return the key of a version."""
    return document["id"], document["version"]


def version_with_members(document: Document) -> Version:
    """Return the version of a document, with the members that it brought."""
    members = tuple(version_of(member) for member in members_of(document))
    return replace(version_of(document), members=members)


def version_of(document: Document) -> Version:
    """Return the version of a document, without its members."""
    d = document
    return Version(
        id=d["id"],
        version=d["version"],
        type=d["type"],
        system=d["system"],
        value=d["value"],
        status=d["status"],
        created=d["created"],
        updated=d["updated"],
        body=d["body"],
        documents=tuple(d.get("documents", ())),
        attached=tuple(attached_in(d)),
        response=d.get("response", b""),
        parts=d.get("parts", b""),
        events=d.get("events", NO_EVENTS),
        search=encode(map(_search_value, d.get("search", ()))),
        digest=d.get("digest", b""),
        audit=d.get("audit", b""),
    )


def found_by(tenant: str, type_name: str, search: bytes) -> list[dict[str, str | int | None]]:
    """Return values as they are stored; what has a ``key``, a code or a time's end, is indexed."""
    return [
        _stored_value(field_number(tenant, type_name, name), name, first, second)
        for name, first, second in decode(search)
    ]


def _stored_value(
    field: int, name: str, first: str | int | None, second: str | int | None
) -> dict[str, str | int | None]:
    if isinstance(first, int):
        return {"name": name, "field": field, "key": second, "rest": first}
    if first:
        return {"name": name, "field": field, "key": first, "rest": second}
    return {"name": name, "rest": second}


def _search_value(stored: Mapping[str, Any]) -> SearchValue:
    key, rest = stored.get("key", ""), stored["rest"]
    if rest is None:
        return stored["name"], None, None
    return (stored["name"], key, rest) if isinstance(key, str) else (stored["name"], rest, key)


def blob_id(tenant: str, sha256: str) -> str:
    """Return the key of a blob."""
    return f"{tenant}/{sha256}"


def _blob_document(tenant: str, blob: Blob, *, now: int) -> dict[str, Any]:
    """Return the document of a blob that no version is known to name yet."""
    document = {
        "_id": blob_id(tenant, blob.sha256),
        "tenant": tenant,
        "sha256": blob.sha256,
        "content_type": blob.content_type,
        "size": len(blob.data),
        "loose": True,
        "added": now,
    }
    bson.encode(document)  # what it refuses is seen here, and not in the batch
    return document | ({"data": blob.data} if len(blob.data) <= SMALL_BYTES else {})


def piece_id(tenant: str, sha256: str, number: int) -> str:
    """Return the key of a piece, ``number`` counted from 0."""
    return f"{blob_id(tenant, sha256)}/{number}"


def _pieces_of(tenant: str, blob: Blob, *, now: int) -> Iterator[dict[str, Any]]:
    """Return the bytes of a large blob, in documents of which none is known to be needed yet."""
    if len(blob.data) <= SMALL_BYTES:
        return
    for number, start in enumerate(range(0, len(blob.data), PIECE_BYTES)):
        yield {
            "_id": piece_id(tenant, blob.sha256, number),
            "tenant": tenant,
            "blob": blob_id(tenant, blob.sha256),
            "loose": True,
            "added": now,
            "data": blob.data[start : start + PIECE_BYTES],
        }


def refresh_update(blob: Document) -> UpdateOne:
    """Return what marks a blob, or a piece, as fresh, and keeps it if it is not there any more."""
    kept = {name: value for name, value in blob.items() if name not in ("_id", "added")}
    fresh = {"$setOnInsert": kept, "$max": {"added": blob["added"]}}
    return UpdateOne({"_id": blob["_id"]}, fresh, upsert=True)


def blob_of(document: Document) -> BlobInfo:
    """Return what is known of a blob."""
    d = document
    return BlobInfo(d["sha256"], d["content_type"], d["size"], d.get("data"))
