"""Accepts a submission with which nothing is wrong; what is refused is explained elsewhere.

The rules are those of ``check_submission``, asked in the same order, but at once: the long way
asks them in groups, each of which may stumble over a wrong structure. Those that apply to few
resources are not asked where a look shows that they have nothing to say. The first doubt ends it,
so that the words of a refusal come from the long way alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from fhirpub.errors import Issue
from fhirpub.interactions import references, rules
from fhirpub.interactions.checks.attachments import check_attachments
from fhirpub.interactions.checks.fhir_rules import broken_fhir_rules
from fhirpub.interactions.checks.merged_places import merge_places
from fhirpub.interactions.checks.organization_ids import organization_in_system
from fhirpub.interactions.checks.person_identifiers import ambiguous_persons
from fhirpub.interactions.checks.unusual_elements import about_unusual_elements, refuse_modifiers
from fhirpub.interactions.context import Context
from fhirpub.interactions.identity.problems import has_usual_identifier
from fhirpub.interactions.members.checks import check_members
from fhirpub.interactions.submission.record import Submission
from fhirpub.interactions.validation.usual import (
    has_usual_attachments,
    has_usual_references,
)
from fhirpub.plugin_api import Entry, RuleContext
from fhirpub.runtime.stages import Stages


def accept(
    submission: Submission, known: Sequence[Issue], context: Context, tenant_id: str
) -> Stages[list[Issue] | None]:
    """Return the remarks on a submission; None if it is wrong, or if that is not sure.

    Documents and times must have been normalized before, which left the ``known`` issues, and
    plain resources been marked.
    """
    yield
    if submission.wrong or not _is_structured(submission, context):
        return None
    yield
    about = context.rules_for(tenant_id)
    found = [*known, *_remarks_on_resource(submission, context, about)]
    for key, part in submission.parts.items():
        if not part.is_plain:
            found += chain.from_iterable(about_unusual_elements(part))
        found += submission.declared[key].rules(part, about)
    found += _remarks_between(submission, context, tenant_id)
    return None if any(issue.severity == "error" for issue in found) else found


def _is_structured(submission: Submission, context: Context) -> bool:
    """Return whether a submission is right by FHIR's own definitions and rules."""
    envelope, is_plain = submission.envelope, True
    for entry in (submission.entry, *submission.parts.values()):
        if not entry.is_plain:
            is_plain = False
            if not _is_valid(entry, context):
                return False
    for part in submission.parts.values():
        if "id" not in part.resource:
            return False
    resource = submission.entry.resource
    if resource.get("status") not in submission.type.create_statuses:
        return False
    if envelope is not None and not _is_valid(envelope, context):
        return False
    return has_usual_identifier(resource, submission.type) and (
        is_plain or not any(broken_fhir_rules(submission))
    )


def _is_valid(entry: Entry, context: Context) -> bool:
    """Return whether a resource, with what it contains, is right by its definition."""
    resource = entry.resource
    if not context.schemas.accepts(resource["resourceType"], resource):
        return False
    return not any(chain.from_iterable(rules.contained(resource, context)))


def _remarks_on_resource(
    submission: Submission, context: Context, about: RuleContext
) -> list[Issue]:
    """Return what rules say about the resource itself, errors among it."""
    entry, resource_type = submission.entry, submission.type
    resource, documents = entry.resource, submission.documents
    found: list[Issue] = []
    if submission.envelope is not None:
        found += refuse_modifiers(submission.envelope)
    if not entry.is_plain:
        found += chain.from_iterable(about_unusual_elements(entry))
    if not has_usual_attachments(resource, resource_type, documents):
        check = context.config.fhir.hash_check
        found += rules.each_below(
            entry, check_attachments(resource, resource_type, documents, check)
        )
    found += merge_places(rules.codings(resource, resource_type.codings, about, below=entry.at))
    found += resource_type.rules(entry, about)
    return found


def _remarks_between(submission: Submission, context: Context, tenant_id: str) -> list[Issue]:
    """Return what rules say about how the resources of a submission go together."""
    entry = submission.entry
    found: list[Issue] = []
    if submission.untaken:
        found += references.references_to_untaken(submission)
    if not has_usual_references(submission):
        found += rules.each_below(entry, references.references_to_parts(submission))
        found += rules.each_below(entry, references.other_references(submission, context))
    found += rules.each_below(entry, organization_in_system(submission, tenant_id))
    if submission.members:
        found += chain.from_iterable(check_members(submission, context, tenant_id))
    if context.config.patients.person_systems:
        found += ambiguous_persons(submission, context)
    return found
