"""Every kind of problem that an OperationOutcome reports, with what to do about it.

``scripts/errors_page.py`` writes ``docs/errors.md`` from these tables, and the service publishes
them as a CodeSystem.
"""

from __future__ import annotations

from fhirpub.problems.batch import BatchProblem
from fhirpub.problems.content import ContentProblem
from fhirpub.problems.kind import Problem
from fhirpub.problems.operation import OperationProblem
from fhirpub.problems.patients import PatientProblem
from fhirpub.problems.request import RequestProblem

ALL: tuple[Problem, ...] = (
    *RequestProblem,
    *ContentProblem,
    *PatientProblem,
    *OperationProblem,
    *BatchProblem,
)
"""Every problem, in the order of the page that documents them."""

__all__ = [
    "ALL",
    "BatchProblem",
    "ContentProblem",
    "OperationProblem",
    "PatientProblem",
    "Problem",
    "RequestProblem",
]
