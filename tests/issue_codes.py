"""What the codes of issues in a response must be."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from fhirpub.problems import ALL, ContentProblem

_BY_CODE = {str(problem): problem for problem in ALL}


def uncoded_issues(resource: Any, *, declared: Collection[str] = ()) -> Iterator[str]:
    """Yield the issues, anywhere in a resource, that have no code of their own kind.

    ``declared`` are the codes that plugins declare, of which the issue type may be any.
    """
    for outcome in _outcomes_in(resource):
        for issue in outcome["issue"]:
            code = issue.get("details", {}).get("coding", [{}])[0].get("code", "none")
            problem = _BY_CODE.get(code)
            fits = problem is not None and problem is not ContentProblem.RULE_BROKEN
            fits = fits and issue["code"] in _BY_CODE[code].types
            if not fits and code not in declared:
                yield f"{code} ({issue['code']}): {issue['diagnostics']}"


def _outcomes_in(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        if value.get("resourceType") == "OperationOutcome":
            yield value
        for member in value.values():
            yield from _outcomes_in(member)
    elif isinstance(value, list):
        for item in value:
            yield from _outcomes_in(item)
