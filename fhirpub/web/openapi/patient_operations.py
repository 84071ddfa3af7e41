"""What the handlers of patients do, in the words of OpenAPI."""

from __future__ import annotations

from fhirpub.interactions.cursors import CURSOR
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.patients.resources import (
    PatientHandler,
    PatientHistoryHandler,
    PatientSearchFormHandler,
    PatientSearchHandler,
    PatientVersionHandler,
)
from fhirpub.web.openapi.operation import Operation, Success
from fhirpub.web.openapi.operations import FORMAT, SEARCHED, reading

_MATCHES = "A patient matches by what was last published about it."

PATIENT_OPERATIONS: dict[tuple[type[BaseHandler], str], Operation] = {
    (PatientHandler, "GET"): reading("read", "Read what was last published of a {type}"),
    (PatientVersionHandler, "GET"): reading(
        "vread", "Read what one report was published with of a {type}", ("id", "version")
    ),
    (PatientSearchHandler, "GET"): Operation(
        name="search",
        summary="Find resources of type {type}",
        text=_MATCHES,
        successes=SEARCHED,
        refusals=(406, 422),
        parameters=(*FORMAT, "Prefer", "searched"),
    ),
    (PatientSearchFormHandler, "POST"): Operation(
        name="searchByForm",
        summary="Find resources of type {type}, with parameters in a form",
        text=f"{_MATCHES} Parameters of the address count as well.",
        successes=SEARCHED,
        refusals=(406, 422),
        parameters=(*FORMAT, "Prefer"),
        body="search",
    ),
    (PatientHistoryHandler, "GET"): Operation(
        name="history",
        summary="List what was published of a {type}, newest first",
        successes={200: Success(text="A page of versions.", schema="Bundle")},
        refusals=(404, 406, 422),
        parameters=(*FORMAT, "_count", "_since", CURSOR),
    ),
}
