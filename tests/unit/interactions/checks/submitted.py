"""Submissions of reports, as rules look at them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fhirpub.errors import Issue
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.submission.record import Submission
from tests.bodies import organization, parameters, patient, report
from tests.unit.interactions.updating import CONTEXT

Places = list[tuple[str, str]]


def submitted(
    *,
    report_changes: dict[str, Any] | None = None,
    patient_changes: dict[str, Any] | None = None,
    organization_changes: dict[str, Any] | None = None,
) -> Submission:
    """Return a report with its patient and its organization, changed."""
    body = parameters(
        patient=patient(**(patient_changes or {})),
        organization=organization(**(organization_changes or {})),
        diagnosticReport=report("R-1", **(report_changes or {})),
    )
    return from_parameters(loads(dumps(body)), CONTEXT.types["DiagnosticReport"])


def places(issues: Iterable[Issue]) -> Places:
    """Return the places of issues, and what they say."""
    return [(issue.expression, issue.diagnostics) for issue in issues]
