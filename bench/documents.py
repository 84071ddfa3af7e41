"""Real PDF documents of an exact size, each different from the last at almost no cost.

Only the end of a document, its ``/ID``, differs. The SHA-256 state and the base64 text of all
that comes before are made once, so that a new document of 5 MB costs microseconds.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Any

from fhirpub.cli.sample.pdf import body_of

_OBJECTS = (
    b"<</Type/Catalog/Pages 2 0 R>>",
    b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
    b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources 6 0 R>>",
    b"<</Length 36>>stream\nBT/F 12 Tf 72 760 Td(Haemogram)Tj ET\nendstream",
    b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    b"<</Font<</F 5 0 R>>>>",
)
_ID = b"[<%032d><%032d>]"
_END = b">>\nstartxref\n%010d\n%%%%EOF\n"


@dataclass(frozen=True, slots=True)
class Document:
    """A PDF without its end, ready to be finished many times."""

    size: int
    start_base64: str
    start_hash: Any
    end: bytes

    def finish(self, serial: int) -> tuple[bytes, bytes]:
        """Return the SHA-256 (hexadecimal) and the last base64 characters of one document."""
        tail = _ID % (serial, serial) + self.end
        digest = self.start_hash.copy()
        digest.update(tail)
        return digest.hexdigest().encode(), base64.b64encode(tail)


def document(size: int) -> Document:
    """Prepare a PDF of exactly ``size`` bytes, filled with bytes that do not compress."""
    start, end = _pdf(size, filler=0)
    missing = size - len(start) - len(_ID % (0, 0)) - len(end)
    if missing < 0:
        raise ValueError(f"a PDF of {size} bytes is too small by {-missing}")
    start, end = _pdf(size, filler=missing)
    return Document(
        size=size,
        start_base64=base64.b64encode(start).decode(),
        start_hash=hashlib.sha256(start),
        end=end,
    )


def _pdf(size: int, *, filler: int) -> tuple[bytes, bytes]:
    """Return what comes before and after the ``/ID``; the numbers have fixed widths."""
    stream = hashlib.shake_256(b"bench").digest(filler)
    unused = b"<</Length %010d>>stream\n%b\nendstream" % (filler, stream)
    before, table = body_of((*_OBJECTS, unused))
    body = before + b"/ID"
    end = _END % table
    # base64 joins only where the first part is a multiple of three bytes long.
    spare = (size - len(_ID % (0, 0)) - len(end)) % 3
    return body, b" " * spare + end
