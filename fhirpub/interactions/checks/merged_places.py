"""One issue for all places of the same problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fhirpub.errors import MAX_PLACES, Issue


def merge_places(issues: Iterable[Issue]) -> list[Issue]:
    """Return one issue for those that differ only in their places; it has a hundred at most."""
    every = list(issues)
    if len(every) < 2:
        return every
    alike: dict[tuple[str, ...], list[Issue]] = {}
    for issue in every:
        said = (issue.severity, issue.code, issue.diagnostics, issue.details)
        alike.setdefault(said, []).append(issue)
    return [_at_places(found[0], [one.expression for one in found]) for found in alike.values()]


def _at_places(issue: Issue, places: list[str]) -> Issue:
    left_out = len(places) - MAX_PLACES
    if left_out > 0:
        issue = replace(issue, diagnostics=f"{issue.diagnostics} (and in {left_out} more places)")
    return issue.at(*places[:MAX_PLACES])
