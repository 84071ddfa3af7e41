"""POST /fhir/r4/{Type}/$validate: a registration, tried."""

from __future__ import annotations

from functools import partial

from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.validate import TRIED, add_verdict, try_registration
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.comparison import compare


class ValidateHandler(BodyHandler):
    """Validate a body as a registration would; 200 whenever validation ran."""

    requires_token = True
    scope = "c"

    async def post(self) -> None:
        """Validate."""
        trial = await self.compute_body(
            partial(
                try_registration,
                is_xml=self.is_xml,
                asked={name: self.request.parameter(name) for name in TRIED},
                type_name=self.type_name,
                tenant=self.caller.tenant,
            )
        )
        context = self.services.context
        issues = await add_verdict(
            trial,
            tenant=self.caller.tenant,
            type_name=self.type_name,
            context=context,
            compare=partial(compare, self),
        )
        outcome = outcome_of(issues, fhir_url=context.fhir_url, request_id=self.request_id)
        self.respond(dumps(outcome))
