"""Documents of a report: those in OBX of type ED, else its results as plain text."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence

from fhirpub_hl7v2.mapping.context import Context, JsonObject, present, text_of
from fhirpub_hl7v2.mapping.groups import Group, Noted
from fhirpub_hl7v2.mapping.values import as_written, is_power
from fhirpub_hl7v2.message import Segment, Value

_MEDIA_TYPES = {
    "PDF": "application/pdf",
    "HTML": "text/html",
    "XML": "text/xml",
    "RTF": "application/rtf",
    "PLAIN": "text/plain",
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "TIFF": "image/tiff",
    "GIF": "image/gif",
}
"""HL7 table 0291, for ED-3."""

_RENDERED = "text/plain; charset=utf-8"
_OTHER_RESULTS = "The report has other results, which were sent before.\n"
_BLANK = re.compile(r"\s+")


def is_document(segment: Segment) -> bool:
    """Return whether an OBX has a document instead of a value."""
    return segment.text(2) == "ED"


def documents(context: Context, group: Group) -> list[JsonObject]:
    """Return the attachments of the report; it has at least one."""
    sent = [each.segment for each in group.results if is_document(each.segment)]
    made = [
        document
        for segment in sent
        for value in segment.values(5) or [segment.value(5)]
        if (document := _document(context, segment, value))
    ]
    return made if sent else [_rendered(group)]


def _document(context: Context, segment: Segment, value: Value) -> JsonObject | None:
    encoding, text = value.text(4).upper(), value.whole(5)
    try:
        data = _decoded(encoding, text)
    except (ValueError, binascii.Error):
        context.report(segment, "ED-5 must be a document in the encoding of ED-4", 5)
        return None
    media_type = _media_type(value.text(2), value.text(3)) or _recognized(data)
    if not media_type:
        context.report(segment, f"ED-3 must be one of {', '.join(_MEDIA_TYPES)}", 5)
        return None
    return _attachment(data, media_type, text_of(segment.value(3)))


def _media_type(kind: str, subtype: str) -> str:
    if "/" in kind:
        return kind
    if "/" in subtype:
        return subtype
    found = _MEDIA_TYPES.get(subtype.upper(), "")
    return found or ("text/plain" if kind.upper() == "TEXT" and not subtype else "")


def _recognized(data: bytes) -> str:
    """Return the type of a document that is sent as mere bytes; "" if it is not known."""
    return "application/pdf" if data.startswith(b"%PDF-") else ""


def _decoded(encoding: str, text: str) -> bytes:
    """Return the bytes of a document. Raises ValueError."""
    if encoding in ("BASE64", ""):
        data = base64.b64decode(_BLANK.sub("", text), validate=True)
    elif encoding == "HEX":
        data = bytes.fromhex(text)
    elif encoding == "A":
        data = text.encode()
    else:
        raise ValueError
    if not data:
        raise ValueError
    return data


def _attachment(data: bytes, media_type: str, title: str) -> JsonObject:
    return present(
        contentType=media_type,
        title=title,
        data=base64.b64encode(data).decode(),
        hash=hashlib.sha256(data).hexdigest(),
    )


def _rendered(group: Group) -> JsonObject:
    """Return the results as a text, one a line: the service requires a document."""
    title = text_of(group.request.segment.value(4))
    lines = [title, *_lines(group.results), group.request.comments]
    text = "\n".join(line for line in lines if line) + "\n"
    return _attachment(text.encode(), _RENDERED, title)


def add_remark(document: JsonObject) -> JsonObject:
    """Return a rendered document with the remark that the report has other results, too."""
    if document["contentType"] != _RENDERED:
        return document
    data = base64.b64decode(document["data"]) + _OTHER_RESULTS.encode()
    return _attachment(data, _RENDERED, document.get("title", ""))


def _lines(results: Sequence[Noted]) -> list[str]:
    return [
        line
        for each in results
        for line in (_line(each.segment), *map(_line, each.lines), each.comments)
        if line
    ]


def _line(segment: Segment) -> str:
    values = " ".join(filter(None, (_value(segment), _unit(segment.value(6)))))
    flags = "\n".join(map(text_of, segment.values(8)))
    limits = str(segment.value(7))
    more = "".join((f" [{flags}]" if flags else "", f" ({limits})" if limits else ""))
    title = text_of(segment.value(3))
    return f"{title}: {values}{more}" if title else f"{values}{more}"


def _value(segment: Segment) -> str:
    """Return OBX-5 for people: the text of codes, and other values as they were sent."""
    kind, values = segment.text(2), segment.values(5)
    if kind in ("CE", "CWE", "CNE", "CF"):
        return "; ".join(map(text_of, values))
    return "\n".join(map(as_written if kind == "SN" else str, values))


def _unit(unit: Value) -> str:
    return str(unit) if is_power(unit) else text_of(unit)
