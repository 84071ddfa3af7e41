"""Documents: out of an Attachment's base64 on the way in, back into it on the way out.

A stored resource is JSON with each document's data left out. In its place stands a marker: a
NUL, the SHA-256 of the bytes and their number. No text that came from outside can look like
one, since the reader refuses control characters (ADR 3).
"""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pybase64

from fhirpub.errors import Issue
from fhirpub.fhir.elements import each_item
from fhirpub.fhir.explanation.advice import explain_base64
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.problems import ContentProblem

_MARKER_BEGINS = "\x00"
_MARKER = _MARKER_BEGINS + "{sha256}.{size}"
_MARKER_IN_JSON = re.compile(rb'"\\u0000([0-9a-f]{64})\.[0-9]+"')
_MARKER_IN_XML = re.compile(rb'"\x00([0-9a-f]{64})\.[0-9]+"')
_MAX_MARKER_BYTES = 96
_SEARCHED_BYTES = 4096
"""So much is searched for markers behind each character that may belong to one."""
_WHITE_SPACE = str.maketrans("", "", " \t\r\n")
_HEX = re.compile("[0-9a-fA-F]+")
_NOTHING: Mapping[str, bytes] = {}
_DIGESTS = {64: "sha256", 40: "sha1"}
_DIGEST_SIZES = {32: "sha256", 20: "sha1"}


@dataclass(frozen=True, slots=True)
class Document:
    """A document's bytes, and where they were found, as FHIRPath below the resource."""

    sha256: str
    content_type: str
    data: bytes
    at: str


@dataclass(frozen=True, slots=True)
class AttachmentInfo:
    """What an attachment states about its document, which is kept under its SHA-256."""

    sha256: str
    content_type: str
    title: str


def extract_attachments(
    resource: JsonObject, elements: Sequence[str], cut: Mapping[str, bytes] = _NOTHING
) -> tuple[tuple[Document, ...], tuple[Issue, ...]]:
    """Take the documents out of a resource, leaving markers; also the issues of bad base64.

    ``cut`` has documents for which tokens stand already. Existing placeholders stay. Handles only
    well-formed attachments; the schema reports what is wrong with the others.
    """
    documents, issues = [], []
    for at, attachment in attachments_of(resource, elements):
        text = attachment.get("data")
        if not isinstance(text, str) or not text or is_marker(text):
            continue
        data = cut.get(text) or decode(text)
        if data is None:
            rule = f"must be base64 (RFC 4648 section 4): {explain_base64(text)}"
            issues.append(Issue.error(ContentProblem.BASE64_INVALID, rule, f"{at}.data"))
            data = b""
        sha256 = hashlib.sha256(data).hexdigest()
        attachment["data"] = marker(sha256, len(data))
        kind = _text(attachment.get("contentType"))
        documents.append(Document(sha256, kind, data, at))
    return tuple(documents), tuple(issues)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def is_marker(value: Any) -> bool:
    """Return whether a value stands for a document that is kept."""
    return isinstance(value, str) and value.startswith(_MARKER_BEGINS)


def marker(sha256: str, size: int) -> str:
    """Return what stands for a document that is kept."""
    return _MARKER.format(sha256=sha256, size=size)


def cut_at_documents(body: bytes) -> Iterator[tuple[memoryview, str | None]]:
    """Yield a stored resource, JSON or XML, in pieces, each with the document that follows it.

    Yields:
        A piece, and the SHA-256 of the document whose data belong behind it; None at the end.
    """
    view, start = memoryview(body), 0
    for found in _find_markers(body):
        yield view[start : found.start()], found[1].decode()
        start = found.end()
    yield view[start:], None


