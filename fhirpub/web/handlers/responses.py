"""Responses as the client wants them: representations, headers, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import urlencode

from fhirpub.errors import FhirpubError
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.fhir.times import http_date, instant
from fhirpub.interactions.context import Context
from fhirpub.interactions.versions import Listing, documents_of
from fhirpub.storage.contract import BlobInfo, Version
from fhirpub.web.error_mapping import headers_for, response_for
from fhirpub.web.handlers.audited import AuditedRequest
from fhirpub.web.handlers.placement import DENSE, LARGE, LARGE_STORED, compute, count_values
from fhirpub.web.message import content_negotiation as media
from fhirpub.web.message.content_coding import GZIP, encode_gzip
from fhirpub.web.message.preconditions import includes_tag
from fhirpub.web.message.representation import (
    Format,
    serialize,
    serialize_bundle,
    serialize_stored,
)
from fhirpub.web.message.response_body import ResponseBody

T = TypeVar("T")

_DENSE_JSON = 10 * DENSE
"""To write JSON takes a tenth of the time of writing XML."""


class ResponseWriter(AuditedRequest):
    """Writes resources, Bundles and refusals in the format that the client asks for."""

    response_type = media.FHIR_JSON

    def check_format(self) -> None:
        """Choose the format of the answer, or refuse (406)."""
        self.response_type = self._requested_type()

    def wants_fhir(self) -> bool:
        """Return whether the client asks for a resource, where a document is available as well."""
        accept, form = self._accepted()
        return media.names_fhir(form) if form else media.prefers_fhir(accept)

    def _requested_type(self) -> str:
        return media.answer_type(*self._accepted())

    def _accepted(self) -> tuple[str, str]:
        """Return what the client accepts, and the ``_format`` that comes before it."""
        accept = ",".join(self.request.headers.get_list("Accept"))
        return accept, self.request.parameter("_format")

    def respond(self, body: bytes) -> None:
        """Write a resource that is known to be small."""
        self.respond_serialized(self.serialize(body))

    async def respond_with_version(self, version: Version, *, status: int = 200) -> None:
        """Write a version with its documents in it."""
        tenant_id, context = self.caller.tenant.id, self.services.context
        documents = await documents_of(version, tenant_id=tenant_id, context=context)
        text = version.body
        if not self.format.is_stored:
            work = partial(serialize_stored, form=self.format)
            text = await self.compute_answer(work, [version.body], body=version.body)
        self.respond_with_documents(text, documents, status=status)

    def respond_with_documents(
        self, text: bytes, documents: Mapping[str, BlobInfo], *, status: int = 200
    ) -> None:
        """Write a resource, encoded already, with the data of its documents put in.

        With documents it is not compressed: it is sent as they are read, and they hardly shrink.
        """
        if not documents:  # to look for their places would take milliseconds for each megabyte
            self.respond_serialized(text, status)
            return
        self._describe_body(status)
        self.finish_with(ResponseBody.with_documents(text, documents, self.read_pieces))

    def read_pieces(self, blob: BlobInfo, part: slice) -> AsyncGenerator[bytes, None]:
        """Yield a part of a document of the tenant that calls."""
        return self.services.store.blob_pieces(self.caller.tenant.id, blob, part)

    async def compute_answer(
        self,
        work: Callable[[Context, bytes], T],
        stored: Sequence[bytes],
        *,
        body: bytes = b"",
    ) -> T:
        """Return what a pure function makes of stored resources, wherever it runs (ADR 23).

        It is called with ``body``, or has brought the resources as arguments.
        """
        most = DENSE if self.format.is_xml else _DENSE_JSON
        size = sum(map(len, stored))
        is_dense = size > LARGE_STORED or (size > most and sum(map(count_values, stored)) > most)
        return await compute(self.services, self.owner, work, [body], size=size, is_dense=is_dense)

    async def respond_with_bundle(self, listing: Listing) -> None:
        """Write a Bundle whose links ask for the format that this request asks for."""
        wishes = {item: self.request.parameter(item) for item in ("_format", "_pretty")}
        asked = urlencode({name: value for name, value in wishes.items() if value})
        await self.note_stored(listing.bodies)
        work = partial(serialize_bundle, listing=listing, asked=asked, form=self.format)
        self.respond_serialized(await self.compute_answer(work, listing.bodies))

    @property
    def format(self) -> Format:
        """The format in which the client wants resources."""
        return Format(
            media.is_xml(self.response_type), self.request.parameter("_pretty") == "true"
        )

    def serialize(self, resource: bytes | JsonObject) -> bytes:
        """Return a small resource, ready or to be encoded, as the client wants to see it."""
        return serialize(resource, self.format)

    def respond_serialized(self, body: bytes, status: int = HTTPStatus.OK) -> None:
        """Write a resource that is serialized already."""
        self._describe_body(status)
        if self.wants_gzip(len(body)):
            self._finish_in_gzip(body)
        else:
            self.finish(body)

    def respond_with_parts(self, parts: Sequence[bytes]) -> None:
        """Write a resource that is serialized in parts, without making a whole of them."""
        self._describe_body(HTTPStatus.OK)
        self.finish_with(ResponseBody(parts, self.read_pieces))

    def wants_gzip(self, size: int) -> bool:
        """Return whether a body is to be compressed: it is large, and the client accepts it."""
        least = self.services.config.server.compress_from_bytes
        if not least or size < least:
            return False
        return media.accepts_gzip(",".join(self.request.headers.get_list("Accept-Encoding")))

    def _finish_in_gzip(self, body: bytes) -> None:
        """Compress an answer without a secret, in a thread if it is large, and send it."""
        if len(body) <= LARGE:
            self.finish_encoded(encode_gzip(body))
        else:
            work = self._encode_in_thread(body)
            self._encoding = asyncio.create_task(self._await_or_fail(work, self.fail))

    async def _encode_in_thread(self, body: bytes) -> None:
        self.finish_encoded(
            await self.services.threads.run(self.owner, partial(encode_gzip, body))
        )

    def finish_encoded(self, coded: bytes) -> None:
        """Send an answer that is in gzip."""
        self.headers["Content-Encoding"] = GZIP
        self.finish(coded)

    def _describe_body(self, status: int) -> None:
        self.status = status
        self.headers["Content-Type"] = self.response_type
        self.set_private_caching()

    def set_private_caching(self) -> None:
        """Let the client alone keep the answer, for what it accepts, and ask before each use."""
        self.headers["Cache-Control"] = "private, no-cache"
        compresses = self.services.config.server.compress_from_bytes
        self.headers["Vary"] = "Accept, Accept-Encoding" if compresses else "Accept"

    def respond_empty(self, *, status: int = 204) -> None:
        """Write an answer that has no body, such as 204 or 304."""
        self.status = status
        self.finish()

    def client_has(self, tag: str) -> bool:
        """Return whether If-None-Match names this tag (RFC 9110, 13.1.2, weak comparison)."""
        return includes_tag(self.request.headers.get("If-None-Match", ""), tag)

    def respond_not_modified(self) -> None:
        """Answer 304: the client has it."""
        self.set_private_caching()
        self.respond_empty(status=304)

    def set_version_headers(self, version: Version, *, registration: bool = False) -> None:
        """Set ETag and Last-Modified (D-85)."""
        self.note_resource(version)
        style = self.services.config.fhir.last_modified_style
        as_instant = style == "specification" or (style == "by-route" and registration)
        moment = instant(version.updated) if as_instant else http_date(version.updated)
        self.headers["ETag"] = f'W/"{version.tag}"'
        self.headers["Last-Modified"] = moment

    def set_location(self, version: Version) -> None:
        """Set Location to the version (D-84)."""
        base = f"{self.services.context.fhir_url}/{version.type}/{version.id}"
        self.headers["Location"] = f"{base}/_history/{version.version}"

    def write_refusal(self, problem: Exception) -> None:
        """Write any refusal or fault as an OperationOutcome (D-139 to D-143)."""
        answer = response_for(problem)
        self.status = answer.status
        self.note_issues(answer.issues)
        self.headers.update(headers_for(problem))
        context = self.services.context
        fhirpath = context.schemas.fhirpath
        outcome = outcome_of(
            [issue.moved(fhirpath) for issue in answer.issues],
            fhir_url=context.fhir_url,
            request_id=self.request_id,
        )
        try:
            self.response_type = self._requested_type()
            body = self.serialize(outcome)
        except FhirpubError:  # what cannot be had must not hide what is wrong
            self.response_type = media.FHIR_JSON
            body = dumps(outcome)
        self.headers["Content-Type"] = self.response_type
        self.headers["Cache-Control"] = "no-store"
        self.finish(body)
