"""Issues as an OperationOutcome (R4; D-88, D-89, D-91, D-147)."""

from __future__ import annotations

from collections.abc import Iterable

from fhirpub.errors import Issue
from fhirpub.fhir.strict_json import JsonObject

CODE_SYSTEM = "problem"
"""The id of the CodeSystem that has every code of ``issue.details``."""


def system_of_problems(fhir_url: str) -> str:
    """Return the URL of the CodeSystem, under the FHIR base of the service."""
    return f"{fhir_url}/CodeSystem/{CODE_SYSTEM}"


def outcome_of(issues: Iterable[Issue], *, fhir_url: str, request_id: str = "") -> JsonObject:
    """Return an OperationOutcome resource with these issues, in their order.

    ``request_id`` is that of the refused request; it becomes the fragment of ``meta.source``.
    """
    system = system_of_problems(fhir_url)
    outcome: JsonObject = {"resourceType": "OperationOutcome"}
    if request_id:
        outcome["meta"] = {"source": f"{fhir_url}#{request_id}"}
    outcome["issue"] = [_issue(issue, system) for issue in issues]
    return outcome


def _issue(issue: Issue, system: str) -> JsonObject:
    rendered: JsonObject = {
        "severity": issue.severity,
        "code": issue.code,
        "details": {"coding": [{"system": system, "code": str(issue.details)}]},
        "diagnostics": issue.diagnostics,
    }
    if issue.expression:
        rendered["expression"] = [issue.expression, *issue.also_at]
    return rendered
