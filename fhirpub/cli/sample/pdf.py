"""Writes PDF files of one page of text (ISO 32000-1), without a library and always the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_WIDTH, _HEIGHT = 595, 842
"""A4 in points."""
_LEFT, _TOP, _LEADING = 56, 780, 14
_ENCODING = "cp1252"
"""What PDF calls WinAnsiEncoding."""


def page(title: str, lines: Iterable[str]) -> bytes:
    """Return a PDF of one page: a title, and lines in a font of fixed width."""
    text = [
        *(b"BT", b"/T 16 Tf", b"%d %d Td" % (_LEFT, _TOP), _shown(title)),
        *(b"/L 9 Tf", b"%d TL" % _LEADING, b"T*", b"T*"),
    ]
    for line in lines:
        text += [_shown(line), b"T*"]
    content = b"\n".join([*text, b"ET"])
    body, table = body_of(
        (
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents 4 0 R"
            b"/Resources<</Font<</T 5 0 R/L 6 0 R>>>>>>" % (_WIDTH, _HEIGHT),
            b"<</Length %d>>stream\n%b\nendstream" % (len(content), content),
            _font(b"Helvetica-Bold"),
            _font(b"Courier"),
        )
    )
    return b"%b>>\nstartxref\n%d\n%%%%EOF\n" % (body, table)


def is_printable(text: str) -> bool:
    """Return whether the fonts have all characters of a text."""
    try:
        text.encode(_ENCODING)
    except UnicodeEncodeError:
        return False
    return text.isprintable()


def body_of(objects: Sequence[bytes]) -> tuple[bytes, int]:
    """Return a file of these objects, and where its table begins; the first is the catalog.

    The file ends within the trailer's dictionary.
    """
    body = bytearray(b"%PDF-1.4\n")
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj%b endobj\n" % (number, content)
    table = len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    body += b"".join(b"%010d 00000 n \n" % place for place in places)
    body += b"trailer<</Size %d/Root 1 0 R" % (len(places) + 1)
    return bytes(body), table


def _font(name: bytes) -> bytes:
    return b"<</Type/Font/Subtype/Type1/BaseFont/%b/Encoding/WinAnsiEncoding>>" % name


def _shown(text: str) -> bytes:
    raw = text.encode(_ENCODING, errors="replace")
    for special in (b"\\", b"(", b")"):
        raw = raw.replace(special, b"\\" + special)
    return b"(%b) Tj" % raw
