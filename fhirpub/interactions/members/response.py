"""The response to a registration: the resource in short, its members, and the issues (D-87)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from fhirpub.errors import Issue
from fhirpub.fhir.contained import with_contained
from fhirpub.fhir.elements import reduce_to
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.interactions.context import Context
from fhirpub.interactions.members.versions import parameters_of_members
from fhirpub.interactions.submission.record import Submission
from fhirpub.interactions.versions import Shown, meta_of_subset, without_documents
from fhirpub.plugin_api import ResourceType
from fhirpub.problems import ContentProblem
from fhirpub.storage.contract import Version

_ALWAYS = ("resourceType", "id", "meta", "identifier", "status")
_MAX_SUMMARY_BYTES = 65_536
"""What would make it longer is left out of the response, which is stored for repetitions."""


def response_of(
    submission: Submission, stored: JsonObject, members: Sequence[Version], context: Context
) -> JsonObject:
    """Return the answer to a registration: the resource in short, and the issues (D-87).

    Members follow in the order in which they were sent, each by its address.
    """
    short = _short_form(stored, submission.type, context)
    created = _say_created(submission.type.name)
    issues = outcome_of([created, *submission.remarks], fhir_url=context.fhir_url)
    return {
        "resourceType": "Parameters",
        "parameter": [
            {"name": submission.type.entry_name, "resource": short},
            *parameters_of_members(submission, members),
            {"name": "issues", "resource": issues},
        ],
    }


@cache
def _say_created(type_name: str) -> Issue:
    return Issue.information(ContentProblem.ACCEPTED, f"{type_name} was created")


def _short_form(stored: JsonObject, resource_type: ResourceType, context: Context) -> JsonObject:
    """Return as much of a resource as a summary may have; valid, thus with what is mandatory."""
    mandatory = context.schemas.document(resource_type.name).get("x-mandatory", ())
    heads = {path.partition(".")[0] for path in resource_type.attachments}.intersection(mandatory)
    if heads:
        number = int(stored["meta"]["versionId"])
        shown = Shown(resource_type.name, stored["id"], number, dumps(stored))
        stored = without_documents(shown, context=context)
    for names in ((*resource_type.summary, *heads), mandatory):
        short = _reduced(stored, names, resource_type)
        if len(dumps(short)) <= _MAX_SUMMARY_BYTES:
            return short
    shortened = {name: _first_items(stored[name]) for name in mandatory if name in stored}
    return _reduced({**stored, **shortened}, mandatory, resource_type)


def _first_items(element: Any) -> Any:
    """Return an element with only the first item of it, and of each list in that: a coding."""
    if isinstance(element, list):
        return [_first_items(item) for item in element[:1]]
    if not isinstance(element, dict):
        return element
    return {name: item[:1] if isinstance(item, list) else item for name, item in element.items()}


def _reduced(stored: JsonObject, names: Sequence[str], resource_type: ResourceType) -> JsonObject:
    """Return these elements, with the contained resources that they refer to."""
    identified = resource_type.identifier.elements
    short = reduce_to(stored, (*_ALWAYS, *identified, *names), siblings=True)
    if len(short) < len(stored):
        short["meta"] = meta_of_subset(stored)
    return with_contained(short, stored)
