"""What most resources look like, about which some rules have nothing to say."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.fhir.document import Document, attachments_of
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.interactions.checks.attachments import missing_attachments
from fhirpub.interactions.context import Context
from fhirpub.interactions.submission.record import Submission
from fhirpub.plugin_api import Entry, ResourceType

_PDF = "application/pdf"


def find_plain(submission: Submission, context: Context) -> None:
    """Mark the resources that are valid and so plain that most rules cannot apply to them."""
    for entry in (submission.entry, *submission.parts.values()):
        mark_if_plain(entry, context)


def mark_if_plain(entry: Entry, context: Context) -> None:
    """Mark a resource if it is valid and plain."""
    plain = context.schemas.plain
    if plain.accepts(entry.resource["resourceType"], entry.resource):
        entry.is_plain, entry.references = True, plain.references_in(entry.resource)


def has_usual_attachments(
    resource: JsonObject, resource_type: ResourceType, documents: Sequence[Document]
) -> bool:
    """Return whether all attachments are documents in PDF with their SHA-256 in hex."""
    attachments = [item for _at, item in attachments_of(resource, resource_type.attachments)]
    if resource_type.attachments_required and missing_attachments(resource, resource_type):
        return False
    return len(attachments) == len(documents) and all(
        map(_is_usual_attachment, attachments, documents)
    )


def _is_usual_attachment(attachment: JsonObject, document: Document) -> bool:
    return (
        document.content_type == _PDF
        and attachment.get("hash") == document.sha256
        and "url" not in attachment
        and attachment.get("size", len(document.data)) == len(document.data)
        and document.data.startswith(b"%PDF-")
    )


def has_usual_references(submission: Submission) -> bool:
    """Return whether all references lead to parts, and each part is referred to as it must."""
    resource, local, declared = submission.entry.resource, submission.local, submission.declared
    for reference in submission.entry.references:
        literal = reference["reference"]
        if type(literal) is not str or literal not in local:
            return False
    for key in submission.parts:
        element = declared[key].referred_by
        if element and not declared[key].repeats:
            member = resource.get(element)
            places = member if type(member) is list else (member,)
            if not any(one and local.get(one.get("reference", "")) == key for one in places):
                return False
    return True
