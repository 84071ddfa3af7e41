"""Validates a submission: accepts it fast or explains slowly, as it came or as it was meant."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.document import extract_attachments
from fhirpub.interactions import rules
from fhirpub.interactions.context import Context
from fhirpub.interactions.identity.identification import Identifier, identification_of
from fhirpub.interactions.leniency.second_reading import read_again
from fhirpub.interactions.members.checks import merge_remarks
from fhirpub.interactions.repetition.digest import digest_of
from fhirpub.interactions.submission.cut import refuse_misplaced
from fhirpub.interactions.submission.held import ReadBody
from fhirpub.interactions.submission.record import Submission
from fhirpub.interactions.validation.acceptance import accept
from fhirpub.interactions.validation.explanation import explain
from fhirpub.interactions.validation.usual import find_plain
from fhirpub.runtime.stages import Stages


def validate_leniently(
    submission: Submission,
    body: bytes,
    *,
    is_xml: bool,
    read_body: ReadBody,
    context: Context,
    tenant_id: str,
) -> Stages[tuple[Submission, list[Issue]]]:
    """Return a submission with its issues, as :func:`validate_submission` does.

    Its documents are taken out before. If it is wrong, what the settings allow is corrected: then
    it is the corrected one, with warnings among its remarks, and with the digest of what was sent.
    """
    try:
        return submission, (yield from validate_submission(submission, context, tenant_id))
    except InvalidContent:
        corrected, warnings = yield from read_again(
            body, is_xml=is_xml, settings=context.config.fhir
        )
        if not warnings:
            raise
    try:
        second = read_body(corrected, submission.type)
        take_documents(second)
        issues = yield from validate_submission(second, context, tenant_id)
    except InvalidContent as problem:
        raise InvalidContent([*problem.issues, *warnings]) from None
    second.remarks += warnings
    second.digest = submission.digest
    return second, issues


def validate_submission(
    submission: Submission, context: Context, tenant_id: str
) -> Stages[list[Issue]]:
    """Return all issues of a submission, errors and remarks, and normalize it on the way.

    Its documents are taken out before; times become UTC. Pure, for any thread. Raises TooLarge
    for documents; InvalidContent, with all errors that can be found, for a wrong structure.
    """
    zones = normalize(submission, context)
    yield
    find_plain(submission, context)
    remarks = None
    if context.accepts_fast and not submission.undecodable:
        remarks = yield from accept(submission, zones, context, tenant_id)
    if remarks is None:
        remarks = yield from explain(submission, zones, context=context, tenant_id=tenant_id)
    return merge_remarks(remarks, submission)


def take_documents(submission: Submission) -> None:
    """Replace the documents by placeholders, find the key and make the digest.

    It is called before validation, which may change the resource, and asks of the key only what
    every release has: rules that refuse it today did not exist when it was registered. Raises
    MisplacedCut.
    """
    submission.documents, submission.undecodable = extract_attachments(
        submission.entry.resource, submission.type.attachments, submission.cut
    )
    refuse_misplaced(submission.cut, submission.documents)
    resource, identification = submission.entry.resource, identification_of(submission.type)
    chosen = identification.chosen_in(resource) if identification.has_forms else None
    if chosen is None:
        submission.key = identification.key_in(resource)
        submission.digest = digest_of(submission)
    else:
        submission.key = chosen.key
        submission.digest = _digest_in_normal_form(submission, chosen)


def _digest_in_normal_form(submission: Submission, chosen: Identifier) -> bytes:
    """Return the digest of the same with its key in the form in which it is compared (D-388)."""
    sent = chosen.item["value"]
    _system, chosen.item["value"] = chosen.key
    try:
        return digest_of(submission)
    finally:
        chosen.item["value"] = sent


def normalize(submission: Submission, context: Context) -> Sequence[Issue]:
    """Make all times UTC, after the digest; return the issues of those that cannot be.

    Raises TooLarge for documents.
    """
    zones = list(rules.all_times_as_utc(submission, context))
    most = context.config.limits.attachment_bytes
    rules.check_limits(submission.documents, most=most, at=submission.entry.at)
    return zones
