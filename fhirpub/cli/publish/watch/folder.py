"""What is ready to be published in a watched folder."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

import click

from fhirpub.cli.publish.bulk.items import Item, submission_in
from fhirpub.cli.publish.bulk.sources import is_report
from fhirpub.cli.publish.documents import siblings_of
from fhirpub.cli.publish.files import UnusableFile, is_regular
from fhirpub.cli.publish.service import Service
from fhirpub.cli.publish.watch.claim import DONE, REFUSED, SENDING, Claim, reason_file

_AT_A_TIME = 10_000
"""So many reports are followed at once; the others of a larger folder come afterwards."""
_DOCUMENT_SECONDS = 60.0
"""How long a report waits for a document that it names and that is not there yet."""

Signature = tuple[int, int, int]


@dataclass(slots=True)
class Settling:
    """Knows since when files have not changed; ``seconds`` make a file complete."""

    seconds: float
    _seen: dict[Path, tuple[Signature, float]] = field(default_factory=dict, init=False)

    def age(self, file: Path) -> float:
        """Return for how long a file has been as it is, in seconds; -1: it is missing."""
        try:
            about = file.lstat()
        except OSError:
            return -1.0
        signature = (about.st_size, about.st_mtime_ns, about.st_ino)
        now = time.monotonic()
        known, since = self._seen.get(file, (signature, now))
        if known != signature:
            since = now
        self._seen[file] = (signature, since)
        return now - since

    def has_settled(self, file: Path) -> bool:
        """Return whether a file is complete."""
        return self.age(file) >= self.seconds

    def forget_missing(self) -> None:
        """Forget the files that are not there any more."""
        self._seen = {file: seen for file, seen in self._seen.items() if os.path.lexists(file)}


@dataclass(slots=True)
class WatchedFolder:
    """A folder whose reports are published. Reports in the folders below it are not."""

    path: Path
    service: Service
    settling: Settling

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Lock the folder, and return whether no other process has it."""
        try:
            (self.path / SENDING).mkdir(exist_ok=True)
            lock = (self.path / SENDING / ".lock").open("ab")
        except OSError as problem:
            raise _unusable(self.path, problem) from problem
        with lock:
            yield self._lock(lock)

    def _lock(self, lock: IO[bytes]) -> bool:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as problem:
            raise _unusable(self.path, problem) from problem
        return True

    def items(self) -> Iterator[Item]:
        """Yield the reports to send: those that were not completed, then those that are ready.

        Each is in a folder of its own, which is the base of its item.
        """
        for claim in list(self._unfinished()):
            yield from _item(claim)
        self.settling.forget_missing()
        with os.scandir(self.path) as entries:
            reports = (Path(entry.path) for entry in entries if _is_ready_name(entry))
            for report in list(islice(reports, _AT_A_TIME)):
                yield from self._claimed(report)

    def waiting(self) -> int:
        """Return how many reports are taken and have no result."""
        with suppress(OSError):
            return sum(1 for _ in self._claims())
        return 0

    def _claims(self) -> Iterator[Claim]:
        for folder in sorted((self.path / SENDING).iterdir()):
            if folder.is_dir() and not folder.name.startswith("."):
                yield Claim(self.path, folder)

    def _unfinished(self) -> Iterator[Claim]:
        for claim in self._claims():
            if claim.is_decided:
                claim.move_on()
            elif claim.report is None:
                claim.give_back()
            else:
                yield claim

    def _claimed(self, report: Path) -> Iterator[Item]:
        siblings = [*siblings_of(report), *_present(reason_file(report))]
        if not all(map(self.settling.has_settled, [report, *siblings])):
            return
        named = list(self._named(report))
        is_patient = self.settling.age(report) < self.settling.seconds + _DOCUMENT_SECONDS
        if is_patient and not all(map(self.settling.has_settled, named)):
            return
        claim = Claim.take(self.path, report, dict.fromkeys([*siblings, *named]))
        if claim:
            yield from _item(claim)

    def _named(self, report: Path) -> Iterator[Path]:
        """Yield the documents that a report names by path and that are taken with it."""
        if self.service.documents_from:  # they are elsewhere, and stay there
            return
        with suppress(UnusableFile):
            item = Item(file=report, base=self.path)
            for url in submission_in(item, self.service).paths:
                yield from self._taken(url)

    def _taken(self, url: str) -> Iterator[Path]:
        documents = self.service.documents(self.path, self.path)
        name = documents.relative(url)
        if name is None or is_report(name.name) or name.name.startswith("."):
            return
        if name.parts[0] in (SENDING, DONE, REFUSED):
            return
        if (self.path / name).parent.resolve().is_relative_to(self.path):
            yield self.path / name


def _unusable(folder: Path, problem: OSError) -> click.ClickException:
    return click.ClickException(f"{folder} cannot be watched: {problem.strerror}")


def _is_ready_name(entry: os.DirEntry[str]) -> bool:
    return is_report(entry.name) and entry.is_file(follow_symlinks=False)


def _present(file: Path) -> Iterator[Path]:
    if is_regular(file):
        yield file


def _item(claim: Claim) -> Iterator[Item]:
    if report := claim.report:
        yield Item(file=report, base=claim.folder, has_siblings=True)
