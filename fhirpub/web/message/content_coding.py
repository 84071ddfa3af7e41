"""Content codings (RFC 9110, 8.4): bodies and responses in gzip (RFC 1952)."""

from __future__ import annotations

import gzip
import zlib
from functools import lru_cache

from fhirpub.errors import InvalidContent
from fhirpub.problems import ContentProblem

GZIP = "gzip"
_NAMES = (GZIP, "x-gzip")
"""To be treated alike (RFC 9110, 8.4.1.3)."""
_GZIP_BITS = 16 + zlib.MAX_WBITS
_LEVEL = 4
"""Nearly as small as the usual level, in half the time."""


def names_gzip(coding: str) -> bool:
    """Return whether a Content-Encoding is gzip, once."""
    return coding.strip().lower() in _NAMES


def encode_gzip(body: bytes) -> bytes:
    """Return a body in gzip, the same for the same body."""
    return gzip.compress(body, _LEVEL, mtime=0)


encode_gzip_once = lru_cache(maxsize=2)(encode_gzip)
"""For what is the same in every response."""


class GzipDecoder:
    """Decodes a body of one gzip member, some bytes at a time.

    Whatever follows the member is refused, also a second one: readers disagree about it.
    """

    __slots__ = ("_left", "_stream", "has_more", "received")

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_GZIP_BITS)
        self._left = b""
        self.received = 0
        """How many bytes came, as they were sent."""
        self.has_more = False
        """Whether what came may decode to more than was returned until now."""

    def feed(self, piece: bytes) -> None:
        """Take the next piece, once all of the one before is decoded."""
        self.received += len(piece)
        self._left, self.has_more = piece, True

    def decode(self, most: int) -> bytes:
        """Return the next bytes, ``most`` at most; raises InvalidContent for what is no gzip."""
        if self._stream.eof:
            raise _refusal("the body goes on after the end of its gzip stream")
        try:
            decoded = self._stream.decompress(self._left, most)
        except zlib.error:
            raise _refusal(
                "the body is not valid gzip: compress it, or leave out Content-Encoding"
            ) from None
        self._left = self._stream.unconsumed_tail or self._stream.unused_data
        # A full slice may leave bytes behind that take no more input.
        self.has_more = bool(self._left) or (len(decoded) == most and not self._stream.eof)
        return decoded

    def check_end(self) -> None:
        """Raise InvalidContent for a stream that has begun and is cut short."""
        if self.received and not self._stream.eof:
            raise _refusal("the gzip stream of the body is cut short")


def _refusal(rule: str) -> InvalidContent:
    return InvalidContent.because(rule, details=ContentProblem.GZIP_INVALID)
