"""The report of a load: one line of JSON for each result, whole at any moment."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fhirpub.cli.publish.outcome import Outcome
from fhirpub.cli.publish.summary import code_of
from fhirpub.fhir.times import instant
from fhirpub.runtime.clock import Clock

_START = b'{"file": '
"""How every line begins."""


class ReportFailed(click.ClickException):
    """The report cannot be written: the load stops, since its results would be lost."""


def record_of(outcome: Outcome, now_ms: int) -> dict[str, Any]:
    """Return a line of the report. It has no text of the report that was sent."""
    return {
        "file": outcome.file,
        "line": outcome.line,
        "result": outcome.result,
        "status": outcome.status,
        "id": outcome.id or None,
        "version": outcome.version or None,
        "location": outcome.location or None,
        "attempts": outcome.attempts,
        "reason": outcome.reason or None,
        "problems": [
            {
                "severity": issue.get("severity"),
                "code": code_of(issue),
                "path": issue.get("expression", []),
                "message": issue.get("diagnostics"),
            }
            for issue in outcome.issues
        ],
        "at": instant(now_ms),
    }


@dataclass(slots=True)
class Report:
    """A file of results; each is a whole line as soon as :meth:`add` has returned."""

    file: Path
    descriptor: int
    clock: Clock

    def add(self, outcome: Outcome) -> None:
        """Append a result. Raises ReportFailed."""
        line = json.dumps(record_of(outcome, self.clock())).encode() + b"\n"
        try:
            end = os.lseek(self.descriptor, 0, os.SEEK_END)
            if os.write(self.descriptor, line) == len(line):
                return
            os.ftruncate(self.descriptor, end)  # the disk is full: a part would be no JSON
            reason = "the disk is full"
        except OSError as problem:
            reason = str(problem.strerror)
        raise _failed(self.file, reason)

    def save(self) -> None:
        """Write what is in the memory of the system to the disk."""
        with suppress(OSError):  # a device, such as /dev/stdout
            os.fsync(self.descriptor)


@contextmanager
def opened_report(file: Path, clock: Clock, *, resume: bool) -> Iterator[Report]:
    """Open a report for new results: an empty one, or that of a run that is resumed.

    A last line that is incomplete, after the machine has failed, is removed.
    """
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise _failed(file, str(problem.strerror)) from problem
    try:
        _refuse_misuse(file, descriptor, resume=resume)
        _remove_incomplete_line(descriptor)
        report = Report(file, descriptor, clock)
        yield report
        report.save()
    finally:
        os.close(descriptor)


def _refuse_misuse(file: Path, descriptor: int, *, resume: bool) -> None:
    with suppress(OSError):  # file systems without locks
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise click.UsageError(f"{file} is the report of a run that has not ended") from None
    start = os.pread(descriptor, 65_536, 0) if os.fstat(descriptor).st_size else b""
    if not start:
        return
    if not resume:
        raise click.UsageError(
            f"{file} is not empty: add --resume to continue the run that it is the report of, "
            "or name another file"
        )
    if not start.startswith(_START):
        raise click.UsageError(f"{file} is not the report of a run, and is left as it is")


def _remove_incomplete_line(descriptor: int) -> None:
    end = os.fstat(descriptor).st_size
    while end:
        start = max(0, end - 65_536)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end != os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, end)


def _failed(file: Path, reason: str) -> ReportFailed:
    return ReportFailed(
        f"the report {file} cannot be written: {reason}\n"
        "What it lists is published. Run the command again with --resume when there is space."
    )
