"""What goes wrong with a request, as exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx


class FhirpubClientError(Exception):
    """The service did not do what was asked of it."""


class Unanswered(FhirpubClientError):
    """No response came within the time, or every one deferred the request: repeat it later."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One issue of an OperationOutcome.

    Attributes:
        code: The code of the service, such as `value-required`; empty if there is none.
        text: What is wrong, in a sentence.
        places: FHIRPath expressions of the elements.
        severity: `fatal`, `error`, `warning` or `information`.
    """

    code: str
    text: str
    places: tuple[str, ...]
    severity: str


class Refused(FhirpubClientError):
    """The service refused a request: to repeat it unchanged is of no use.

    Attributes:
        status: The HTTP status.
        problems: Each problem that the service found.
        request_id: What to name to the operator of the service.
    """

    def __init__(self, response: httpx.Response) -> None:
        """Read a response that is an error."""
        self.status = response.status_code
        self.problems = problems_in(_json_of(response))
        self.request_id = response.headers.get("X-Request-Id", "")
        first = self.problems[0].text if self.problems else response.reason_phrase
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        super().__init__(f"{self.status}: {first}{more}")


def problems_in(outcome: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return the issues of an OperationOutcome, or the error of OAuth in the same form."""
    if "error" in outcome:
        text = str(outcome.get("error_description", outcome["error"]))
        return (Problem(str(outcome["error"]), text, (), "error"),)
    return tuple(
        Problem(
            code=_code_of(issue),
            text=issue.get("diagnostics", ""),
            places=tuple(issue.get("expression", ())),
            severity=issue.get("severity", "error"),
        )
        for issue in outcome.get("issue", ())
    )


def _code_of(issue: Mapping[str, Any]) -> str:
    codings = issue.get("details", {}).get("coding", ())
    return str(codings[0].get("code", "")) if codings else ""


def _json_of(response: httpx.Response) -> Mapping[str, Any]:
    """Return the body of a response, empty if it is from something between, such as a proxy."""
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
