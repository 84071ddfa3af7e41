"""Operations that plugins declare are checked before they are used."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.config.settings import Config
from fhirpub.plugin_host.loader import load
from fhirpub.plugin_host.operations import load_operations
from tests.unit.plugin_host.installing import V2, Install, enabling, refusal_of

OPERATION = """
from fhirpub.plugin_api import Operation, OperationParameter, OperationResult, hookimpl

def run(request):
    return OperationResult(body=b"")

async def later(request):
    return OperationResult(body=b"")

def nothing():
    return None

@hookimpl
def fhirpub_operations():
    given = dict(type="DiagnosticReport", code="print", title="t", description="d",
                 media_type="text/plain", run=run)
    return [Operation(**{**given, **changes}) for changes in [%s]]
"""


def operations(settings: Config) -> Any:
    return load_operations(settings, load(["diagnosticreport"]))


def test_operations_are_found_by_their_type(install: Install) -> None:
    install("one", OPERATION % "{}, {'code': 'copy-2'}", group=V2)

    found = operations(enabling("one"))

    names = [(each.plugin, each.operation.code) for each in found["DiagnosticReport"]]
    assert names == [("one", "print"), ("one", "copy-2")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            "'type': 'DiagnosticReprot'",
            "no enabled plugin registers; did you mean DiagnosticReport",
        ),
        ("'type': 'X'", "which no enabled plugin registers; there are: DiagnosticReport"),
        ("'code': 'Print'", "has a code that is not of lower-case letters, digits and hyphens"),
        ("'code': '2print'", "has a code that is not of lower-case letters"),
        ("'code': 'print-'", "has a code that is not of lower-case letters"),
        ("'code': 7", "has a code that is not of lower-case letters"),
        ("'code': 'register'", "has the code of an operation of the service"),
        ("'code': 'revise'", "has the code of an operation of the service"),
        ("'code': 'validate'", "has the code of an operation of the service"),
        ("'media_type': 'text'", "has a media type that is none: 'text'"),
        ("'media_type': 'text/plain\\n'", "has a media type that is none"),
        (
            "'on_instance': False, 'includes': ('DiagnosticReport:result',)",
            "is about a type, and has no references to follow",
        ),
        ("'run': later", "has a run that is not a function, or is a coroutine"),
        ("'run': nothing", "has a run that is not a function of OperationRequest"),
        ("'run': None", "has a run that is not a function, or is a coroutine"),
        (
            "'parameters': (OperationParameter(name='2', type='string', meaning='m'),)",
            "has a parameter with the name '2', which cannot be one",
        ),
        (
            "'parameters': (OperationParameter(name='a', type='text', meaning='m'),)",
            "has the parameter a, whose type must be one of string, code, boolean, integer, date",
        ),
        (
            "'parameters': (OperationParameter(name='a', type='code', meaning='m'),) * 2",
            "has two parameters of one name",
        ),
    ],
)
def test_an_operation_that_cannot_be_is_refused(
    install: Install, changes: str, words: str
) -> None:
    install("one", OPERATION % f"{{{changes}}}", group=V2)

    (line,) = refusal_of(operations, "one")

    assert line.startswith("plugin one (")
    assert words in line


def test_an_operation_may_have_any_media_type_and_parameters(install: Install) -> None:
    parameters = "(OperationParameter(name='a', type='date', meaning='m'),)"
    changes = f"{{'media_type': 'text/html; charset=utf-8', 'parameters': {parameters}}}"
    install("one", OPERATION % changes, group=V2)

    assert len(operations(enabling("one"))["DiagnosticReport"]) == 1


def test_an_operation_of_another_plugin_is_refused(install: Install) -> None:
    install("one", OPERATION % "{}", group=V2)
    install("two", OPERATION % "{}", group=V2)

    (line,) = refusal_of(operations, "one", "two")

    assert line.startswith("plugin two (")
    assert line.endswith("of DiagnosticReport is already of plugin one")


def test_an_operation_on_a_resource_may_follow_references(install: Install) -> None:
    includes = "('DiagnosticReport:result',)"
    install("one", OPERATION % f"{{'on_instance': True, 'includes': {includes}}}", group=V2)

    (found,) = operations(enabling("one"))["DiagnosticReport"]

    assert found.operation.includes == ("DiagnosticReport:result",)


def test_an_operation_on_a_type_follows_no_references(install: Install) -> None:
    install("one", OPERATION % "{'on_instance': False}", group=V2)

    (found,) = operations(enabling("one"))["DiagnosticReport"]

    assert (found.operation.on_instance, [*found.operation.includes]) == (False, [])


def test_two_plugins_may_have_operations_of_one_type(install: Install) -> None:
    install("one", OPERATION % "{}", group=V2)
    install("two", OPERATION % "{'code': 'copy'}", group=V2)

    found = operations(enabling("one", "two"))["DiagnosticReport"]

    assert [(one.plugin, one.operation.code) for one in found] == [
        ("one", "print"),
        ("two", "copy"),
    ]


def test_an_operation_that_a_plugin_declares_twice_is_refused(install: Install) -> None:
    install("one", OPERATION % "{}, {'title': 'other'}", group=V2)

    (line,) = refusal_of(operations, "one")

    assert line.endswith("operation 'print' of DiagnosticReport is already of plugin one")


def test_all_that_is_wrong_with_a_parameter_is_named(install: Install) -> None:
    parameters = "(OperationParameter(name='2', type='text', meaning='m'),)"
    install("one", OPERATION % f"{{'parameters': {parameters}}}", group=V2)

    name, kind = refusal_of(operations, "one")

    assert "has a parameter with the name '2'" in name
    assert "has the parameter 2, whose type must be one of" in kind


def test_operations_of_two_types_may_have_one_code(install: Install) -> None:
    install("one", OPERATION % "{}, {'type': 'Encounter'}", group=V2)

    found = load_operations(enabling("one"), load(["diagnosticreport", "encounter"]))

    assert {name: len(some) for name, some in found.items()} == {
        "DiagnosticReport": 1,
        "Encounter": 1,
    }
