"""Versions and documents as rows of the file, and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from fhirpub.storage.contract import SMALL_BYTES, Blob, Version
from fhirpub.storage.sqlite.entries import Entry, index_entries
from fhirpub.storage.sqlite.parameters import json_object

Row = tuple[Any, ...]

PIECE_BYTES = 1_572_858
"""A larger document is stored in pieces of this size: a commit of one takes about 5 ms. It must
not change, since stored pieces would not fit together."""
CHUNK_BYTES = PIECE_BYTES // 3
"""Large documents are read in chunks of this size, a multiple of 3 for base64."""
_CONTENT = "version-"
_REFERENCE = b"\0"
"""JSON does not begin with it."""


class Addition:
    """A version on its way in with its members and documents, already as rows."""

    __slots__ = ("cost", "in_pieces", "key", "large", "rows", "tenant")

    def __init__(
        self, tenant: str, version: Version, blobs: Collection[Blob], *, now: int
    ) -> None:
        self.tenant = tenant
        self.key = (version.id, version.version)
        versions = (version, *version.members)
        contents = [content_of(each) if each.own_size > PIECE_BYTES else None for each in versions]
        blobs = [*blobs, *filter(None, contents)]
        self.large = [blob for blob in blobs if _is_large(blob)]
        self.in_pieces = [blob for blob in self.large if len(blob.data) > PIECE_BYTES]
        self.rows: list[Row] = [blob_row(tenant, blob, now=now) for blob in blobs]
        # Pieces are committed before, at a cost of their own.
        size = sum(len(blob.data) for blob in blobs if len(blob.data) <= PIECE_BYTES)
        self.cost = cost_of(size, 2 * len(blobs)) if blobs else 0
        indexed: set[Entry] = set()
        for each, content in zip(versions, contents, strict=True):
            self._add_row(each, indexed, content)

    def _add_row(self, v: Version, indexed: set[Entry], content: Blob | None) -> None:
        """Add the row of a version and its cost; ``indexed`` grows by what it is found by.

        It refers to ``content``, if that is stored in pieces.
        """
        own_size = v.own_size
        in_row = own_size
        if content is not None:
            v, in_row = _refer_to(content, v), len(v.events)
        entries = index_entries(self.tenant, v)
        before = len(indexed)
        indexed.update(entries)
        new = len(indexed) - before
        identity = (v.id, v.version, self.tenant, v.type, v.system, v.value)
        state = (v.status, v.created, v.updated, " ".join(v.documents), own_size)
        large = (v.digest, v.events, v.body, v.response, v.parts, _encode_attached(v.attached))
        row = (*identity, *state, v.search.decode(), *large, v.audit, json_object(entries))
        self.rows.append((*row, len(v.members)))
        self.cost += cost_of(in_row, new + len(v.documents), beside=len(entries) - new)


class OtherWrite:
    """A write other than of versions and documents: what the writer calls, and its cost."""

    __slots__ = ("_work", "cost")

    def __init__(self, work: Callable[[Any], Any], *, cost: int) -> None:
        self._work = work
        self.cost = cost

    def __call__(self, connection: Any) -> Any:
        return self._work(connection)


def cost_of(size: int, index_rows: int = 0, *, beside: int = 0) -> int:
    """Return how long a write takes, in microseconds, of so many bytes and rows of indexes.

    Measured with an index of a million rows, in which each new one is on a page of its own. That
    page is written, too, so that a row costs most; an ordinary report has ten. Rows ``beside``
    another of the same write are on its page, such as those of the patient of many results.
    """
    return 20 + 10 * index_rows + 2 * beside + size // 400


def pages_of(cost: int) -> int:
    """Return about how many pages of the file such a write changes."""
    return cost // 10


def content_of(version: Version) -> Blob:
    """Return what is large of a version as a blob, to be stored in pieces.

    Its name has the length of all others, and cannot be that of a document.
    """
    data = b"".join((version.body, version.response, version.parts))
    name = _CONTENT + hashlib.sha256(data).hexdigest()[len(_CONTENT) :]
    return Blob(name, "application/fhir+json", data)


def _refer_to(content: Blob, version: Version) -> Version:
    """Return a version as its row has it, whose content is elsewhere."""
    sizes = (len(version.body), len(version.response), len(version.parts))
    reference = _REFERENCE + " ".join([content.sha256, *map(str, sizes)]).encode()
    documents = (*version.documents, content.sha256)
    return replace(version, body=reference, response=b"", parts=b"", documents=documents)


def reference_in(row: Row) -> tuple[str, Sequence[int]] | None:
    """Return the name of the content of a version that is elsewhere, and the sizes of its parts.

    These are the columns from ``body`` on.
    """
    if not row[14].startswith(_REFERENCE):
        return None
    name, *sizes = row[14][len(_REFERENCE) :].decode().split()
    return name, [*map(int, sizes)]


def blob_row(tenant: str, blob: Blob, *, now: int) -> Row:
    """Return a blob, without bytes if it is large, in the columns of an addition: see `schema`."""
    identity = (None, None, tenant, blob.content_type, None, blob.sha256)
    # Content is counted with its version.
    size = 0 if blob.sha256.startswith(_CONTENT) else len(blob.data)
    state = (None, now, None, None, size, None)
    data = None if _is_large(blob) else blob.data
    return (*identity, *state, None, None, data, None, None, None, None, None, None)


def _is_large(blob: Blob) -> bool:
    return len(blob.data) > SMALL_BYTES


def _encode_attached(blobs: Collection[Blob]) -> bytes:
    """Return documents as one value: what is known of each as JSON, a NUL, then their bytes."""
    if not blobs:
        return b""
    known = [(blob.sha256, blob.content_type, len(blob.data)) for blob in blobs]
    return b"\0".join((json.dumps(known).encode(), b"".join(blob.data for blob in blobs)))


def attached_in(value: bytes) -> Iterator[Blob]:
    """Yield the documents that the row of a version holds."""
    known, _nul, data = value.partition(b"\0")
    start = 0
    for sha256, content_type, size in json.loads(known or b"[]"):
        yield Blob(sha256, content_type, data[start : start + size])
        start += size


def version_of(row: Row) -> Version:
    """Return the version in a row of the columns of a version."""
    return Version(
        id=row[0],
        version=row[1],
        type=row[3],
        system=row[4],
        value=row[5],
        status=row[6],
        created=row[7],
        updated=row[8],
        documents=tuple(name for name in row[9].split() if not name.startswith(_CONTENT)),
        search=row[11].encode(),
        digest=row[12],
        events=row[13],
        body=row[14],
        response=row[15],
        parts=row[16],
        attached=tuple(attached_in(row[17])) if row[17] else (),
        audit=row[18],
    )


def size_of(row: Row) -> int:
    """Return how large a version in a row is, by what can be large of it."""
    size: int = row[10]
    return size


def has_bytes(row: Row) -> bool:
    """Return whether a row came with its bytes, and not without since they are many."""
    return row[14] is not None
