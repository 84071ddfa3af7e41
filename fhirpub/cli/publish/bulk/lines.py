"""Reads files with one report a line, without ever holding more than one line of it."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fhirpub.cli.publish.bulk.items import Item

_CHUNK = 1_048_576
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Reading:
    """How files of lines are read: lines of at most ``limit`` bytes, until ``stopped`` is true.

    ``read`` gets the number of bytes of each part that was read.
    """

    limit: int
    stopped: Callable[[], bool]
    read: Callable[[int], None]


def lines_of(file: Path, base: Path, reading: Reading) -> Iterator[Item]:
    """Yield the lines of a file that are not blank, numbered from 1; ``-`` is standard input.

    A line that is too long is skipped and yielded as a problem.
    """
    try:
        with _opened(file) as descriptor:
            lines = _lines(_chunks(descriptor, reading), reading.limit)
            for number, line in enumerate(lines, start=1):
                item = Item(file=file, base=base, line=number, raw=line or b"")
                if line is None:
                    problem = f"is longer than {reading.limit} bytes, the limit in the settings"
                    yield replace(item, problem=problem)
                elif line and not line.isspace():
                    yield item
    except OSError as problem:
        yield Item(file=file, base=base, problem=f"cannot be read: {problem.strerror}")


@contextmanager
def _opened(file: Path) -> Iterator[int]:
    if str(file) == "-":
        yield sys.stdin.fileno()
        return
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _chunks(descriptor: int, reading: Reading) -> Iterator[bytes]:
    """Yield what can be read, until the end; a pipe that is silent can be given up."""
    while not reading.stopped():
        if not select.select([descriptor], [], [], _POLL_SECONDS)[0]:
            continue
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            return
        reading.read(len(chunk))
        yield chunk


def _lines(chunks: Iterator[bytes], limit: int) -> Iterator[bytes | None]:
    """Yield the lines without their ends; None for one that is longer than ``limit``."""
    start: list[bytes] = []
    size = 0
    for chunk in chunks:
        for number, piece in enumerate(chunk.split(b"\n")):
            if number:  # the piece before it has ended
                yield None if size > limit else b"".join(start)
                start, size = [], 0
            size += len(piece)
            if size <= limit:
                start.append(piece)
            else:
                start.clear()
    if size:
        yield None if size > limit else b"".join(start)
