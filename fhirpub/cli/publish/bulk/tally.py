"""Counts the results of a load, and groups what was not published by its cause."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fhirpub.cli.publish.outcome import EXIT_STATUS, Outcome
from fhirpub.cli.publish.summary import code_of

_MAX_CAUSES = 500
_OTHER_CONTENT = ("other-content", "the identifier is published with other content")
_OTHERS = ("", "other causes")
_SEVERE = frozenset({"error", "fatal"})

Cause = tuple[str, str]
"""The code and the message of a problem."""


@dataclass(slots=True)
class Tally:
    """How many reports had each result, and why; ``examples`` are the first places."""

    results: Counter[str] = field(default_factory=Counter)
    causes: Counter[Cause] = field(default_factory=Counter)
    examples: dict[Cause, dict[str, Any]] = field(default_factory=dict)
    exit_status: int = 0
    begun: float = field(default_factory=time.monotonic)

    @property
    def total(self) -> int:
        """The number of results."""
        return self.results.total()

    @property
    def failed(self) -> int:
        """The number of reports that are not published."""
        return self.total - self.results["created"] - self.results["replayed"]

    @property
    def seconds(self) -> float:
        """The time since the load began."""
        return time.monotonic() - self.begun

    @property
    def rate(self) -> float:
        """The results of a second."""
        return self.total / max(self.seconds, 1e-6)

    def add(self, outcome: Outcome) -> None:
        """Count a result."""
        self.results[outcome.result] += 1
        status = EXIT_STATUS[outcome.result]
        self.exit_status = max(self.exit_status, status)
        if status == 0:
            return
        for cause, path in causes_of(outcome).items():
            known = cause if cause in self.causes or len(self.causes) < _MAX_CAUSES else _OTHERS
            self.causes[known] += 1
            place = {"file": outcome.file, "line": outcome.line, "path": path}
            self.examples.setdefault(known, place)

    def grouped(self) -> list[dict[str, Any]]:
        """Return the causes, the most frequent first."""
        return [
            {
                "code": code,
                "message": message,
                "count": count,
                "example": self.examples[code, message],
            }
            for (code, message), count in self.causes.most_common()
        ]


def causes_of(outcome: Outcome) -> dict[Cause, str | None]:
    """Return why a report is not published: each cause once, with the path of its first place."""
    if outcome.result == "other content" and outcome.id:
        return {_OTHER_CONTENT: None}
    causes: dict[Cause, str | None] = {}
    for issue in outcome.issues:
        if issue.get("severity") in _SEVERE:
            paths = issue.get("expression") or [None]
            causes.setdefault((code_of(issue), str(issue.get("diagnostics", ""))), paths[0])
    return causes or {("", outcome.reason): None}
