"""GET /fhir/r4/Binary/{id}: a document itself, or as a FHIR Binary (D-93)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from fhirpub.audit.record import name_of
from fhirpub.errors import (
    NoSuchResource,
    NotPermitted,
    StoreUnavailable,
    VersionConflict,
)
from fhirpub.fhir.document import marker
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.interactions.erased import ResourceErased
from fhirpub.interactions.versions import document_in, parse_document_id
from fhirpub.storage.contract import BlobInfo, Version
from fhirpub.storage.erasure.tombstones import is_erased
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.large_responses import with_memory_budget
from fhirpub.web.message.byte_range import part_of
from fhirpub.web.message.content_disposition import disposition
from fhirpub.web.message.response_body import BlobSlice, ResponseBody

_SHA256 = re.compile("[0-9a-f]{64}")
_UNKNOWN_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class _Found:
    """A document under the type and the title that a resource states."""

    blob: BlobInfo
    content_type: str
    title: str = ""


class BinaryHandler(BaseHandler):
    """Read a document, as an attachment in a version of a resource describes it.

    Its id is that of the version with the number of the attachment, so that both are there or
    neither. The SHA-256 of its bytes, its id until 0.2.0, leads to them alone.
    """

    requires_token = True
    conditions = frozenset({"If-Match", "If-None-Match"})
    scope = "r"
    action = "read"
    belongs_to_others = True

    def may(self, letter: str) -> bool:
        """Ask for the right to Binary, or to a type that has documents."""
        types = self.services.types.items()
        having = [name for name, resource_type in types if resource_type.attachments]
        return self.may_with(letter, (self.type_name, *having))

    def check_format(self) -> None:
        """Accept any media type: a client that does not ask for FHIR gets the document itself."""
        self._as_fhir = self.wants_fhir()
        if self._as_fhir:
            super().check_format()

    async def get(self, document_id: str) -> None:
        """Read a document."""
        found = await self._find(document_id)
        blob = found.blob
        # A strong tag is for the document's own bytes; JSON and XML are other representations.
        self.headers["ETag"] = f'{"W/" if self._as_fhir else ""}"{blob.sha256}"'
        self._check_precondition()
        if self.client_has(blob.sha256):
            self.respond_not_modified()
            return
        if self._as_fhir:
            body = self.serialize(_resource(document_id, found))
            self.respond_with_documents(body, {blob.sha256: blob})
            return
        self._set_document_headers(found)
        self._respond_with_part(blob)

    def _set_document_headers(self, found: _Found) -> None:
        self.headers["Content-Type"] = found.content_type
        self.headers["Content-Disposition"] = disposition(found.title, found.content_type)
        self.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
        self.set_private_caching()

    def _respond_with_part(self, blob: BlobInfo) -> None:
        self.headers["Accept-Ranges"] = "bytes"
        part = part_of(blob.size, self._requested_range())
        if part is None:
            part = slice(0, blob.size)
        else:
            self.status = HTTPStatus.PARTIAL_CONTENT
            self.headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{blob.size}"
        self.finish_with(ResponseBody([BlobSlice(blob, part)], self.read_pieces))

    def _check_precondition(self) -> None:
        """Raise VersionConflict unless If-Match means these bytes (RFC 9110, 13.1.1)."""
        if "If-Match" not in self.request.headers:
            return
        named = ",".join(self.request.headers.get_list("If-Match")).strip()
        if named == "*" or self.headers["ETag"] in re.findall(r'(?:W/)?"[^"]*"', named):
            return
        raise VersionConflict(target="of other bytes", current=self.headers["ETag"])

    def _requested_range(self) -> str:
        """Return the Range header, unless it is meant for other bytes (If-Range)."""
        headers = self.request.headers
        meant_for = headers.get("If-Range", self.headers["ETag"])
        same = self.request.method == "GET" and meant_for == self.headers["ETag"]
        return headers.get("Range", "") if same else ""

    async def note_document(self, document_id: str, version: Version) -> None:
        """Note the document, and the version that it is in."""
        await self.note_version(version)
        self.note(name_of("Binary", document_id), *self._what)

    async def _find(self, document_id: str) -> _Found:
        if _SHA256.fullmatch(document_id):
            blob = await self._blob(document_id)
            found = _Found(blob, blob.content_type) if blob else None
        else:
            found = await self._find_in_version(document_id)
        if found is None:
            raise NoSuchResource("Binary", document_id)
        return found

    async def _find_in_version(self, document_id: str) -> _Found | None:
        key = parse_document_id(document_id)
        if key is None:
            return None
        resource_id, number, place = key
        look = partial(
            self.services.context.resources.version, self.caller.tenant.id, resource_id, number
        )
        version = await with_memory_budget(self, look, lambda one: len(one.body) if one else 0)
        if version is None:
            return None
        if is_erased(version):
            raise ResourceErased("Binary", document_id)
        if not self.may_with("r", (self.type_name, version.type)):
            raise NotPermitted(self.needed_scope())
        await self.note_document(document_id, version)
        work = partial(document_in, type_name=version.type, number=place)
        info = await self.compute_answer(work, [version.body], body=version.body)
        if info is None:
            return None
        attached = (blob.info for blob in version.attached if blob.sha256 == info.sha256)
        blob = next(attached, None) or await self._blob(info.sha256)
        if blob is None:
            raise StoreUnavailable("a document is missing")
        return _Found(blob, info.content_type or _UNKNOWN_TYPE, info.title)

    async def _blob(self, sha256: str) -> BlobInfo | None:
        blobs = await self.services.context.resources.blobs(self.caller.tenant.id, [sha256])
        return blobs.get(sha256)


def _resource(document_id: str, found: _Found) -> JsonObject:
    return {
        "resourceType": "Binary",
        "id": document_id,
        "contentType": found.content_type,
        "data": marker(found.blob.sha256, found.blob.size),
    }
