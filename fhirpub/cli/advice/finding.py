"""The result of one check, as `fhirpub check` prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; the text of a warning or an error names the remedy."""

    subject: str
    level: Literal["ok", "warning", "error"]
    text: str


def warning(subject: str, text: str) -> Finding:
    """Return a finding that does not prevent a start."""
    return Finding(subject, "warning", text)
