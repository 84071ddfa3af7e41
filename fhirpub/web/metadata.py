"""GET /metadata and GET /fhir/r4/metadata, one statement at both (D-1)."""

from __future__ import annotations

from typing import ClassVar

from fhirpub.web.base import BaseHandler


class MetadataHandler(BaseHandler):
    """Describe the service."""

    requires_token = True

    def get(self) -> None:
        """Return the CapabilityStatement."""
        tag, body = self.services.statement
        self.headers["ETag"] = tag
        if self.is_known(tag.removeprefix("W/").strip('"')):
            self.not_modified()
            return
        self.answer(body)


class PublicMetadataHandler(MetadataHandler):
    """Describe the service to everybody (`[fhir] metadata_public`, D-2)."""

    requires_token: ClassVar[bool] = False
