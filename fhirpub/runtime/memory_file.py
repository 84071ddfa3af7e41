"""A file in memory, through which two processes exchange many bytes.

A pipe would take them in pieces of 64 KiB, each of which the event loop reads and joins.
"""

from __future__ import annotations

import os
import tempfile

_PIECE_BYTES = 256 * 1024


class MemoryFile:
    """Bytes that one process puts in and another takes out; a child inherits the descriptor."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Make a file, or open the one that was inherited as ``descriptor``."""
        self.descriptor = _create() if descriptor is None else descriptor
        self._size = 0

    def append(self, data: bytes | memoryview) -> None:
        """Write bytes behind those that are there; raises OSError if there is no memory."""
        view = memoryview(data)
        while view:
            written = os.pwrite(self.descriptor, view[:_PIECE_BYTES], self._size)
            self._size += written
            view = view[written:]

    def end(self) -> int:
        """Return how many bytes were written; the next go to the beginning."""
        size, self._size = self._size, 0
        return size

    def take(self, *lengths: int) -> list[bytes]:
        """Return the bytes that another process wrote, in parts, and free their memory.

        Raises EOFError if there are fewer.
        """
        offset, parts = 0, []
        for length in lengths:
            parts.append(self._read(length, offset))
            offset += length
        os.ftruncate(self.descriptor, 0)
        return parts

    def _read(self, length: int, offset: int) -> bytes:
        data = os.pread(self.descriptor, length, offset)
        if len(data) < length:  # the system may return at most 2 GiB, which is more than any body
            raise EOFError
        return data

    def close(self) -> None:
        """Close the file; its memory is freed when the other process has closed it, too."""
        os.close(self.descriptor)


def _create() -> int:
    if hasattr(os, "memfd_create"):  # Linux
        return os.memfd_create("fhirpub")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
