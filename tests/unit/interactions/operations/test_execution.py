"""Operations of plugins: their parameters, what they are about, and what they may raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.errors import BrokenRule, InvalidSearch, NotPermitted, SearchTooCostly
from fhirpub.interactions.operations.execution import (
    OperationFailed,
    Subject,
    execute,
    follow_references,
    includes_of,
    read_parameters,
)
from fhirpub.interactions.search import inclusion
from fhirpub.interactions.search.includes import Include, Included
from fhirpub.interactions.versions import Shown
from fhirpub.plugin_api import Operation, OperationParameter, OperationRequest, OperationResult
from fhirpub.plugin_api.operations import OperationRefused, ParameterType, PluginOperation
from tests.panels import result
from tests.unit.interactions.patients.people import NATIONAL, Ward, person

REPORT = "DiagnosticReport"
PAGE = OperationResult(body=b"<p>", styles=("p{}",))


def parameter(name: str, type_: ParameterType, *, required: bool = False) -> OperationParameter:
    return OperationParameter(name=name, type=type_, meaning="-", required=required)


def operation(
    *parameters: OperationParameter,
    run: Callable[[OperationRequest], Any] = lambda _request: PAGE,
    includes: tuple[str, ...] = (),
) -> Operation:
    return Operation(
        type=REPORT,
        code="summary",
        title="-",
        description="-",
        media_type="text/html",
        run=run,
        includes=includes,
        parameters=parameters,
    )


def refusal(given: list[tuple[str, str]], *parameters: OperationParameter) -> list[Any]:
    with pytest.raises(InvalidSearch) as refused:
        read_parameters(operation(*parameters), given)
    return [(one.expression, one.diagnostics, one.details) for one in refused.value.issues]


# Parameters


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("string", "a b", "a b"),
        ("string", "x" * 1_000, "x" * 1_000),
        ("code", "a b", "a b"),
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("integer", "-7", -7),
        ("integer", "999999999", 999_999_999),
        ("date", "2026", "2026"),
        ("date", "2026-11", "2026-11"),
        ("date", "2026-11-20", "2026-11-20"),
    ],
)
def test_a_parameter_has_the_value_of_its_type(
    type_: ParameterType, text: str, value: object
) -> None:
    found = read_parameters(operation(parameter("p", type_)), [("p", text)])

    assert found == {"p": value}
    assert type(found["p"]) is type(value)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("string", "x" * 1_001),
        ("string", "a\nb"),
        ("string", "a\x7f"),
        ("code", " a"),
        ("code", "a  b"),
        ("boolean", "True"),
        ("boolean", "1"),
        ("integer", "+7"),
        ("integer", "7.0"),
        ("integer", "1234567890"),
        ("date", "2026-1"),
        ("date", "2026-11-20T10:00:00Z"),
        ("date", "26"),
        ("date", "2026-13"),
        ("date", "2026-02-30"),
    ],
)
def test_another_value_is_refused(type_: ParameterType, text: str) -> None:
    assert refusal([("p", text)], parameter("p", type_)) == [
        ("p", f"must be of the FHIR type {type_}", "parameter-invalid")
    ]


def test_parameters_of_the_answer_and_empty_ones_are_left_out() -> None:
    given = [("_format", "json"), ("_pretty", "true"), ("p", ""), ("q", "1")]

    found = read_parameters(operation(parameter("p", "code"), parameter("q", "integer")), given)

    assert found == {"q": 1}


def test_a_parameter_that_is_not_known_is_named_with_those_that_are() -> None:
    known = parameter("lang", "code"), parameter("size", "integer")

    assert refusal([("zzz", "1")], *known) == [
        (
            "zzz",
            "is no parameter of this operation; the parameters are lang, size",
            "parameter-unknown",
        )
    ]
    ((_name, rule, _details),) = refusal([("lange", "1")], *known)
    assert "did you mean lang" in rule
    ((_name, none, _details),) = refusal([("zzz", "1")])
    assert none == "is no parameter of this operation; there are none"


@pytest.mark.parametrize("given", [[], [("p", "")]])
def test_a_required_parameter_must_have_a_value(given: list[tuple[str, str]]) -> None:
    assert refusal(given, parameter("p", "code", required=True)) == [
        ("p", "is required", "parameter-invalid")
    ]


def test_a_parameter_must_not_be_repeated() -> None:
    assert refusal([("p", "a"), ("p", "a")], parameter("p", "code")) == [
        ("p", "must not be repeated", "parameter-invalid")
    ]
    assert read_parameters(operation(parameter("p", "code")), [("p", "a"), ("p", "")]) == {
        "p": "a"
    }


def test_all_that_is_wrong_is_named() -> None:
    found = refusal(
        [("x", "1"), ("p", "yes")],
        parameter("p", "boolean"),
        parameter("q", "code", required=True),
    )

    assert [name for name, _rule, _details in found] == ["x", "p", "q"]


# What references lead to


def may(*denied: str) -> Any:
    return lambda _letter, types: not any(one in denied for one in types)


RESULTS = operation(includes=("DiagnosticReport:result",))


def test_references_are_those_of_the_type_of_the_operation(ward: Ward) -> None:
    both = operation(includes=("DiagnosticReport:result", "Observation:specimen"))

    assert includes_of(both, ward.context) == [Include(source=REPORT, parameter="result"), None]


async def test_what_references_lead_to_is_returned(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")), result("a"))

    found = await follow_references(RESULTS, report, may=may(), **ward.named)
    none = await follow_references(operation(), report, may=may(), **ward.named)

    assert [one.id for one in found.versions] == [one.id for one in report.members]
    assert none == Included([], [], ())


async def test_all_that_references_lead_to_must_be_readable(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")), result("a"))

    with pytest.raises(NotPermitted):
        await follow_references(RESULTS, report, may=may("Observation"), **ward.named)
    nothing = await follow_references(operation(), report, may=may("Observation"), **ward.named)
    assert nothing.versions == []


@pytest.mark.parametrize("denied", ["Observation", "Organization"])
async def test_one_denied_type_of_two_is_enough(ward: Ward, denied: str) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")), result("a"))
    both = operation(includes=("DiagnosticReport:result", "DiagnosticReport:performer"))

    with pytest.raises(NotPermitted):
        await follow_references(both, report, may=may(denied), **ward.named)


async def test_nothing_may_be_missing(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inclusion, "MAX_INCLUDED", 1)
    report = await ward.report("R-1", person((NATIONAL, "1")), result("a"), result("b"))

    with pytest.raises(SearchTooCostly) as refused:
        await follow_references(RESULTS, report, may=may(), **ward.named)

    (issue,) = refused.value.issues
    assert issue.diagnostics == "the resource refers to more than an operation may read"


# What an operation is given, and what it returns


async def test_an_operation_is_given_the_resource_with_what_belongs_to_it(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")), result("a"))
    (member,) = report.members
    given: list[OperationRequest] = []

    def run(request: OperationRequest) -> OperationResult:
        given.append(request)
        return PAGE

    included = Included([Shown.of(member)], [(report.parts, frozenset({"organization"}))])
    subject = Subject(report, included)

    found = execute(ward.context, PluginOperation("p", operation(run=run)), subject, {"n": 1})

    (request,) = given
    assert found is PAGE
    assert request.resource["id"] == report.id
    assert "data" not in request.resource["presentedForm"][0]
    assert request.parameters == {"n": 1}
    assert request.fhir_url == ward.context.fhir_url
    kinds = {name.partition("/")[0]: one["id"] for name, one in request.included.items()}
    assert kinds["Observation"] == member.id
    assert kinds.keys() == {"Observation", "Organization"}


async def test_a_part_that_was_left_out_is_left_out_for_an_operation_too(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    given: list[OperationRequest] = []

    def run(request: OperationRequest) -> OperationResult:
        given.append(request)
        return PAGE

    included = Included([], [(report.parts, frozenset({"organization", "practitioner"}))])
    execute(ward.context, PluginOperation("p", operation(run=run)), Subject(report, included), {})

    (name,) = given[0].included
    assert name.startswith("Organization/")


def test_an_operation_on_a_type_is_given_no_resource(ward: Ward) -> None:
    given: list[OperationRequest] = []

    def run(request: OperationRequest) -> OperationResult:
        given.append(request)
        return PAGE

    execute(ward.context, PluginOperation("p", operation(run=run)), Subject(), {})

    assert (given[0].resource, given[0].included) == ({}, {})


def test_an_operation_that_refuses_is_refused_in_its_words(ward: Ward) -> None:
    def run(_request: OperationRequest) -> OperationResult:
        raise OperationRefused("the report has no results")

    with pytest.raises(BrokenRule) as refused:
        execute(ward.context, PluginOperation("p", operation(run=run)), Subject(), {})

    (issue,) = refused.value.issues
    assert (issue.diagnostics, issue.details) == ("the report has no results", "operation-refused")


@pytest.mark.parametrize("problem", [ValueError("secret"), KeyError("secret"), None])
def test_an_operation_that_fails_is_named_with_its_plugin(
    ward: Ward, problem: Exception | None
) -> None:
    def run(_request: OperationRequest) -> Any:
        if problem is not None:
            raise problem
        return b"<p>"

    with pytest.raises(OperationFailed) as failed:
        execute(ward.context, PluginOperation("pages", operation(run=run)), Subject(), {})

    assert str(failed.value) == (
        "the operation $summary of the plugin pages failed: ask the operator"
    )


async def test_the_size_of_a_subject_is_that_of_all_of_it(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")), result("a"))
    (member,) = report.members
    parts = (report.parts, frozenset({"organization"}))

    assert Subject().size == 0
    assert Subject(report).size == len(report.body)
    assert Subject(report, Included([Shown.of(member)], [parts])).size == (
        len(report.body) + len(member.body) + len(report.parts)
    )


async def test_the_log_names_the_plugin_that_returned_something_else(ward: Ward) -> None:
    broken = PluginOperation("pages", operation(run=lambda _request: b"<p>"))

    with capture_logs() as lines, pytest.raises(OperationFailed):
        execute(ward.context, broken, Subject(), {})

    (line,) = lines
    assert (line["plugin_name"], line["code"], line["log_level"]) == ("pages", "summary", "error")
