"""The response to a registration: the resource in short, its members, and the issues (D-87)."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.errors import Issue
from fhirpub.fhir.contained import with_contained
from fhirpub.fhir.elements import reduce_to
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.interactions.context import Context
from fhirpub.interactions.members.versions import parameters_of_members
from fhirpub.interactions.submission.record import Submission
from fhirpub.interactions.versions import meta_of_subset
from fhirpub.problems import ContentProblem
from fhirpub.storage.contract import Version

_ALWAYS = ("resourceType", "id", "meta", "identifier", "status")
_MAX_SUMMARY_BYTES = 65_536
"""A longer summary is left out of the response, which is stored for repetitions."""


def response_of(
    submission: Submission, stored: JsonObject, members: Sequence[Version], context: Context
) -> JsonObject:
    """Return the answer to a registration: the resource in short, and the issues (D-87).

    Members follow in the order in which they were sent, each by its address.
    """
    short = reduce_to(stored, (*_ALWAYS, *submission.type.summary), siblings=True)
    if len(dumps(short)) > _MAX_SUMMARY_BYTES:
        mandatory = context.schemas.document(submission.type.name).get("x-mandatory", ())
        short = reduce_to(stored, (*_ALWAYS, *mandatory), siblings=True)
    if len(short) < len(stored):
        short["meta"] = meta_of_subset(stored)
    short = with_contained(short, stored)
    said = f"{submission.type.name} was created"
    created = Issue.information(ContentProblem.ACCEPTED, said)
    issues = outcome_of([created, *submission.remarks], fhir_url=context.fhir_url)
    return {
        "resourceType": "Parameters",
        "parameter": [
            {"name": submission.type.entry_name, "resource": short},
            *parameters_of_members(submission, members),
            {"name": "issues", "resource": issues},
        ],
    }
