"""An operation: what an operator can do, in terms of both the command line and HTTP."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from fhirpub.errors import MAX_ISSUES, InvalidContent, Issue
from fhirpub.fhir.times import parse_instant
from fhirpub.problems import OperationProblem
from fhirpub.suggestion import did_you_mean

Place = Literal["path", "query", "body"]
_MAX_TEXT, _MAX_ITEMS = 2_000, 1_000
_WHOLE = re.compile("-?[0-9]{1,18}")
_BLANK = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of an operation.

    Attributes:
        name: Its name, in the path, the query or the body.
        text: What it means.
        type: The JSON type of its value; ``strings`` is an array of strings, and ``instant`` a
            text such as ``2026-11-21T10:00:00Z``, which operations get in milliseconds.
        place: Where a request has it.
        required: Whether it must be given.
        minimum: The smallest number, or the least number of strings.
        maximum: The largest number, or the maximum number of strings or objects.
        choices: The values that it takes, if they are few.
        max_length: The maximum number of characters of a text, or of each string.
        rule: Returns what else is wrong with a text, or with a string, or nothing.
    """

    name: str
    text: str
    type: Literal["string", "integer", "boolean", "strings", "object", "objects", "instant"] = (
        "string"
    )
    place: Place = "body"
    required: bool = False
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    max_length: int = _MAX_TEXT
    rule: Callable[[str], str] | None = None

    def problem(self, value: Any) -> str:
        """Return what is wrong with a value, or nothing."""
        if self.type == "strings":
            return self._problem_of_list(value)
        if self.type == "integer":
            return self._problem_of_number(value)
        if self.type == "boolean":
            return "" if isinstance(value, bool) else "must be true or false"
        if self.type in ("object", "objects"):
            return self._problem_of_objects(value)
        if self.type == "instant":
            is_instant = isinstance(value, str) and parse_instant(value) is not None
            return "" if is_instant else "must be a time such as 2026-11-21T10:00:00Z"
        return self._problem_of_text(value)

    def _problem_of_text(self, value: Any) -> str:
        if not isinstance(value, str):
            return "must be a string"
        if self.place == "path" and not value:
            return "must not be empty"
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}"
        if len(value) > self.max_length:
            return f"has more than {self.max_length} characters"
        return self.rule(value) if self.rule else ""

    def _problem_of_number(self, value: Any) -> str:
        if not isinstance(value, int) or isinstance(value, bool):
            return "must be a whole number"
        if self.minimum is not None and value < self.minimum:
            return f"must be at least {self.minimum}"
        if self.maximum is not None and value > self.maximum:
            return f"must be at most {self.maximum}"
        return ""

    def _problem_of_list(self, value: Any) -> str:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            return "must be a list of strings"
        if len(value) < (self.minimum or 0):
            return f"must have at least {self.minimum}"
        if len(value) > (self.maximum or _MAX_ITEMS):
            return f"has more than {self.maximum or _MAX_ITEMS} strings"
        return next(filter(None, map(self._problem_of_text, value)), "")

    def _problem_of_objects(self, value: Any) -> str:
        if self.type == "object":
            return "" if isinstance(value, dict) else "must be an object"
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            return "must be a list of objects"
        most = self.maximum or _MAX_ITEMS
        return f"has more than {most} objects" if len(value) > most else ""

    def argument(self, value: Any) -> Any:
        """Return what an operation gets for a value that is right."""
        return parse_instant(value) if self.type == "instant" else value

    def from_texts(self, texts: Sequence[str]) -> Any:
        """Return the value that texts of a query or a path stand for, right or wrong."""
        last = texts[-1]
        if self.type == "strings":
            return list(texts)
        if self.type == "integer" and _WHOLE.fullmatch(last):
            return int(last)
        if self.type == "boolean":
            return {"true": True, "false": False}.get(last, last)
        return last


def why_no_line(text: str) -> str:
    """Return why a text is not one line that can be printed, or nothing."""
    return "" if text.isprintable() else "must be one line of printable text"


def why_no_name(text: str) -> str:
    """Return why a text is no name, or nothing."""
    is_name = bool(text.strip()) and text.isprintable()
    return "" if is_name else "must be one line of printable text, not blank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that an operator can do.

    Attributes:
        command: The words of the command that does it, such as ``tenant add``.
        method: The method of HTTP.
        path: The path below ``/admin/v1``, with the names of its parameters in braces.
        summary: What it does, in one sentence.
        run: Does it. It takes the administration, then each parameter that is given, by name, and
            returns what JSON can hold.
        parameters: What it takes.
        status: The HTTP status of success.
        is_final: Whether what it does cannot be undone.
        creates_store: Whether it may create a store file that does not exist.
        action: Its name in the audit trail, if that is not made of the words of the command.
    """

    command: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    summary: str
    run: Callable[..., Awaitable[Any]]
    parameters: tuple[Parameter, ...] = ()
    status: int = 200
    is_final: bool = False
    creates_store: bool = True
    action: str = ""

    @property
    def name(self) -> str:
        """Its name among the operations, as OpenAPI has it."""
        first, *others = re.split("[ -]", self.command)
        return first + "".join(map(str.capitalize, others))

    @property
    def audited_as(self) -> str:
        """Its name in the audit trail."""
        return self.action or ".".join(self.command.split()[:2])

    @property
    def blanks(self) -> list[str]:
        """The names of the parameters in the path."""
        return _BLANK.findall(self.path)

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments that are right; None stands for one that is not given.

        Raises:
            InvalidContent: With every problem, up to `MAX_ISSUES`.
        """
        arguments = {name: value for name, value in given.items() if value is not None}
        issues = [*islice(self._problems(arguments), MAX_ISSUES)]
        if issues:
            raise InvalidContent(issues)
        return arguments

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with which it runs. Raises as :meth:`check` does."""
        known = {one.name: one for one in self.parameters}
        return {name: known[name].argument(value) for name, value in self.check(given).items()}

    def _problems(self, arguments: Mapping[str, Any]) -> Iterator[Issue]:
        known = {one.name: one for one in self.parameters}
        for name, value in arguments.items():
            if name not in known:
                advice = did_you_mean(name, known) or f"known are {', '.join(known) or 'none'}"
                rule = f"is not a parameter here; {advice}"
                yield Issue.error(OperationProblem.FIELD_UNKNOWN, rule, name)
            elif rule := known[name].problem(value):
                yield Issue.error(OperationProblem.FIELD_INVALID, rule, name)
        for name, parameter in known.items():
            if parameter.required and name not in arguments:
                yield Issue.error(OperationProblem.FIELD_REQUIRED, "is required", name)
