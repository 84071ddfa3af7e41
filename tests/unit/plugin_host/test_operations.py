"""Operations, sinks and sources of codes that plugins declare are checked before they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.errors import PluginError
from fhirpub.plugin_host.loader import load
from fhirpub.plugin_host.operations import load_operations
from fhirpub.plugin_host.sinks import load_event_sinks
from fhirpub.plugin_host.terminology import load_code_sources
from tests.unit.plugin_host.installing import SINK, V2, Install

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
SOURCE = """
from fhirpub.plugin_api import CodeSource, hookimpl

class Source(CodeSource):
    def knows(self, system, code):
        if code == "fails":
            raise RuntimeError("Ashdown")
        if code == "fails too":
            raise KeyError(code)
        return {"yes": True, "no": False, "one": 1}.get(code)

@hookimpl
def fhirpub_terminology(context):
    return [Source()]
"""


def config(*plugins: str) -> Config:
    return Config(plugins=PluginsConfig(enabled=["diagnosticreport", *plugins]))


def words_of(read: Callable[[Config], Any], *plugins: str) -> list[str]:
    with pytest.raises(PluginError) as refusal:
        read(config(*plugins))
    return str(refusal.value).splitlines()


def operations(settings: Config) -> Any:
    return load_operations(settings, load(["diagnosticreport"]))


def test_operations_are_found_by_their_type(install: Install) -> None:
    install("one", OPERATION % "{}, {'code': 'copy-2'}", group=V2)

    found = operations(config("one"))

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

    (line,) = words_of(operations, "one")

    assert line.startswith("plugin one (")
    assert words in line


def test_an_operation_may_have_any_media_type_and_parameters(install: Install) -> None:
    parameters = "(OperationParameter(name='a', type='date', meaning='m'),)"
    changes = f"{{'media_type': 'text/html; charset=utf-8', 'parameters': {parameters}}}"
    install("one", OPERATION % changes, group=V2)

    assert len(operations(config("one"))["DiagnosticReport"]) == 1


def test_an_operation_of_another_plugin_is_refused(install: Install) -> None:
    install("one", OPERATION % "{}", group=V2)
    install("two", OPERATION % "{}", group=V2)

    (line,) = words_of(operations, "one", "two")

    assert line.startswith("plugin two (")
    assert line.endswith("of DiagnosticReport is already of plugin one")


def test_sinks_are_those_of_the_enabled_plugins_in_their_order(install: Install) -> None:
    install("one", SINK % "Sink('b'), Sink('a' * 64)", group=V2)
    install("two", SINK % "Sink('0-x')", group=V2)

    assert [each.name for each in load_event_sinks(config("two", "one"))] == ["0-x", "b", "a" * 64]


@pytest.mark.parametrize("name", ["'A'", "''", "'-a'", "'a' * 65", "'a_b'", "7"])
def test_a_sink_with_another_name_is_refused(install: Install, name: str) -> None:
    install("one", SINK % f"Sink({name})", group=V2)

    (line,) = words_of(load_event_sinks, "one")

    assert "has a sink whose name is not of lower-case letters, digits and hyphens" in line


def test_two_sinks_of_one_name_are_refused(install: Install) -> None:
    install("one", SINK % "Sink('a')", group=V2)
    install("two", SINK % "Sink('a')", group=V2)

    (line,) = words_of(load_event_sinks, "one", "two")

    assert line.startswith("plugin two (")
    assert line.endswith("the sink a is already of one")


def test_a_source_knows_what_it_returns_as_true_or_false(install: Install) -> None:
    install("one", SOURCE, group=V2)

    (knows,) = load_code_sources(config("one"))

    assert [knows("s", code) for code in ("yes", "no", "other", "one")] == [
        True,
        False,
        None,
        None,
    ]


def test_a_source_that_fails_is_logged_once_for_each_place(install: Install) -> None:
    install("one", SOURCE, group=V2)
    (knows,) = load_code_sources(config("one"))

    with capture_logs() as logs:
        found = [knows("s", code) for code in ("fails", "fails", "fails too", "yes")]

    assert found == [None, None, None, True]
    assert [(line["plugin_name"], line["error"]) for line in logs] == [
        ("one", "RuntimeError"),
        ("one", "KeyError"),
    ]
    assert "Ashdown" not in str(logs)


def test_an_operation_on_a_resource_may_follow_references(install: Install) -> None:
    includes = "('DiagnosticReport:result',)"
    install("one", OPERATION % f"{{'on_instance': True, 'includes': {includes}}}", group=V2)

    (found,) = operations(config("one"))["DiagnosticReport"]

    assert found.operation.includes == ("DiagnosticReport:result",)
