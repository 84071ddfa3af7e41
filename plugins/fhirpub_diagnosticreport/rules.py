"""The declaration of DiagnosticReport, and its own rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fhirpub.plugin_api import (
    CompositionEvents,
    Entry,
    IdentifierRule,
    Issue,
    ResourceType,
    RuleContext,
    organization,
    patient,
    r4_parameter,
)
from fhirpub_diagnosticreport.members import MEMBERS


def report_rules(entry: Entry, _context: RuleContext) -> Iterator[Issue]:
    """Check the published field table: category with codings, code with a text."""
    it, at = entry.resource, entry.at
    if "category" not in it:
        yield _error("is required", f"{at}.category")
    for index, category in enumerate(it.get("category", ())):
        yield from _category(category, f"{at}.category[{index}]")
    if not it.get("code", {}).get("text", "").strip():
        yield _error("is required and must not be blank", f"{at}.code.text")
    for number, coding in enumerate(it.get("code", {}).get("coding", ())):
        if "code" not in coding:
            yield _error("is required", f"{at}.code.coding[{number}].code")


def _category(category: Mapping[str, Any], at: str) -> Iterator[Issue]:
    codings = category.get("coding", ())
    if not codings:
        yield _error("must have a coding", at)
    for number, coding in enumerate(codings):
        for name in ("system", "code"):
            if name not in coding:
                yield _error("is required", f"{at}.coding[{number}].{name}")


def _error(rule: str, at: str) -> Issue:
    return Issue("error", "exception", rule, at, "element-required")


_UPDATE_STATUSES = frozenset(
    {
        "partial",
        "preliminary",
        "final",
        "amended",
        "corrected",
        "appended",
        "cancelled",
        "entered-in-error",
        "unknown",
    }
)
_AFTER_A_DRAFT = _UPDATE_STATUSES - {"amended", "corrected", "appended"}
_AFTER_THE_FINAL = frozenset({"amended", "corrected", "appended", "entered-in-error"})
_STATE_FLOW = {
    **dict.fromkeys(("registered", "partial", "preliminary"), _AFTER_A_DRAFT),
    "unknown": _UPDATE_STATUSES,
    **dict.fromkeys(("final", "amended", "corrected", "appended"), _AFTER_THE_FINAL),
    "cancelled": frozenset({"entered-in-error"}),
    "entered-in-error": frozenset[str](),
}

DIAGNOSTIC_REPORT = ResourceType(
    name="DiagnosticReport",
    parts=(
        patient(referred_by="subject"),
        organization(referred_by="performer"),
        *MEMBERS,
    ),
    create_statuses=frozenset({"registered", "partial", "preliminary", "final", "unknown"}),
    update_statuses=_UPDATE_STATUSES,
    state_flow=_STATE_FLOW,
    updatable=frozenset({"status", "conclusion", "presentedForm"}),
    identifier=IdentifierRule(elements=("identifier",), most=1),
    attachments=("presentedForm",),
    attachments_required=True,
    times=(
        "effectiveDateTime",
        "effectivePeriod.start",
        "effectivePeriod.end",
        "issued",
        "presentedForm.creation",
    ),
    codings=("category", "code"),
    summary=(
        "category",
        "code",
        "subject",
        "performer",
        "effectiveDateTime",
        "effectivePeriod",
        "issued",
        "conclusion",
    ),
    search=(
        r4_parameter("DiagnosticReport-category", "token", "category"),
        r4_parameter("clinical-code", "token", "code"),
        r4_parameter("clinical-date", "date", "effectiveDateTime", "effectivePeriod"),
        r4_parameter("DiagnosticReport-issued", "date", "issued"),
        r4_parameter("DiagnosticReport-subject", "reference", "subject"),
        r4_parameter("DiagnosticReport-performer", "reference", "performer"),
        r4_parameter("DiagnosticReport-results-interpreter", "reference", "resultsInterpreter"),
        r4_parameter("DiagnosticReport-result", "reference", "result"),
        r4_parameter("DiagnosticReport-specimen", "reference", "specimen"),
        r4_parameter("DiagnosticReport-based-on", "reference", "basedOn"),
    ),
    rules=report_rules,
    events=CompositionEvents("diagnostic_report"),
    example={
        "resourceType": "DiagnosticReport",
        "identifier": [
            {"system": "https://north-quay.example/reports", "value": "NQ-2026-000417"}
        ],
        "status": "final",
        "category": [
            {
                "coding": [
                    {
                        "system": "http://terminology.hl7.org/CodeSystem/v2-0074",
                        "code": "HM",
                        "display": "Hematology",
                    }
                ]
            }
        ],
        "code": {
            "text": "Complete blood count",
            "coding": [{"system": "http://loinc.org", "code": "58410-2"}],
        },
        "subject": {"reference": "Patient/patient-1"},
        "performer": [{"reference": "Organization/organization-1"}],
        "resultsInterpreter": [{"reference": "Practitioner/practitioner-1"}],
        "basedOn": [{"reference": "ServiceRequest/order"}],
        "specimen": [{"reference": "Specimen/blood"}],
        "result": [{"reference": "Observation/hemoglobin"}],
        "effectiveDateTime": "2026-03-02T08:15:00Z",
        "issued": "2026-03-02T10:40:00Z",
        "conclusion": "All values lie within the reference ranges.",
        "presentedForm": [
            {
                "contentType": "application/pdf",
                "title": "Complete blood count",
                "data": "JVBERi0xLjQKMSAwIG9iajw8L1R5cGUvQ2F0YWxvZy9QYWdlcyAyIDAgUj4+ZW5kb2Jq"
                "IDIgMCBvYmo8PC9UeXBlL1BhZ2VzL0tpZHNbXS9Db3VudCAwPj5lbmRvYmoKdHJhaWxl"
                "cjw8L1Jvb3QgMSAwIFI+PgolJUVPRgo=",
                "hash": "d5e20c175d0649dd3ed2f8fff6322119d5d18c6ad603adce1cdb5025028ae382",
                "creation": "2026-03-02T10:40:00Z",
            }
        ],
    },
)
