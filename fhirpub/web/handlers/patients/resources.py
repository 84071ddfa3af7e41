"""Patients: read, found, and with their history (ADR 26)."""

from __future__ import annotations

from fhirpub.errors import NotPermitted
from fhirpub.interactions.patients.history import PARAMETERS, history_of_patient
from fhirpub.interactions.patients.read import read_patient, vread_patient
from fhirpub.interactions.patients.statements import PatientVersion
from fhirpub.storage.contract import Version
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.large_responses import read_version_within_budget, with_memory_budget
from fhirpub.web.handlers.read import ReadHandler
from fhirpub.web.handlers.search import SearchFormHandler, SearchHandler


class PatientHandler(ReadHandler):
    """Read the newest statement about a patient."""

    belongs_to_others = True

    async def get(self, resource_id: str) -> None:
        """Read."""
        tenant, context = self.caller.tenant, self.services.context
        found = await read_version_within_budget(
            self, lambda: read_patient(resource_id, tenant=tenant, context=context)
        )
        await self.respond_with_patient(found)

    async def respond_with_patient(self, found: PatientVersion) -> None:
        """Write a patient, if the caller may read what it came with."""
        if not self.may_with("r", (self.type_name, found.owner_type)):
            raise NotPermitted(self.needed_scope())
        await self.respond_with_found(found)

    async def is_known(self, found: Version) -> bool:
        """Return whether the client has it; a date knows seconds alone, and is not enough."""
        return bool(self.request.headers.get("If-None-Match")) and self.client_has(found.tag)


class PatientVersionHandler(PatientHandler):
    """Read one statement about a patient."""

    action = "vread"

    async def get(self, resource_id: str, version: str) -> None:  # type: ignore[override]
        """Read one statement."""
        tenant, context = self.caller.tenant, self.services.context
        found = await read_version_within_budget(
            self, lambda: vread_patient(resource_id, version, tenant=tenant, context=context)
        )
        await self.respond_with_patient(found)


class PatientHistoryHandler(BaseHandler):
    """List the statements about a patient."""

    requires_token = True
    scope = "r"
    action = "history"
    belongs_to_others = True

    async def get(self, resource_id: str) -> None:
        """List statements, newest first."""
        listing = await with_memory_budget(
            self,
            lambda: history_of_patient(
                resource_id,
                {name: self.request.parameter(name) for name in PARAMETERS},
                tenant=self.caller.tenant,
                context=self.services.context,
                may=self.may_with,
            ),
            lambda found: found.size,
        )
        await self.respond_with_bundle(listing)


class PatientSearchHandler(SearchHandler):
    """Search for patients by URL."""

    belongs_to_others = True


class PatientSearchFormHandler(SearchFormHandler):
    """Search for patients by form."""

    belongs_to_others = True