def _find_markers(body: bytes) -> Iterator[re.Match[bytes]]:
    """Find the markers, in a tenth of the time of the pattern if what they begin with is rare."""
    is_xml = body.startswith(b"<")
    pattern, rare = (_MARKER_IN_XML, b"\x00") if is_xml else (_MARKER_IN_JSON, b"\\")
    at = body.find(rare)
    while at >= 0:
        end = at + _SEARCHED_BYTES
        for found in pattern.finditer(body, at - 1, end + _MAX_MARKER_BYTES):
            yield found
            end = max(end, found.end())
        at = body.find(rare, end)


def documents_in(body: bytes) -> tuple[str, ...]:
    """Return the SHA-256 names of the documents that a stored resource's JSON refers to."""
    return tuple(dict.fromkeys(item.decode() for item in _MARKER_IN_JSON.findall(body)))


def list_form(
    resource: JsonObject, elements: Sequence[str], *, url_of: Callable[[int], str]
) -> bool:
    """Replace each marker by ``url`` and ``size``; return whether there was one.

    ``url_of`` is called with the number of the attachment in the resource, from 1.
    """
    found = False
    for number, (_at, attachment) in enumerate(attachments_of(resource, elements), start=1):
        marker = attachment.get("data", "")
        if is_marker(marker):
            found = True
            del attachment["data"]
            attachment.pop("_data", None)
            attachment.setdefault("url", url_of(number))
            attachment.setdefault("size", int(marker.rpartition(".")[2]))
    return found


def attachment_info(
    resource: JsonObject, elements: Sequence[str], *, number: int
) -> AttachmentInfo | None:
    """Return what the attachment with this number states; None: it has no document of ours."""
    for _at, attachment in islice(attachments_of(resource, elements), number - 1, number):
        marker = attachment.get("data", "")
        if is_marker(marker):
            kind, title = (_text(attachment.get(name)) for name in ("contentType", "title"))
            return AttachmentInfo(marker[1:].partition(".")[0], kind, title)
    return None


def attachments_of(
    resource: Mapping[str, Any], elements: Sequence[str]
) -> Iterator[tuple[str, JsonObject]]:
    """Return the attachments at these elements, with their places; dots go deeper."""
    for element in elements:
        for at, item in each_item(resource, element):
            if isinstance(item, dict):
                yield at, item


def decode(text: str) -> bytes | None:
    """Return the bytes of base64 text, white space ignored, or None (D-62).

    Only the standard alphabet, correct padding, and no bits that encoding would not give back.
    """
    data = _decode(text)
    if data is None:
        text = text.translate(_WHITE_SPACE)
        data = _decode(text)
    return data if data and _encodes_to(data, text[-4:].encode()) else None


def decode_exactly(text: memoryview) -> bytes | None:
    """Return the bytes of base64 as :func:`decode` does, or None if it has white space.

    So that the text can be taken out of JSON: it has nothing that a parser would change.
    """
    data = _decode(text)
    if not data or len(text) != 4 * -(-len(data) // 3):
        return None
    return data if _encodes_to(data, bytes(text[-4:])) else None


def _encodes_to(data: bytes, last: bytes) -> bool:
    """Return whether encoding gives back the last four characters, with the same unused bits."""
    return pybase64.b64encode(data[-(len(data) % 3 or 3) :]) == last


def _decode(text: str | memoryview) -> bytes | None:
    try:
        return pybase64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def hash_verdict(hash_text: str, document: Document) -> bool | None:
    """Return whether a hash is that of the document; None: no algorithm we know (D-58).

    Known by its shape: SHA-256 or SHA-1 over the decoded bytes, in hex or in base64.
    """
    if _HEX.fullmatch(hash_text) and len(hash_text) in _DIGESTS:
        stated, algorithm = bytes.fromhex(hash_text), _DIGESTS[len(hash_text)]
    else:
        stated = decode(hash_text) or b""
        algorithm = _DIGEST_SIZES.get(len(stated), "")
    if algorithm == "sha256":
        return stated.hex() == document.sha256
    if algorithm == "sha1":
        return stated == hashlib.sha1(document.data, usedforsecurity=False).digest()
    return None
