"""Runs operations for pages, as the operator of the session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fhirpub.administration.operation import Operation
from fhirpub.audit.record import Agent
from fhirpub.console.operators.catalogue import by_command
from fhirpub.console.operators.fields import Texts, read_given
from fhirpub.console.visit import Visit
from fhirpub.errors import ConfigurationError, FhirpubError
from fhirpub.web.error_mapping import response_for


@dataclass(frozen=True, slots=True)
class Problems:
    """What is wrong with what was asked for: of single fields by name, and all else."""

    status: int = HTTPStatus.OK
    of_fields: Mapping[str, str] = field(default_factory=dict)
    others: Sequence[str] = ()


NONE = Problems()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of an operation that reads: its result, or what is wrong.

    Attributes:
        operation: The operation.
        texts: What was entered for its parameters.
        result: What it returned; None if it did not run.
        problems: What is wrong with what was entered.
    """

    operation: Operation
    texts: Texts
    result: Any = None
    problems: Problems = NONE


async def ask(visit: Visit, operation: Operation, **more: str) -> Answer:
    """Return what an operation reads for the parameters of a query, once it has those it needs.

    ``more`` are further parameters. A refusal is among the problems of the answer.
    """
    texts = {name: [text] for name, text in {**visit.query, **more}.items()}
    given = read_given(operation, texts)
    if any(one.required and one.name not in given for one in operation.parameters):
        return Answer(operation=operation, texts=texts)
    try:
        result = await run_operation(visit, operation, given)
    except FhirpubError as refusal:
        problems = problems_of(refusal, operation)
        return Answer(operation=operation, texts=texts, problems=problems)
    return Answer(operation=operation, texts=texts, result=result)


async def run(visit: Visit, command: str, /, **given: Any) -> Any:
    """Return the result of an operation that a page is made of. Raises FhirpubError."""
    return await run_operation(visit, by_command(command), given)


async def run_operation(visit: Visit, operation: Operation, given: Mapping[str, Any]) -> Any:
    """Return the result of an operation. Raises FhirpubError."""
    console = visit.console
    agent = Agent(
        environment=console.config.auth.environment,
        user=visit.signed_in.person.subject,
        address=visit.address,
        request=visit.request_id,
    )
    return await console.interface.run(operation, agent, given)


def problems_of(refusal: FhirpubError, operation: Operation) -> Problems:
    """Return the problems in a refusal, sorted to the fields of a form."""
    if isinstance(refusal, ConfigurationError):
        return Problems(HTTPStatus.UNPROCESSABLE_ENTITY, others=str(refusal).splitlines())
    answer = response_for(refusal)
    names = {one.name for one in operation.parameters}
    of_fields: dict[str, str] = {}
    others = []
    for issue in answer.issues:
        name = issue.expression.partition(".")[0].partition("[")[0]
        if name in names:
            known = of_fields.get(name, "")
            of_fields[name] = f"{known}; {issue.diagnostics}" if known else issue.diagnostics
        else:
            place = f"{issue.expression}: " if issue.expression else ""
            others.append(f"{place}{issue.diagnostics}")
    return Problems(answer.status, of_fields, others)
