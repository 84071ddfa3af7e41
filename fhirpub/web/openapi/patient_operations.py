"""What the handlers of patients do, in the words of OpenAPI."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.interactions.cursors import CURSOR
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.patients.resources import (
    PatientHandler,
    PatientHistoryHandler,
    PatientSearchFormHandler,
    PatientSearchHandler,
    PatientVersionHandler,
)
from fhirpub.web.handlers.search import SearchFormHandler, SearchHandler
from fhirpub.web.openapi.operation import Operation, Success
from fhirpub.web.openapi.operations import FORMAT, OPERATIONS, reading

_MATCHES = "A patient matches by what was last published about it."
_SEARCH = OPERATIONS[SearchHandler, "GET"]
_FORM = OPERATIONS[SearchFormHandler, "POST"]

PATIENT_OPERATIONS: dict[tuple[type[BaseHandler], str], Operation] = {
    (PatientHandler, "GET"): reading("read", "Read what was last published of a {type}"),
    (PatientVersionHandler, "GET"): reading(
        "vread", "Read what one report was published with of a {type}", ("id", "version")
    ),
    (PatientSearchHandler, "GET"): replace(_SEARCH, text=_MATCHES),
    (PatientSearchFormHandler, "POST"): replace(_FORM, text=f"{_MATCHES} {_FORM.text}"),
    (PatientHistoryHandler, "GET"): Operation(
        name="history",
        summary="List what was published of a {type}, newest first",
        successes={200: Success(text="A page of versions.", schema="Bundle")},
        refusals=(404, 406, 422),
        parameters=(*FORMAT, "_count", "_since", CURSOR),
    ),
}
