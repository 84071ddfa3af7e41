"""GET /fhir/r4/{Type}/{id}/_history."""

from __future__ import annotations

from fhirpub.interactions.history import BELOW, history
from fhirpub.web.base import BaseHandler


class HistoryHandler(BaseHandler):
    """List the versions of one resource."""

    requires_token = True
    scope = "r"

    async def get(self, resource_id: str) -> None:
        """List versions, newest first."""
        versions = await history(
            resource_id,
            count=self.request.parameter("_count"),
            below=self.request.parameter(BELOW),
            resource_type=self.services.types[self.type_name],
            tenant=self.caller.tenant,
            context=self.services.context,
        )
        await self.answer_made(versions.size, lambda: self.listed(versions))
