"""All problems of a body at once: rules are also asked of a body whose structure is wrong.

Rules may take the structure for granted. So what it is wrong about is removed first, and a rule
that stumbles over something else ends there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fhirpub.errors import MAX_ISSUES, Issue
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.plugin_api import Entry
from fhirpub.problems import ContentProblem
from fhirpub.runtime.stages import Stages, collect

_STUMBLES = (AttributeError, LookupError, TypeError, ValueError)
"""What a rule raises that meets another structure than it may expect."""
_STEP = re.compile(r"\[(?P<index>\d+)\]|(?P<name>[A-Za-z0-9_]+)")


def all_problems(
    structural: Sequence[Issue],
    entries: Sequence[Entry],
    *,
    between_elements: Iterable[Issue],
    rules: Iterable[Iterable[Issue]],
    fhirpath: Callable[[str], str],
) -> Stages[list[Issue]]:
    """Return the problems of a structure, and those that rules find beside them.

    ``between_elements`` are checked as the body came, ``rules`` without what is wrong: this
    changes the resources of the entries. A rule's problem is left out where it may only follow
    from one of the structure.
    """
    if len(structural) >= MAX_ISSUES:
        return [*structural]
    further = yield from collect([errors_of(between_elements)])
    places: dict[str, bool] = {}
    for entry in entries:
        entry.place_of(entry.resource)  # places are those of the body as it came
        for issue in structural:
            if _is_below(issue, entry):
                place = issue.expression.removeprefix(entry.at)
                whole = issue.details == ContentProblem.ELEMENT_MALFORMED
                places[issue.expression] = _remove(entry.resource, place, fhirpath, whole=whole)
    further += yield from collect(map(errors_of, rules))
    apart = [issue for issue in further if not _may_follow(issue.expression, places)]
    return [*structural, *sorted(apart, key=lambda issue: issue.code == "business-rule")]


def _is_below(issue: Issue, entry: Entry) -> bool:
    return issue.expression == entry.at or _contains(entry.at, issue.expression)


def _contains(outer: str, inner: str) -> bool:
    return inner.startswith((f"{outer}.", f"{outer}["))


def errors_of(issues: Iterable[Issue]) -> Iterator[Issue]:
    """Yield the errors that rules find before they stumble over a wrong structure."""
    try:
        for issue in issues:
            if issue.severity == "error":
                yield issue
    except _STUMBLES:
        return


def _remove(
    resource: JsonObject, place: str, fhirpath: Callable[[str], str], *, whole: bool
) -> bool:
    """Remove what stands at a place, unless it is an object that is not wrong as a ``whole``.

    Returns whether nothing stands there any more.
    """
    holder: JsonObject = {}
    names: list[str] = []
    values: list[Any] = [resource]
    siblings: list[Any] = []
    for step in _STEP.finditer(place):
        if step["index"]:
            values, siblings = (_items(one, int(step["index"])) for one in (values, siblings))
            continue
        objects = (one for one in (*values, *siblings) if isinstance(one, dict))
        holder = next(objects, {})
        names = [name for name in holder if fhirpath(name.lstrip("_")) == step["name"]]
        values = [holder[name] for name in names if name[:1] != "_"]
        siblings = [holder[name] for name in names if name[:1] == "_"]
    if any(isinstance(one, dict) for one in values) and not (whole and names):
        return False
    for name in names:
        del holder[name]
    return True


def _items(values: Sequence[Any], index: int) -> list[Any]:
    return [one[index] for one in values if isinstance(one, list) and index < len(one)]


def _may_follow(place: str, places: dict[str, bool]) -> bool:
    """Return whether a problem at a place may follow from the structural ones."""
    return place in places or any(
        _contains(place, other) or (is_gone and _contains(other, place))
        for other, is_gone in places.items()
    )
