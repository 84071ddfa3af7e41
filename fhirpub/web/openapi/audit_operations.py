"""What the handlers of the audit trail do, in the words of OpenAPI."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.web.handlers.audit.events import (
    AuditEventHandler,
    AuditSearchFormHandler,
    AuditSearchHandler,
)
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.search import SearchFormHandler, SearchHandler
from fhirpub.web.openapi.operation import Operation
from fhirpub.web.openapi.operations import FORMAT, OPERATIONS, reading

_TRAIL = (
    "The audit trail of the tenant, the newest event first. The scope is needed even where scopes "
    "are not enforced, and `system/*` does not stand for it. A page may have few entries, or "
    "none, and a link `next`."
)
_FORM = OPERATIONS[SearchFormHandler, "POST"]

AUDIT_OPERATIONS: dict[tuple[type[BaseHandler], str], Operation] = {
    (AuditEventHandler, "GET"): reading("read", "Read one event of the audit trail"),
    (AuditSearchHandler, "GET"): replace(
        OPERATIONS[SearchHandler, "GET"],
        summary="Find events of the audit trail",
        text=_TRAIL,
        parameters=(*FORMAT, "Prefer", "audited"),
    ),
    (AuditSearchFormHandler, "POST"): replace(
        _FORM,
        summary="Find events of the audit trail, with parameters in a form",
        text=f"{_TRAIL} {_FORM.text}",
    ),
}
