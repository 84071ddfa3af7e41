"""POST /fhir/r4/{Type}/$validate: a registration, tried."""

from __future__ import annotations

from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.validate import TRIED, Trial, add_verdict, try_registration
from fhirpub.runtime.stages import Stages
from fhirpub.web.handlers.body import BodyHandler


class ValidateHandler(BodyHandler):
    """Validate a body as a registration would; 200 whenever validation ran."""

    requires_token = True
    scope = "c"

    async def post(self) -> None:
        """Validate."""
        body = self.take_body()
        found, version = await self.run_stages(self._try(body), size=len(body))
        issues = await add_verdict(
            found, version, tenant=self.caller.tenant, context=self.services.context
        )
        self.respond(dumps(outcome_of(issues)))

    def _try(self, body: bytes) -> Stages[Trial]:
        content = self.parse(body)
        yield
        return (
            yield from try_registration(
                content,
                asked={name: self.request.parameter(name) for name in TRIED},
                resource_type=self.services.types[self.type_name],
                tenant=self.caller.tenant,
                context=self.services.context,
            )
        )
