"""POST /fhir/r4/{Type}/$validate: a registration, tried."""

from __future__ import annotations

from functools import partial

from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.validate import TRIED, Asked, add_verdict, try_registration
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.patients.held import find_held
from fhirpub.web.handlers.registrations.comparison import compare


class ValidateHandler(BodyHandler):
    """Validate a body as a registration would; 200 whenever validation ran."""

    requires_token = True
    scope = "c"
    action = "validate"

    async def post(self) -> None:
        """Validate."""
        context, chunks = self.services.context, self.take_chunks()
        asked = Asked({name: self.request.parameter(name) for name in TRIED})
        work = partial(
            try_registration,
            is_xml=self.is_xml,
            type_name=self.type_name,
            tenant=self.caller.tenant,
        )
        trial = await self.compute_chunks(partial(work, asked=asked), chunks)
        held = await find_held(self, trial.held) if trial.held else None
        if held is not None:
            again = partial(work, asked=Asked(asked.parameters, held))
            trial = await self.compute_chunks(again, chunks)
        issues = await add_verdict(
            trial,
            tenant=self.caller.tenant,
            type_name=self.type_name,
            context=context,
            compare=partial(compare, self),
        )
        outcome = outcome_of(issues, fhir_url=context.fhir_url, request_id=self.request_id)
        self.respond(dumps(outcome))
