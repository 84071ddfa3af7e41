"""The body of an answer, of which the documents are read only as the client takes them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import pybase64

from fhirpub.fhir.document import cut_at_documents
from fhirpub.storage.contract import BlobInfo

ReadPieces = Callable[[BlobInfo, slice], AsyncGenerator[bytes, None]]
"""Yields a part of a document in pieces that can be encoded independently."""

_ENOUGH = 64 * 1024


@dataclass(frozen=True, slots=True)
class BlobSlice:
    """A part of a document, as it is; or, if it is the whole of it, in base64 and quotes."""

    blob: BlobInfo
    part: slice
    encoded: bool = False

    @property
    def length(self) -> int:
        """How many bytes it becomes."""
        size: int = self.part.stop - self.part.start
        return (size + 2) // 3 * 4 + 2 if self.encoded else size


class ResponseBody:
    """Bytes and parts of documents in their order; ``read`` gives what is not at hand."""

    def __init__(self, parts: Sequence[bytes | memoryview | BlobSlice], read: ReadPieces) -> None:
        self._parts = parts
        self._read = read
        self.length = sum(p.length if isinstance(p, BlobSlice) else len(p) for p in parts)

    @classmethod
    def with_documents(
        cls, body: bytes, blobs: Mapping[str, BlobInfo], read: ReadPieces
    ) -> ResponseBody:
        """Return a stored resource, as JSON or as XML, with its documents' data back in it."""
        parts: list[memoryview | BlobSlice] = []
        for text, sha256 in cut_at_documents(body):
            parts.append(text)
            if sha256 is not None:
                blob = blobs[sha256]
                parts.append(BlobSlice(blob, slice(0, blob.size), encoded=True))
        return cls(parts, read)

    def at_once(self) -> bytes | None:
        """Return all of it; None if a document has to be read first, however little of it."""
        if any(isinstance(p, BlobSlice) and p.blob.data is None for p in self._parts):
            return None
        return b"".join(_small(p) if isinstance(p, BlobSlice) else p for p in self._parts)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield all of it, what is short together. Raises StoreUnavailable."""
        gathered: list[bytes | memoryview] = []
        size = 0
        async with aclosing(self._every_piece()) as pieces:
            async for piece in pieces:
                gathered.append(piece)
                size += len(piece)
                if size >= _ENOUGH:
                    together, gathered, size = b"".join(gathered), [], 0
                    yield together
        yield b"".join(gathered)

    async def _every_piece(self) -> AsyncGenerator[bytes | memoryview, None]:
        for part in self._parts:
            if not isinstance(part, BlobSlice):
                view = memoryview(part)
                for start in range(0, len(view), _ENOUGH):
                    yield view[start : start + _ENOUGH]
            elif part.blob.data is not None:
                yield _small(part)
            else:
                async with aclosing(self._large(part)) as pieces:
                    async for piece in pieces:
                        yield piece

    async def _large(self, blob_slice: BlobSlice) -> AsyncGenerator[bytes, None]:
        quote = b'"' if blob_slice.encoded else b""
        yield quote
        async with aclosing(self._read(blob_slice.blob, blob_slice.part)) as pieces:
            async for piece in pieces:
                yield pybase64.b64encode(piece) if blob_slice.encoded else piece
        yield quote


def _small(blob_slice: BlobSlice) -> bytes:
    data = (blob_slice.blob.data or b"")[blob_slice.part]
    return b'"%b"' % pybase64.b64encode(data) if blob_slice.encoded else data
