"""Runs an operation of a plugin: its parameters, what it is about, and what it may raise."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

from fhirpub.errors import (
    BrokenRule,
    FhirpubError,
    InvalidSearch,
    Issue,
    NotPermitted,
    SearchTooCostly,
)
from fhirpub.fhir.date_value import parse_range
from fhirpub.fhir.strict_json import JsonObject, loads_stored
from fhirpub.interactions.context import Context, May
from fhirpub.interactions.search.includes import Include, Included, parse_include
from fhirpub.interactions.search.inclusion import include
from fhirpub.interactions.versions import Shown, without_documents
from fhirpub.plugin_api import Operation, OperationParameter, OperationRequest, OperationResult
from fhirpub.plugin_api.operations import OperationRefused, ParameterType, PluginOperation
from fhirpub.problems import OperationProblem
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.storage.contract import Page, Version
from fhirpub.suggestion import did_you_mean
from fhirpub.tenant import Tenant

OF_THE_ANSWER = ("_format", "_pretty")
_SHAPES = {
    "string": re.compile(r"[^\x00-\x1f\x7f]{1,1000}"),
    "code": re.compile(r"[^\s]+( [^\s]+)*"),
    "boolean": re.compile("true|false"),
    "integer": re.compile("-?[0-9]{1,9}"),
    "date": re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?"),
}

_log = logger()


class OperationFailed(FhirpubError):
    """An operation of a plugin raised something; the log has the place."""

    def __init__(self, code: str, plugin: str) -> None:
        super().__init__(f"the operation ${code} of the plugin {plugin} failed: ask the operator")


@dataclass(frozen=True, slots=True)
class Subject:
    """What an operation is about: a version, and what its references lead to."""

    version: Version | None = None
    included: Included = field(default_factory=Included)

    @property
    def size(self) -> int:
        """How many bytes of it are stored."""
        own = len(self.version.body) if self.version else 0
        return own + sum(map(len, self.included.bodies))


def read_parameters(
    operation: Operation, sent: Sequence[tuple[str, str]]
) -> Mapping[str, str | int | bool]:
    """Return the values of the parameters of a query. Raises InvalidSearch with all problems."""
    known = {parameter.name: parameter for parameter in operation.parameters}
    given = [(name, value) for name, value in sent if name not in OF_THE_ANSWER and value]
    issues = [*_problems(known, given)]
    if issues:
        raise InvalidSearch(issues)
    return {name: _value(known[name], value) for name, value in given}


def _problems(
    known: Mapping[str, OperationParameter], given: Sequence[tuple[str, str]]
) -> Iterator[Issue]:
    names = [name for name, _ in given]
    for name, value in given:
        if name not in known:
            has = f"the parameters are {', '.join(known)}" if known else "there are none"
            advice = did_you_mean(name, known) or has
            rule = f"is no parameter of this operation; {advice}"
            yield Issue.error(OperationProblem.PARAMETER_UNKNOWN, rule, name)
        elif not _is_of(known[name].type, value):
            rule = f"must be of the FHIR type {known[name].type}"
            yield Issue.error(OperationProblem.PARAMETER_INVALID, rule, name)
    for name, parameter in known.items():
        if parameter.required and name not in names:
            yield Issue.error(OperationProblem.PARAMETER_INVALID, "is required", name)
        if names.count(name) > 1:
            yield Issue.error(OperationProblem.PARAMETER_INVALID, "must not be repeated", name)


def _is_of(type_: ParameterType, text: str) -> bool:
    if not _SHAPES[type_].fullmatch(text):
        return False
    return type_ != "date" or parse_range(text, default_zone=UTC) is not None


def _value(parameter: OperationParameter, text: str) -> str | int | bool:
    if parameter.type == "boolean":
        return text == "true"
    return int(text) if parameter.type == "integer" else text


def includes_of(operation: Operation, context: Context) -> list[Include | None]:
    """Return the references that an operation follows; None stands for one that there is not."""
    return [parse_include(one, operation.type, context.searched) for one in operation.includes]


async def follow_references(
    operation: Operation, version: Version, *, tenant: Tenant, context: Context, may: May
) -> Included:
    """Return what the references of a version lead to.

    Raises NotPermitted unless all of it may be read, SearchTooCostly if it is too much: a result
    with something missing could mislead.
    """
    page = Page((version,), None, more=False)
    wanted = [one for one in includes_of(operation, context) if one is not None]
    denied = False

    def note(letter: str, types: Collection[str]) -> bool:
        nonlocal denied
        allowed = may(letter, types)
        denied = denied or not allowed
        return allowed

    _page, included = await include(page, wanted, tenant=tenant, context=context, may=note)
    if denied:
        raise NotPermitted
    if included.issues:
        raise SearchTooCostly.because(
            "the resource refers to more than an operation may read",
            details=OperationProblem.SEARCH_TOO_COSTLY,
        )
    return included


def execute(
    context: Context,
    declared: PluginOperation,
    subject: Subject,
    parameters: Mapping[str, str | int | bool],
) -> OperationResult:
    """Run an operation, in a thread. Raises BrokenRule, and OperationFailed with the plugin."""
    version, plugin, operation = subject.version, declared.plugin, declared.operation
    request = OperationRequest(
        resource=without_documents(Shown.of(version), context=context) if version else {},
        included=dict(_listed(subject.included, context)),
        parameters=parameters,
        fhir_url=context.fhir_url,
    )
    try:
        result: Any = operation.run(request)
    except OperationRefused as refusal:
        details = OperationProblem.OPERATION_REFUSED
        raise BrokenRule.because(str(refusal), details=details) from None
    except Exception as problem:  # noqa: BLE001 - of any kind, from another's code
        _log.error("operation failed", plugin_name=plugin, code=operation.code, **where(problem))
        raise OperationFailed(operation.code, plugin) from None
    if isinstance(result, OperationResult):
        return result
    _log.error("operation returned no OperationResult", plugin_name=plugin, code=operation.code)
    raise OperationFailed(operation.code, plugin)


def _listed(included: Included, context: Context) -> Iterator[tuple[str, JsonObject]]:
    for shown in included.versions:
        yield f"{shown.type}/{shown.id}", without_documents(shown, context=context)
    for stored, names in included.parts:
        parts = loads_stored(stored)
        for name in sorted(parts.keys() & names):  # one that may be left out need not be there
            yield f"{parts[name]['resourceType']}/{parts[name]['id']}", parts[name]
