"""Identifiers that stand for a person without naming which one (ADR 26)."""

from __future__ import annotations

from collections.abc import Iterator

from fhirpub.errors import Issue
from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import PATIENT, current_values
from fhirpub.interactions.submission.record import Submission
from fhirpub.problems import PatientProblem


def ambiguous_persons(submission: Submission, context: Context) -> Iterator[Issue]:
    """Warn of several identifiers in one system: none of them is taken for the person's."""
    systems = context.config.patients.person_systems
    for name, part in submission.parts.items() if systems else ():
        if part.resource["resourceType"] != PATIENT or submission.declared[name].repeats:
            continue
        for system in systems:
            number = len(current_values(part.resource, system))
            if number > 1:
                rule = f"has {number} identifiers in {system}: none of them stands for the person"
                at = f"{part.at}.identifier"
                yield Issue.warning(PatientProblem.PERSON_AMBIGUOUS, rule, at)
