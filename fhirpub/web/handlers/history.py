"""GET /fhir/r4/{Type}/{id}/_history and GET /fhir/r4/{Type}/_history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fhirpub.interactions.history import PARAMETERS, history, history_of_type
from fhirpub.interactions.versions import Listing
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.large_responses import with_memory_budget


class HistoryHandler(BaseHandler):
    """List the versions of one resource."""

    requires_token = True
    scope = "r"
    action = "history"

    async def get(self, resource_id: str) -> None:
        """List versions, newest first."""
        await self.answer_list(
            lambda: history(
                resource_id,
                self.parameters(),
                resource_type=self.services.context.searched[self.type_name].type,
                tenant=self.caller.tenant,
                context=self.services.context,
            )
        )

    def parameters(self) -> dict[str, str]:
        """Return the parameters of a history, empty where they are absent."""
        return {name: self.request.parameter(name) for name in PARAMETERS}

    async def answer_list(self, look: Callable[[], Awaitable[Listing]]) -> None:
        """Write a list of versions."""
        versions = await with_memory_budget(self, look, lambda found: found.size)
        await self.respond_with_bundle(versions)


class TypeHistoryHandler(HistoryHandler):
    """List the versions of all resources of a type."""

    scope = "s"

    async def get(self) -> None:  # type: ignore[override]
        """List versions, newest first."""
        await self.answer_list(
            lambda: history_of_type(
                self.parameters(),
                resource_type=self.services.context.searched[self.type_name].type,
                tenant=self.caller.tenant,
                context=self.services.context,
            )
        )
