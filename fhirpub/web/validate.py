"""POST /fhir/r4/{Type}/$validate: a registration, tried."""

from __future__ import annotations

from fhirpub.cohorts import Stages
from fhirpub.errors import Issue
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.validate import TRIED, findings, validate
from fhirpub.storage.contract import Version
from fhirpub.web.body_handler import BodyHandler


class ValidateHandler(BodyHandler):
    """Tell what a registration would say; always 200 when that could be found out."""

    requires_token = True
    scope = "c"

    async def post(self) -> None:
        """Validate."""
        body = self.take_body()
        found, version = await self.judged(len(body), self._findings(body))
        tenant, context = self.caller.tenant, self.services.context
        issues = await validate(found, version, tenant=tenant, context=context)
        self.answer(dumps(outcome_of(issues)))

    def _findings(self, body: bytes) -> Stages[tuple[list[Issue], Version | None]]:
        content = self.content(body)
        yield
        return (
            yield from findings(
                content,
                asked={name: self.request.parameter(name) for name in TRIED},
                resource_type=self.services.types[self.type_name],
                tenant=self.caller.tenant,
                context=self.services.context,
            )
        )
