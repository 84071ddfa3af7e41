"""What the handler of batches does, in the words of OpenAPI."""

from __future__ import annotations

from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.batch.handler import BatchHandler
from fhirpub.web.openapi.operation import Operation, Success

BATCH_OPERATIONS: dict[tuple[type[BaseHandler], str], Operation] = {
    (BatchHandler, "POST"): Operation(
        name="batch",
        summary="Send several requests as one Bundle",
        text=(
            "Each entry is processed on its own, as the single request that it stands for, and is "
            "counted like that. One that fails does not affect the others. Transactions are not "
            "supported. JSON only."
        ),
        successes={
            200: Success(
                text="The responses to all entries, in their order. One that failed has an "
                "OperationOutcome in `response.outcome`.",
                schema="BatchResponse",
            )
        },
        refusals=(406,),
        parameters=("_pretty", "Prefer"),
        body="batch",
        tag="Batch",
    ),
}
