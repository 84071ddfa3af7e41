"""Hooks that fail, and hooks that are called one after another: each problem is said once."""

from __future__ import annotations

import pytest

from fhirpub.plugin_api import EventSink, ResourceType
from fhirpub.plugin_host.hooks import PluginHooks
from fhirpub.plugin_host.loader import load
from tests.unit.plugin_host.installing import SINK, V2, Install, declaring, words_of
from tests.unit.plugin_host.test_hooks import WRAPPER

DEEP = """
from fhirpub.plugin_api import hookimpl

@hookimpl
def fhirpub_resource_types():
    return first()

def first():
    return second()

def second():
    return int("x")
"""
BOTH = f"{SINK}\n{declaring()}"
"""A plugin that has two hooks."""


def test_the_place_of_a_failure_is_the_innermost_of_the_plugin(install: Install) -> None:
    install("deep", DEEP)

    (line,) = words_of(["deep"])

    assert "fhirpub_resource_types failed: ValueError: invalid literal" in line
    assert line.endswith("(in trial_dist_deep.py, line 12)")


def test_a_failure_far_from_the_code_of_the_plugin_has_its_place_there(install: Install) -> None:
    source = declaring().replace("return [", "import json; json.loads('{'); return [")
    install("flags", source)

    (line,) = words_of(["flags"])

    assert "JSONDecodeError" in line
    assert line.endswith("(in trial_dist_flags.py, line 6)")


def test_a_hook_that_fails_is_not_said_to_return_nothing_as_well(install: Install) -> None:
    install("deep", DEEP)
    hooks = PluginHooks(["deep"])

    hooks.declared("fhirpub_resource_types", ResourceType)

    assert [len(lines) for lines in hooks.problems.values()] == [1]


@pytest.mark.parametrize(
    ("text", "said"),
    [("'a\\n  b'", "RuntimeError: a b"), ("", "RuntimeError: no message")],
)
def test_what_a_hook_raises_is_one_line(install: Install, text: str, said: str) -> None:
    source = declaring().replace("return [", f"raise RuntimeError({text}); return [")
    install("flags", source)

    (line,) = words_of(["flags"])

    assert f"failed: {said} (in" in line


def test_a_hook_that_leaves_the_process_is_named(install: Install) -> None:
    install("flags", declaring().replace("return [", "raise SystemExit(3); return ["))
    install("goals", declaring().replace("Flag", "Goal"))

    (line,) = words_of(["flags", "goals"])

    assert "fhirpub_resource_types failed: SystemExit: 3" in line


def test_a_wrapper_that_leaves_the_process_is_named(install: Install) -> None:
    install("flags", declaring(), group=V2)
    install("shorter", WRAPPER % "raise SystemExit(3)", group=V2)

    (line,) = words_of(["flags", "shorter"])

    assert line.startswith("plugin shorter ")
    assert "SystemExit: 3" in line


@pytest.mark.parametrize(
    ("yielding", "said"),
    [
        ("1 / 0; found = yield", "ZeroDivisionError: division by zero (in trial_dist_odd.py, "),
        ("raise SystemExit(4); found = yield", "SystemExit: 4 (in trial_dist_odd.py, "),
        ("return []; found = yield", "TypeError: a wrapper must yield once"),
        ("found = yield; yield", "TypeError: a wrapper must yield once"),
        ("found = []", "TypeError: a wrapper must yield once"),
    ],
)
def test_a_wrapper_that_does_not_yield_once_is_named_and_others_are_called(
    install: Install, yielding: str, said: str
) -> None:
    install("flags", declaring(), group=V2)
    install("odd", WRAPPER.replace("found = yield", yielding) % "", group=V2)
    hooks = PluginHooks(["flags", "odd"])

    hooks.declared("fhirpub_resource_types", ResourceType)

    (line,) = hooks.problems["odd"]
    assert f"plugin odd (trial_dist_odd): fhirpub_resource_types failed: {said}" in line
    assert hooks.problems.keys() == {"odd"}


def test_what_others_return_is_kept_if_a_wrapper_fails_before_them(install: Install) -> None:
    install("flags", declaring(), group=V2)
    install("odd", WRAPPER.replace("found = yield", "1 / 0; found = yield") % "", group=V2)
    hooks = PluginHooks(["flags", "odd"])

    found = hooks.declared("fhirpub_resource_types", ResourceType)

    assert [(plugin, one.name) for plugin, one in found] == [("flags", "Flag")]


def test_a_hook_that_returned_nothing_is_said_once_though_another_is_called(
    install: Install,
) -> None:
    given = BOTH % "" + "\n@hookimpl\ndef fhirpub_event_sinks(context):\n    return None\n"
    install("both", given, group=V2)
    hooks = PluginHooks(["both"])

    sinks = hooks.declared("fhirpub_event_sinks", EventSink, context=None)
    types = hooks.declared("fhirpub_resource_types", ResourceType)

    assert (sinks, [one.name for _, one in types]) == ([], ["Flag"])
    (said,) = hooks.problems["both"]
    assert said.endswith("fhirpub_event_sinks returned None, so adds nothing")


def test_what_an_earlier_call_returned_is_not_said_of_a_later_one(install: Install) -> None:
    given = declaring() + "\n@hookimpl\ndef fhirpub_key_provider():\n    return None\n"
    install("flags", given, group=V2)
    hooks = PluginHooks(["flags"])

    assert hooks.call("fhirpub_key_provider") == []
    (found,) = hooks.declared("fhirpub_resource_types", ResourceType)

    assert (found[0], found[1].name) == ("flags", "Flag")
    assert hooks.problems == {}


def test_two_hooks_of_one_plugin_have_their_own_results(install: Install) -> None:
    install("both", BOTH % "Sink('a'), Sink('b')", group=V2)
    hooks = PluginHooks(["both"])

    sinks = hooks.declared("fhirpub_event_sinks", EventSink, context=None)
    types = hooks.declared("fhirpub_resource_types", ResourceType)

    assert [(plugin, sink.name) for plugin, sink in sinks] == [("both", "a"), ("both", "b")]
    assert [(plugin, one.name) for plugin, one in types] == [("both", "Flag")]
    assert hooks.problems == {}


def test_each_problem_of_a_plugin_that_is_imported_has_its_line(install: Install) -> None:
    source = declaring() + "\n@hookimpl\ndef fhirpub_a():\n    pass\n"
    source += "\n@hookimpl\ndef fhirpub_b():\n    pass\n"
    install("flags", source)

    found = PluginHooks(["flags"]).problems["flags"]

    assert [line.split(": ")[1].split()[0] for line in found] == ["fhirpub_a", "fhirpub_b"]


def test_the_names_of_plugins_that_failed_and_were_called_are_kept_apart(install: Install) -> None:
    for name in ("deep", "last"):
        install(name, DEEP)
    install("flags", declaring())

    assert [line.split()[1] for line in words_of(["deep", "flags", "last"])] == ["deep", "last"]


def test_a_plugin_of_version_2_may_have_hooks_of_version_1_only(install: Install) -> None:
    install("flags", declaring(), group=V2)

    assert [*load(["flags"])] == ["Flag"]
