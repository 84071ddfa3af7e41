"""One report of a watched folder with its documents, from the folder to where it belongs (ADR 28).

Whatever the process is killed at, the files are complete in one place, or the next start can
complete the move:

1. The documents are moved into a new folder below ``sending``, then the report. A folder without
   a report is one that was not completed: its documents go back.
2. The report is sent from there. What arrives under the same name in the meantime is another one.
3. A plan is written when the result is known. A folder with a plan is only moved on, never sent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from fhirpub.cli.publish.bulk.sources import REASON, is_report
from fhirpub.cli.publish.outcome import Outcome

SENDING, DONE, REFUSED = "sending", "done", "refused"
_PLAN = ".plan"
_LONGEST_NAME = 200
_DUPLICATE = "the identifier is published with other content: what this file has is not stored"


@dataclass(frozen=True, slots=True)
class Claim:
    """The files that belong to one report, in a folder of their own below ``watched``/sending."""

    watched: Path
    folder: Path

    @classmethod
    def take(cls, watched: Path, report: Path, documents: Iterable[Path]) -> Claim | None:
        """Take a report and its documents, which are paths below ``watched``, out of the folder.

        Returns None if the report is not there any more.
        """
        claim = cls(watched, watched / SENDING / uuid4().hex)
        claim.folder.mkdir(parents=True)
        for file in (*documents, report):
            target = claim.folder / file.relative_to(watched)
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                file.rename(target)
        if claim.report is None:
            claim.give_back()
            return None
        return claim

    @property
    def report(self) -> Path | None:
        """The report, or None if the folder is incomplete or being emptied."""
        names = sorted(file.name for file in self._files() if file.parent == self.folder)
        return next((self.folder / name for name in names if is_report(name)), None)

    @property
    def is_decided(self) -> bool:
        """Whether the result is known, and the files only have to be moved on."""
        return (self.folder / _PLAN).exists()

    def decide(self, outcome: Outcome) -> None:
        """Keep the result, and move the files to where they belong."""
        report = self.report
        published = outcome.result in ("created", "replayed")
        if report:
            reason = reason_file(report)
            reason.unlink(missing_ok=True)  # of an earlier attempt
            if not published:
                reason.write_text(json.dumps(reason_of(outcome), indent=2), encoding="utf-8")
        where = DONE if published else REFUSED
        plan = {"folder": where, "number": self._free_number(self.watched / where)}
        draft = self.folder / f"{_PLAN}.tmp"
        draft.write_text(json.dumps(plan), encoding="utf-8")
        draft.rename(self.folder / _PLAN)
        self.move_on()

    def move_on(self) -> None:
        """Move the files to where they belong in the plan; they may be moved in part already."""
        plan = json.loads((self.folder / _PLAN).read_bytes())
        for file in list(self._files()):
            target = _numbered(self.watched / plan["folder"], self._name(file), plan["number"])
            _move(file, target)
        for name in (f"{_PLAN}.tmp", _PLAN):
            (self.folder / name).unlink(missing_ok=True)
        self._remove()

    def give_back(self) -> None:
        """Return the files to the watched folder; what has come there since is not overwritten."""
        for file in list(self._files()):
            _move(file, self.watched / self._name(file))
        self._remove()

    def _remove(self) -> None:
        """Remove the folder if it is empty; nothing that has come into it is lost."""
        for here, _folders, _names in os.walk(self.folder, topdown=False):
            with suppress(OSError):
                Path(here).rmdir()

    def _free_number(self, target: Path) -> int:
        """Return the first number under which no file of this claim would meet another."""
        names = [self._name(file) for file in self._files()]
        number = 1
        while any(os.path.lexists(_numbered(target, name, number)) for name in names):
            number += 1
        return number

    def _name(self, file: Path) -> Path:
        return file.relative_to(self.folder)

    def _files(self) -> Iterator[Path]:
        for here, _folders, names in os.walk(self.folder):
            for name in names:
                if not name.startswith(_PLAN):
                    yield Path(here, name)


def reason_file(report: Path) -> Path:
    """Return the path of the reason why a report was not published."""
    return report.with_name(f"{_shortened(report.stem)}{REASON}")


def reason_of(outcome: Outcome) -> dict[str, Any]:
    """Return why a report was not published, as an OperationOutcome."""
    if outcome.result == "other content" and outcome.id:
        text = f"{_DUPLICATE}; see {outcome.address}"
        issues = [{"severity": "error", "code": "duplicate", "diagnostics": text}]
    else:
        unknown = {"severity": "error", "code": "processing", "diagnostics": outcome.reason}
        issues = outcome.issues or [unknown]
    return {"resourceType": "OperationOutcome", "issue": issues}


def _numbered(folder: Path, name: Path, number: int) -> Path:
    """Return the path of a file that may be the second one of its name: ``a-2.pdf``."""
    if number == 1:
        return folder / name
    end = REASON if name.name.endswith(REASON) else name.suffix
    return folder / name.with_name(f"{_shortened(name.name.removesuffix(end))}-{number}{end}")


def _shortened(name: str) -> str:
    """Return a name that leaves room for a longer ending; file systems allow 255 bytes."""
    while len(os.fsencode(name)) > _LONGEST_NAME:
        name = name[:-1]
    return name


def _move(file: Path, target: Path) -> None:
    """Move a file to a path that no other file has, or to the next one that is free."""
    target.parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while not _moved(file, _numbered(target.parent, Path(target.name), number)):
        number += 1


def _moved(file: Path, target: Path) -> bool:
    """Move a file and return true, or return false if there is another one."""
    try:
        os.link(file, target, follow_symlinks=False)  # unlike a rename it overwrites nothing
    except FileExistsError:
        if not os.path.samestat(file.lstat(), target.lstat()):
            return False
    except OSError:  # a file system without links
        if os.path.lexists(target):
            return False
        file.rename(target)
        return True
    file.unlink()
    return True
