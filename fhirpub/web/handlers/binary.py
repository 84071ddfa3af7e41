"""GET /fhir/r4/Binary/{id}: a document itself, or as a FHIR Binary (D-93)."""

from __future__ import annotations

import re
from http import HTTPStatus

from fhirpub.errors import NoSuchResource, VersionConflict
from fhirpub.fhir.document import marker
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.storage.contract import BlobInfo
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.message import content_negotiation as media
from fhirpub.web.message.byte_range import part_of
from fhirpub.web.message.content_disposition import disposition
from fhirpub.web.message.response_body import BlobSlice, ResponseBody

_SHA256 = re.compile("[0-9a-f]{64}")


class BinaryHandler(BaseHandler):
    """Read a document. Its id is the SHA-256 of its bytes, so that it never changes."""

    requires_token = True
    scope = "r"
    belongs_to_others = True

    def may(self, letter: str) -> bool:
        """Ask for the right to Binary, or to a type that has documents."""
        types = self.services.types.items()
        having = [name for name, resource_type in types if resource_type.attachments]
        return self.may_with(letter, (self.type_name, *having))

    def check_format(self) -> None:
        """Accept any media type: a client that does not ask for FHIR gets the document itself."""
        form = self.request.parameter("_format")
        accept = ",".join(self.request.headers.get_list("Accept"))
        self._as_fhir = media.names_fhir(form) if form else media.prefers_fhir(accept)
        if self._as_fhir:
            super().check_format()

    async def get(self, document_id: str) -> None:
        """Read a document."""
        blob = await self._blob(document_id)
        # A strong tag is for the document's own bytes; JSON and XML are other representations.
        self.headers["ETag"] = f'{"W/" if self._as_fhir else ""}"{blob.sha256}"'
        self._check_precondition()
        if self.client_has(blob.sha256):
            self.respond_not_modified()
            return
        if self._as_fhir:
            self.respond_with_documents(self.serialize(_resource(blob)), {blob.sha256: blob})
            return
        self.headers["Content-Type"] = blob.content_type
        self.headers["Content-Disposition"] = disposition(blob.title, blob.content_type)
        self.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
        self.set_private_caching()
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

    async def _blob(self, document_id: str) -> BlobInfo:
        names = [document_id] if _SHA256.fullmatch(document_id) else []
        blobs = await self.services.context.resources.blobs(self.caller.tenant.id, names)
        if document_id not in blobs:
            raise NoSuchResource("Binary", document_id)
        return blobs[document_id]


def _resource(blob: BlobInfo) -> JsonObject:
    return {
        "resourceType": "Binary",
        "id": blob.sha256,
        "contentType": blob.content_type,
        "data": marker(blob.sha256, blob.size),
    }
