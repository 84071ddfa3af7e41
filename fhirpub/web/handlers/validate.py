"""POST /fhir/r4/{Type}/$validate: a registration, tried."""

from __future__ import annotations

from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.validate import TRIED, findings, validate
from fhirpub.web.handlers.body import BodyHandler


class ValidateHandler(BodyHandler):
    """Validate a body as a registration would; 200 whenever validation ran."""

    requires_token = True
    scope = "c"

    async def post(self) -> None:
        """Validate."""
        body = self.take_body()
        tenant, context = self.caller.tenant, self.services.context
        resource_type = self.services.types[self.type_name]
        asked = {name: self.request.parameter(name) for name in TRIED}
        found, version = await self.validate_body(
            body,
            lambda content: findings(
                content,
                asked=asked,
                resource_type=resource_type,
                tenant=tenant,
                context=context,
            ),
        )
        issues = await validate(found, version, tenant=tenant, context=context)
        self.answer(dumps(outcome_of(issues)))
