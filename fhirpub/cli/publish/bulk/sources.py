"""Where reports are found: folders, patterns, files, and files with one report a line.

Nothing is collected: a folder of a million files is listed while it is loaded.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Literal

from fhirpub.cli.publish.bulk.items import Item
from fhirpub.cli.publish.bulk.lines import Reading, lines_of

Kind = Literal["file", "lines", "folder", "pattern"]

STDIN = "-"
_REPORTS = (".json", ".xml")
_LINES = (".ndjson", ".jsonl")
REASON = ".reason.json"
"""The end of the names of files that say why a report was refused."""


def is_report(name: str) -> bool:
    """Return whether a file of this name in a folder counts as a report."""
    lower = name.lower()
    return lower.endswith(_REPORTS) and not lower.startswith(".") and not lower.endswith(REASON)


@dataclass(frozen=True, slots=True)
class Source:
    """One argument of the command: a file, a file of lines, a folder, or a pattern of them.

    ``base`` is the folder that no document and no link leads out of. ``is_named`` is whether the
    file itself stands on the command line, and not a folder or a pattern.
    """

    path: Path
    base: Path
    kind: Kind
    is_named: bool = False

    @property
    def is_stdin(self) -> bool:
        """Whether it is standard input, of unknown length."""
        return self.kind == "lines" and str(self.path) == STDIN

    @property
    def line_bytes(self) -> int:
        """The size of files of lines, as far as it is known."""
        if self.kind == "pattern":
            return sum(source.line_bytes for source in self._matches())
        with suppress(OSError):
            return self.path.stat().st_size if self.kind == "lines" else 0
        return 0

    def items(self, reading: Reading) -> Iterator[Item]:
        """Yield the reports."""
        if self.kind == "pattern":
            for source in self._matches():
                yield from source.items(reading)
        elif self.kind == "lines":
            yield from lines_of(self.path, self.base, reading)
        elif self.kind == "folder":
            yield from _walk(self.path, self.base)
        else:
            yield Item(file=self.path, base=self.base, has_siblings=not self.is_named)

    def count(self) -> Iterator[int]:
        """Yield 1 for each report in files and folders, and 0 for files of lines."""
        if self.kind == "pattern":
            for source in self._matches():
                yield from source.count()
        elif self.kind == "folder":
            yield from (1 for _ in _walk(self.path, self.base))
        else:
            yield int(self.kind == "file")

    def matches_any(self) -> bool:
        """Return whether there is something to read."""
        return self.kind != "pattern" or any(True for _ in self._matches())

    def _matches(self) -> Iterator[Source]:
        for name in glob.iglob(str(self.path), recursive=True):  # noqa: PTH207 - absolute ones too
            path = Path(name)
            if not path.is_dir():
                yield Source(path, self.base, _kind_of(path))
            elif "**" not in self.path.parts:  # else what is in it is matched as well
                yield Source(path, self.base, "folder")


def source_of(argument: str, *, all_lines: bool) -> Source:
    """Return the source that an argument names; ``all_lines``: a file has one report a line."""
    path = Path(argument)
    if argument == STDIN:
        return Source(path, Path.cwd(), "lines")
    if path.is_dir():
        return Source(path, path, "folder")
    if path.exists():
        return Source(path, path.parent, "lines" if all_lines else _kind_of(path), is_named=True)
    plain = takewhile(lambda part: not glob.has_magic(part), path.parts)
    return Source(path, Path(*plain), "pattern")


def is_pattern(argument: str) -> bool:
    """Return whether an argument names files by a pattern."""
    return glob.has_magic(argument)


def is_many(argument: str) -> bool:
    """Return whether an argument stands for many reports: a folder, a pattern, or lines."""
    return argument != STDIN and source_of(argument, all_lines=False).kind != "file"


def _kind_of(file: Path) -> Kind:
    return "lines" if file.suffix.lower() in _LINES else "file"


def _walk(folder: Path, base: Path) -> Iterator[Item]:
    """Yield the reports below a folder, and what cannot be one although its name counts."""
    waiting = [os.fspath(folder)]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.is_symlink():
                        yield from _linked(Path(entry.path), base)
                    elif is_report(entry.name):
                        yield Item(file=Path(entry.path), base=base, has_siblings=True)
        except OSError as problem:
            yield Item(file=Path(here), base=base, problem=f"cannot be listed: {problem.strerror}")


def _linked(link: Path, base: Path) -> Iterator[Item]:
    """Yield a report that is reached by a link, unless that leads out of the folder."""
    item = Item(file=link, base=base, has_siblings=True)
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        target = None
    if target is not None and target.is_dir():
        yield replace(item, problem="is a link to a folder, which is not followed")
    elif is_report(link.name):
        if target is None or not target.is_relative_to(base.resolve()):
            yield replace(item, problem="is a link that leads out of the folder")
        else:
            yield item
