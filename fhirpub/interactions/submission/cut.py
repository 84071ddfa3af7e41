"""Cuts large documents out of the bytes of a body, before they are parsed (ADR 32).

A JSON parser validates, copies and compares every character of a document's base64. What is cut
out is decoded instead, and a token stands in its place until the documents are taken out.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fhirpub.fhir.document import Document, decode_exactly
from fhirpub.interactions.submission.held import ReadBody
from fhirpub.interactions.submission.record import Submission
from fhirpub.plugin_api import ResourceType

Cut = tuple[bytes, Mapping[str, bytes]]

MIN_CUT = 16 * 1024
"""Shorter base64 is parsed as fast as it is cut out."""
MAX_CUTS = 100
"""So many places are looked at: a body without a document costs no more."""

_NAME = b'"data"'
_OPENING = re.compile(rb'"data"[ \t\n\r]{0,64}:[ \t\n\r]{0,64}"')
"""Bounded, since one match holds the interpreter; more blanks are left to the parser."""
_SEARCHED_BYTES = 4 * 1024 * 1024
"""So many are searched in one call, which holds the interpreter."""
_TOKEN = secrets.token_hex(16)
"""No sender knows it, so that no text that was sent stands for a document."""


class MisplacedCut(Exception):
    """What was cut out of a body is no document of its resource: the whole is to be read.

    It is no refusal, so that nothing on the way takes it for one.
    """


def refuse_misplaced(cut: Mapping[str, bytes], documents: Sequence[Document]) -> None:
    """Raise MisplacedCut unless all that was cut out of a body is among its documents."""
    if cut:
        taken = {id(document.data) for document in documents}
        if not taken.issuperset(map(id, cut.values())):
            raise MisplacedCut


def cut_documents(body: bytes, *, max_rest: int) -> Cut | None:
    """Return JSON without the base64 of large documents, and their bytes by their tokens.

    What is left parses as the whole body does: only strings are cut out that a parser would
    return as they are, and their tokens are base64, too. None: nothing can be cut out, or what
    is left has more than ``max_rest`` bytes.
    """
    pieces: list[memoryview | bytes] = []
    documents: dict[str, bytes] = {}
    view, kept_from = memoryview(body), 0
    for start, end in _long_strings(body):
        data = decode_exactly(view[start:end])
        if data is not None:
            token = f"{_TOKEN}{len(documents):08}"
            documents[token] = data
            pieces += view[kept_from:start], token.encode()
            kept_from = end
    pieces.append(view[kept_from:])
    if not documents or sum(map(len, pieces)) > max_rest:
        return None
    return b"".join(pieces), documents


def _long_strings(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield where long values of the name ``data`` begin and end."""
    at = 0
    for _ in range(MAX_CUTS):
        at = _find_name(body, at)
        if at < 0:
            return
        opening = _OPENING.match(body, at)
        if opening is None:
            at += len(_NAME)
            continue
        start, at = opening.end(), body.find(b'"', opening.end())
        if at < 0:
            return
        if at - start >= MIN_CUT:
            yield start, at


def _find_name(body: bytes, at: int) -> int:
    while at < len(body):
        end = at + _SEARCHED_BYTES
        found = body.find(_NAME, at, end + len(_NAME) - 1)
        if found >= 0:
            return found
        at = end
    return -1


def read_cut(
    content: Any, resource_type: ResourceType, *, read: ReadBody, documents: Mapping[str, bytes]
) -> Submission:
    """Read a body whose documents were cut out, as ``read`` reads a whole one."""
    submission = read(content, resource_type)
    submission.cut = documents
    return submission
