"""The description of the service: the CapabilityStatement (D-1) and OpenAPI (D-260)."""

from __future__ import annotations

from typing import ClassVar

from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.message.content_coding import encode_gzip_once


class MetadataHandler(BaseHandler):
    """Describe the service."""

    requires_token = True
    conditions = frozenset({"If-None-Match"})
    is_counted = False

    def get(self) -> None:
        """Return the CapabilityStatement."""
        tag, body = self.services.statement
        self.headers["ETag"] = tag
        if self.client_has(tag.removeprefix("W/").strip('"')):
            self.respond_not_modified()
            return
        self.respond(body)


class OpenApiHandler(BaseHandler):
    """Describe the whole HTTP interface publicly: it explains how to get a token."""

    requires_token = False

    def check_format(self) -> None:
        """Answer in JSON whatever is accepted."""

    def get(self) -> None:
        """Return the OpenAPI document."""
        tag, body = self.services.openapi
        self.headers["ETag"] = tag
        self.headers["Cache-Control"] = "no-cache"
        self.headers["Vary"] = "Accept-Encoding"
        if self.client_has(tag.removeprefix("W/").strip('"')):
            self.respond_empty(status=304)
            return
        self.headers["Content-Type"] = "application/json"
        if self.wants_gzip(len(body)):
            self.finish_encoded(encode_gzip_once(body))
        else:
            self.finish(body)


class PublicMetadataHandler(MetadataHandler):
    """Describe the service publicly (`[fhir] metadata_public`)."""

    requires_token: ClassVar[bool] = False
