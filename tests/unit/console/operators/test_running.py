"""Operations run as the operator of the session, and what is wrong goes to its field."""

from __future__ import annotations

import orjson
import pytest

from fhirpub.administration.operation import Operation
from fhirpub.console.operators.catalogue import by_command
from fhirpub.console.operators.running import NONE, ask, problems_of, run
from fhirpub.errors import (
    ConfigurationError,
    FhirpubError,
    InvalidContent,
    Issue,
    NoSuchRecord,
    NotPossible,
)
from fhirpub.problems import OperationProblem
from tests.unit.administration.office import Office
from tests.unit.console.operators.desk import OPERATOR, a_visit

ADD = by_command("client add")


def an_issue(text: str, place: str) -> Issue:
    return Issue.error(OperationProblem.FIELD_INVALID, text, place)


async def test_an_operation_runs_as_the_operator_of_the_session(office: Office) -> None:
    added = await run(a_visit(office), "tenant add", name="Lab")

    entries = (await office.store.unsealed_audit(limit=9)).entries
    last = orjson.loads(entries[-1].records)
    assert last["what"] == [f"Tenant/{added['id']}"]
    assert (last["user"], last["address"], last["request"], last["environment"]) == (
        OPERATOR.subject,
        "192.0.2.9",
        "r-9",
        "sandbox",
    )


def test_problems_are_sorted_to_the_fields_that_they_are_about() -> None:
    refusal = InvalidContent(
        [
            an_issue("is wrong", "name"),
            an_issue("too", "name"),
            an_issue("of a part", "jwks.keys[0].kid"),
            an_issue("of another", "scopes[1]"),
            an_issue("elsewhere", "nonsense"),
            an_issue("nowhere", ""),
        ]
    )

    problems = problems_of(refusal, ADD)

    assert problems.status == 400
    assert problems.of_fields == {
        "name": "is wrong; too",
        "jwks": "of a part",
        "scopes": "of another",
    }
    assert problems.others == ["nonsense: elsewhere", "nowhere"]


@pytest.mark.parametrize(
    ("refusal", "status", "others"),
    [
        (ConfigurationError("one\ntwo"), 422, ["one", "two"]),
        (NotPossible("no"), 409, ["no"]),
        (NoSuchRecord("client", "x"), 404, ["there is no client x"]),
    ],
)
def test_a_refusal_of_all_is_about_no_field(
    refusal: FhirpubError, status: int, others: list[str]
) -> None:
    problems = problems_of(refusal, ADD)

    assert (problems.status, problems.of_fields, problems.others) == (status, {}, others)


async def test_what_reads_waits_until_it_has_what_it_needs(office: Office) -> None:
    answer = await ask(a_visit(office), by_command("client show"))

    assert (answer.result, answer.problems) == (None, NONE)


async def test_what_reads_gets_the_parameters_of_the_query(office: Office, lab: str) -> None:
    answer = await ask(a_visit(office, tenant=lab), by_command("tenant show"))

    assert answer.result["id"] == lab
    assert answer.texts == {"tenant": [lab]}


async def test_further_parameters_count_before_those_of_the_query(
    office: Office, lab: str
) -> None:
    answer = await ask(a_visit(office, tenant="guess"), by_command("tenant show"), tenant=lab)

    assert answer.result["id"] == lab


async def test_a_refusal_of_what_reads_is_among_its_problems(office: Office) -> None:
    operation: Operation = by_command("tenant show")

    answer = await ask(a_visit(office, tenant="guess"), operation)

    assert answer.result is None
    assert answer.problems.status == 404
    assert answer.problems.others == ["there is no tenant guess"]


async def test_what_is_optional_need_not_be_asked_for(office: Office, lab: str) -> None:
    answer = await ask(a_visit(office), by_command("client list"))

    assert any(not one.required for one in answer.operation.parameters)
    assert (answer.result, answer.problems) == ([], NONE)


async def test_an_operation_does_not_run_without_what_it_requires(office: Office) -> None:
    answer = await ask(a_visit(office), by_command("deliveries list"))

    assert (answer.result, answer.problems) == (None, NONE)
