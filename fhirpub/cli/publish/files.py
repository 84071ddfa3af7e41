"""Reads files that others wrote: regular ones only, and only up to a size."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class UnusableFile(ValueError):
    """A file cannot be sent; the text gives the reason."""


def is_regular(file: Path) -> bool:
    """Return whether a regular file has this path, and no link; false if it is no valid one."""
    try:
        return stat.S_ISREG(file.lstat().st_mode)
    except (OSError, ValueError):
        return False


def read_file(file: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most ``limit`` bytes. Raises UnusableFile."""
    try:
        # Without O_NONBLOCK, opening a named pipe would wait until a process writes to it.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnusableFile("is not a regular file")
            data = stream.read(limit + 1)
    except (OSError, ValueError) as problem:
        if isinstance(problem, UnusableFile):
            raise
        reason = getattr(problem, "strerror", None) or "its name is not valid"
        raise UnusableFile(f"cannot be read: {reason}") from problem
    if len(data) > limit:
        raise UnusableFile(f"is larger than {limit} bytes, the limit in the settings")
    return data
