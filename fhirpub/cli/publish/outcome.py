"""What became of a submission, read from the response to its registration."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal

from tornado.httpclient import HTTPResponse

from fhirpub.cli.http_client import json_of
from fhirpub.cli.publish.retries import Answered

Result = Literal["created", "replayed", "other content", "refused", "not sent"]
EXIT_STATUS: dict[Result, int] = {
    "created": 0,
    "replayed": 0,
    "not sent": 1,
    "refused": 1,
    "other content": 3,
}
"""Of several results the highest counts: what has other content is never published by a retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one file, or of one line of it.

    ``status`` is that of the response, and ``attempts`` how often the request was sent.
    ``reason`` is why nothing was published. ``entries`` are the resources that came with the
    report, such as its results: the name of each entry, and its address.
    """

    file: str
    result: Result
    type_name: str = ""
    id: str = ""
    version: str = ""
    location: str = ""
    entries: list[dict[str, str]] = field(default_factory=list)
    issues: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""
    line: int | None = None
    status: int | None = None
    attempts: int = 0

    @property
    def address(self) -> str:
        """Where the latest version is read."""
        return self.location.partition("/_history/")[0]


def outcome_of(
    answered: Answered, file: str, type_name: str, *, line: int | None = None
) -> Outcome:
    """Return what a response says about the registration of a file, or of one line of it."""
    answer, attempts = answered.response, answered.attempts
    body = json_of(answer)
    if answer.code != HTTPStatus.CREATED:
        status = f"{answer.code} {answer.reason}"
        issues = issues_of(body)
        return Outcome(
            file=file,
            result=_result_of_refusal(answer.code, issues),
            type_name=type_name,
            issues=issues,
            reason=f"{status}{_way_out(answer.code)}",
            line=line,
            status=answer.code,
            attempts=attempts,
        )
    location = answer.headers.get("Location", "")
    address, _, version = location.partition("/_history/")
    return Outcome(
        file=file,
        result=_result(answer),
        type_name=type_name,
        id=address.rpartition("/")[2],
        version=version,
        location=location,
        entries=_entries_beside(body),
        issues=_issues_beside(body),
        line=line,
        status=answer.code,
        attempts=attempts,
    )


def _result(answer: HTTPResponse) -> Result:
    if answer.headers.get("Idempotent-Content") == "different":
        return "other content"
    return "replayed" if answer.headers.get("Idempotent-Replayed") == "true" else "created"


def _result_of_refusal(status: int, issues: list[dict[str, Any]]) -> Result:
    """Return which kind of refusal it is: what was erased has no content, and gets none."""
    is_conflict = status == HTTPStatus.CONFLICT
    has_other = is_conflict and any(issue.get("code") == "duplicate" for issue in issues)
    return "other content" if has_other else "refused"


def _way_out(status: int) -> str:
    if status == HTTPStatus.UNAUTHORIZED:
        return "; the service does not accept the token that it issued: is --audience right?"
    return ""


def _entries_beside(parameters: dict[str, Any]) -> list[dict[str, str]]:
    """Return the references in a response, under the names of their entries."""
    found = [(entry.get("name"), entry.get("valueReference")) for entry in _entries(parameters)]
    return [
        {"name": str(name), "reference": str(reference.get("reference"))}
        for name, reference in found
        if isinstance(reference, dict)
    ]


def _issues_beside(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the issues in the entry ``issues`` of a response."""
    outcomes = [
        entry.get("resource") for entry in _entries(parameters) if entry.get("name") == "issues"
    ]
    return [
        issue for outcome in outcomes if isinstance(outcome, dict) for issue in issues_of(outcome)
    ]


def issues_of(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the issues of an OperationOutcome; of another body none.

    Fields of another form than FHIR's are left out: an unknown server may have sent them.
    """
    if outcome.get("resourceType") != "OperationOutcome":
        return []
    return [
        {name: value for name, value in issue.items() if _has_its_form(name, value)}
        for issue in _objects(outcome.get("issue"))
    ]


def _has_its_form(name: str, value: Any) -> bool:
    if name in ("severity", "code", "diagnostics"):
        return isinstance(value, str)
    if name == "expression":
        return isinstance(value, list) and all(isinstance(path, str) for path in value)
    if name == "details":
        return isinstance(value, dict) and len(_objects(value.get("coding"))) > 0
    return True


def _entries(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return _objects(parameters.get("parameter"))


def _objects(value: Any) -> list[dict[str, Any]]:
    """Return a list of objects; an empty one for anything else."""
    are_objects = isinstance(value, list) and all(isinstance(item, dict) for item in value)
    return value if are_objects else []
