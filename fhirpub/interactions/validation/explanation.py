"""Finds all that is wrong with a submission, with the words of the refusal: the long way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from fhirpub.errors import InvalidContent, Issue
from fhirpub.interactions import rules
from fhirpub.interactions.checks.all_problems import all_problems
from fhirpub.interactions.checks.fhir_rules import broken_fhir_rules
from fhirpub.interactions.checks.person_identifiers import ambiguous_persons
from fhirpub.interactions.context import Context
from fhirpub.interactions.members.checks import check_members
from fhirpub.interactions.submission.record import Submission
from fhirpub.runtime.stages import Stages, collect


def explain(
    submission: Submission,
    known: Sequence[Issue],
    *,
    context: Context,
    tenant_id: str,
) -> Stages[list[Issue]]:
    """Return all issues of a submission: those ``known`` already, then what rules find.

    Raises InvalidContent, with all errors that can be found, for a wrong structure.
    """
    entry = submission.entry
    structural = [
        *submission.wrong,
        *(yield from collect(rules.structure(submission, context, tenant_id))),
    ]
    structural += [issue.below(entry.at) for issue in submission.undecodable]
    checks = chain(
        rules.check_submission(submission, context, tenant_id),
        check_members(submission, context, tenant_id),
        [ambiguous_persons(submission, context)],
    )
    if structural:
        raise InvalidContent(
            (
                yield from all_problems(
                    structural,
                    [entry, *submission.parts.values()],
                    between_elements=broken_fhir_rules(submission),
                    rules=chain([known], checks),
                    fhirpath=context.schemas.fhirpath,
                )
            )
        )
    yield
    found = [*known, *broken_fhir_rules(submission)]
    yield
    return [*found, *chain.from_iterable(checks)]
