"""Whether an attachment is complete, and whether its document is what it states (D-56 to D-64)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fhirpub.errors import Issue
from fhirpub.fhir.document import Document, attachments_of, hash_verdict
from fhirpub.fhir.elements import each_item
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.web_address import MAX_URL_LENGTH, is_web_address
from fhirpub.plugin_api import ResourceType
from fhirpub.problems import ContentProblem

_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:[ \t]*;[\x20-\x7e]+)?")
_MAX_MIME_LENGTH = 1000
"""What is longer is too long for a header, so that the document could not be read."""
_PDF = "application/pdf"


_HASHES = "the SHA-256 or SHA-1 of the decoded bytes, in hex or base64"
_SIZE = "is not the size of data: it must be the number of the decoded bytes"
_NO_PDF = "does not begin as a PDF does: check the file, or its contentType"
_NEEDS_HASH = f"data needs a hash: {_HASHES}"


def check_attachments(
    resource: JsonObject, resource_type: ResourceType, documents: Sequence[Document], check: str
) -> Iterator[Issue]:
    """Yield what is missing or wrong, and remarks about what the data turn out to be."""
    by_place = {item.at: item for item in documents}
    if resource_type.attachments_required:
        for element in missing_attachments(resource, resource_type):
            yield Issue.error(ContentProblem.ELEMENT_REQUIRED, "is required", element)
    for at, attachment in attachments_of(resource, resource_type.attachments):
        yield from (issue.below(at) for issue in _attachment(attachment))
        document = by_place.get(at)
        if document is not None:
            yield from (issue.below(at) for issue in _content(attachment, document, check))


def missing_attachments(resource: JsonObject, resource_type: ResourceType) -> list[str]:
    """Return the elements of attachments that a resource does not have."""
    return [
        path
        for path in resource_type.attachments
        if ("." in path or path not in resource) and next(each_item(resource, path), None) is None
    ]


def _attachment(attachment: JsonObject) -> Iterator[Issue]:
    has = attachment.keys() & {"data", "hash", "url"}
    if not ("data" in has or "url" in has):
        yield Issue.error(
            ContentProblem.ATTACHMENT_INCOMPLETE, "must have data and hash, or a url"
        )
    elif "data" in has and "hash" not in has:
        yield Issue.error(ContentProblem.ATTACHMENT_INCOMPLETE, _NEEDS_HASH)
    kind = attachment.get("contentType")
    if kind is not None and (len(kind) > _MAX_MIME_LENGTH or not _MIME.fullmatch(kind)):
        rule = f"must be a MIME type such as {_PDF}, of at most {_MAX_MIME_LENGTH} characters"
        yield Issue.error(ContentProblem.VALUE_INVALID, rule, "contentType")
    elif kind is not None and not _is_pdf(kind):
        yield Issue.information(
            ContentProblem.DOCUMENT_QUESTIONABLE, f"{_PDF} is preferred", "contentType"
        )
    if "url" in has and not is_web_address(attachment["url"]):
        rule = f"must be an absolute http or https URL of at most {MAX_URL_LENGTH} characters"
        yield Issue.error(ContentProblem.VALUE_INVALID, rule, "url")


def _content(attachment: JsonObject, document: Document, check: str) -> Iterator[Issue]:
    verdict = hash_verdict(attachment.get("hash", ""), document) if check != "off" else True
    if verdict is None and "hash" in attachment:
        rule = "is neither SHA-256 nor SHA-1, in hex or base64: not checked"
        yield Issue.information(ContentProblem.HASH_NOT_CHECKED, rule, "hash")
    elif verdict is False:
        rule = f"is not the hash of data: it must be {_HASHES}"
        wrong = Issue.error(ContentProblem.HASH_WRONG, rule, "hash")
        yield wrong if check == "strict" else replace(wrong, severity="warning", code="invalid")
    questionable = ContentProblem.DOCUMENT_QUESTIONABLE
    if attachment.get("size", len(document.data)) != len(document.data):
        yield Issue.warning(questionable, _SIZE, "size", code="invalid")
    if _is_pdf(document.content_type) and not document.data.startswith(b"%PDF-"):
        yield Issue.warning(questionable, _NO_PDF, "data", code="invalid")


def _is_pdf(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == _PDF
