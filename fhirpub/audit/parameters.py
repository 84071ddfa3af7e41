"""The parameters of a search for AuditEvents, as they are declared and explained."""

from __future__ import annotations

from dataclasses import dataclass

from fhirpub.audit.event import AUDIT_EVENT
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.suggestion import did_you_mean

_DEFINITIONS = "http://hl7.org/fhir/SearchParameter"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A search parameter, as the CapabilityStatement declares it."""

    name: str
    type: str
    definition: str
    documentation: str


PARAMETERS = tuple(
    Parameter(name, type_, f"{_DEFINITIONS}/{definition}", documentation)
    for name, type_, definition, documentation in (
        ("_id", "token", "Resource-id", "The logical id"),
        ("_lastUpdated", "date", "Resource-lastUpdated", "The same as date"),
        ("action", "token", "AuditEvent-action", "C, R, U, D or E"),
        (
            "agent",
            "reference",
            "AuditEvent-agent",
            "The id of the client, or the name of the user who ran a command; :identifier",
        ),
        ("date", "date", "AuditEvent-date", "When it was recorded; all prefixes"),
        (
            "entity",
            "reference",
            "AuditEvent-entity",
            (
                "What was accessed: Type/id, with or without a version, a URL, or an id; :[type]; "
                "the id of a request with :identifier"
            ),
        ),
        ("outcome", "token", "AuditEvent-outcome", "0 success, 4 refused, 8 failed"),
        ("patient", "reference", "AuditEvent-patient", "An id, Patient/id or a URL"),
        (
            "subtype",
            "token",
            "AuditEvent-subtype",
            "A RESTful interaction such as vread, or an action such as endpoint.pause",
        ),
    )
)
_ABOUT_THE_PAGE = ("_count", "_elements", "_format", "_pretty", "_sort", "_summary", "_total")
ORDERS = ("-date", "-_lastUpdated")
"""The values of ``_sort``: the order that there is."""


def hint_of(name: str) -> str:
    """Return what to do about the name of a parameter that is not known."""
    if name == "_sort":
        return f"what can be sorted by: {' and '.join(ORDERS)}, the order that there is"
    if name == "_total":
        return "the events of an audit trail are not counted: only none is known"
    base = name.partition(":")[0].partition(".")[0]
    known = [*(one.name for one in PARAMETERS), *_ABOUT_THE_PAGE]
    if base in known:
        return f"{base} is known, but not with what follows it"
    return did_you_mean(base, known) or "the CapabilityStatement lists those of AuditEvent"


def declared() -> list[JsonObject]:
    """Return the parameters as a CapabilityStatement has them."""
    return [
        {
            "name": one.name,
            "definition": one.definition,
            "type": one.type,
            "documentation": one.documentation,
        }
        for one in PARAMETERS
    ]


def capability() -> JsonObject:
    """Return what can be done with AuditEvents, as a CapabilityStatement has it."""
    return {
        "type": AUDIT_EVENT,
        "profile": f"http://hl7.org/fhir/StructureDefinition/{AUDIT_EVENT}",
        "documentation": (
            "The audit trail of the tenant, for clients with the scope system/AuditEvent.rs, "
            "which no wildcard stands for"
        ),
        "interaction": [{"code": "read"}, {"code": "search-type"}],
        "versioning": "versioned",
        "conditionalRead": "full-support",
        "searchParam": declared(),
    }
