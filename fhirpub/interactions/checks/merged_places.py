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
    return [_at_places(found) for found in alike.values()]


def _at_places(alike: list[Issue]) -> Issue:
    issue = alike[0]
    places = [place for one in alike for place in (one.expression, *one.also_at)]
    if (left_out := len(places) - MAX_PLACES) > 0:
        issue = replace(issue, diagnostics=f"{issue.diagnostics} (and in {left_out} more places)")
    return issue.at(*places[:MAX_PLACES])
