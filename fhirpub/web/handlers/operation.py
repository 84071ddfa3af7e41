"""GET of an operation of a plugin, on a type or on one resource."""

from __future__ import annotations

import base64
import hashlib
from functools import partial
from typing import Any

from fhirpub.interactions.operations.execution import (
    Subject,
    execute,
    follow_references,
    read_parameters,
)
from fhirpub.interactions.read import read_whole
from fhirpub.plugin_api import OperationResult
from fhirpub.plugin_api.operations import PluginOperation
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.large_responses import with_memory_budget


class OperationHandler(BaseHandler):
    """Return what a plugin makes of a resource, as a document."""

    requires_token = True
    scope = "r"
    action = "operation"

    def __init__(self, declared: PluginOperation, *arguments: Any) -> None:
        self.declared = declared
        super().__init__(*arguments)

    def check_format(self) -> None:
        """Accept any media type: a request for FHIR gets a Binary with the result."""
        self._as_fhir = self.wants_fhir()
        if self._as_fhir:
            super().check_format()

    async def get(self, resource_id: str = "") -> None:
        """Run the operation."""
        operation = self.declared.operation
        parameters = read_parameters(operation, self.request.parameters)
        subject = Subject()
        if operation.on_instance:
            look = partial(self._find, resource_id)
            subject = await with_memory_budget(self, look, lambda found: found.size)
        work = partial(execute, self.services.context, self.declared, subject, parameters)
        self._respond(await self.services.threads.run(self.owner, work))

    async def _find(self, resource_id: str) -> Subject:
        """Read the resource, and what its references lead to."""
        tenant, context = self.caller.tenant, self.services.context
        version = await read_whole(self.type_name, resource_id, tenant=tenant, context=context)
        await self.note_version(version)
        included = await follow_references(
            self.declared.operation,
            version,
            tenant=tenant,
            context=context,
            may=self.may_with,
        )
        self.note(*self._what, *(f"{shown.type}/{shown.id}" for shown in included.versions))
        return Subject(version, included)

    def _respond(self, result: OperationResult) -> None:
        media_type = self.declared.operation.media_type
        if self._as_fhir:
            data = base64.b64encode(result.body).decode()
            resource = {"resourceType": "Binary", "contentType": media_type, "data": data}
            self.respond_serialized(self.serialize(resource))
        else:
            self.headers["Content-Type"] = media_type
            self.headers["Content-Security-Policy"] = _policy(result)
            self.set_private_caching()
            self.finish(result.body)


def _policy(result: OperationResult) -> str:
    """Return a policy that allows nothing but the styles that the operation names."""
    digests = (hashlib.sha256(style.encode()).digest() for style in result.styles)
    styles = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    allowed = styles or "'none'"
    return (
        f"default-src 'none'; style-src {allowed}; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; sandbox allow-popups"
    )
