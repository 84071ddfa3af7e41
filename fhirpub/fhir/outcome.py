"""Issues as an OperationOutcome (R4; D-88, D-89, D-91)."""

from __future__ import annotations

from collections.abc import Iterable

from fhirpub.errors import Issue
from fhirpub.fhir.strict_json import JsonObject


def outcome_of(issues: Iterable[Issue]) -> JsonObject:
    """Return an OperationOutcome resource with these issues, in their order."""
    return {"resourceType": "OperationOutcome", "issue": [_issue(issue) for issue in issues]}


def _issue(issue: Issue) -> JsonObject:
    rendered: JsonObject = {
        "severity": issue.severity,
        "code": issue.code,
        "diagnostics": issue.diagnostics,
    }
    if issue.expression:
        rendered["expression"] = [issue.expression, *issue.also_at]
    return rendered
