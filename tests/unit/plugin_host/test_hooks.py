"""Hooks are called in pluggy's order, and what fails in one is named by its plugin."""

from __future__ import annotations

import pytest

from fhirpub.errors import PluginError
from fhirpub.plugin_api import ResourceType
from fhirpub.plugin_host.hooks import HOOKS, PluginHooks, hooks_of, since_version
from fhirpub.plugin_host.loader import load
from fhirpub.plugin_host.sources import available
from tests.unit.plugin_host.installing import V2, Install, declaring

SINKS = """
from fhirpub.plugin_api import EventSink, hookimpl

class Nowhere(EventSink):
    name = "nowhere"
    async def send(self, event):
        pass

@hookimpl
def fhirpub_event_sinks(context):
    return [Nowhere()]
"""
WRAPPER = """
from dataclasses import replace
from fhirpub.plugin_api import hookimpl

@hookimpl(wrapper=True)
def fhirpub_resource_types():
    found = yield
    %s
    return [[replace(one, summary=("code",)) for one in types] for types in found]
"""


def named(name: str, options: str = "") -> str:
    source = declaring().replace("Flag", name)
    return source.replace("@hookimpl\n", f"@hookimpl{options}\n")


def test_hooks_are_called_first_to_last_and_else_as_enabled(install: Install) -> None:
    install("flags", named("Flag", "(trylast=True)"))
    install("goals", named("Goal"))
    install("lists", named("List"))
    install("tasks", named("Task", "(tryfirst=True)"))

    names = ["flags", "lists", "goals", "tasks"]

    assert PluginHooks(names).owners_of("fhirpub_resource_types") == (
        "tasks",
        "lists",
        "goals",
        "flags",
    )
    assert list(load(names)) == ["Task", "List", "Goal", "Flag"]


def test_a_wrapper_changes_what_others_return(install: Install) -> None:
    install("flags", declaring(), group=V2)
    install("shorter", WRAPPER % "", group=V2)

    hooks = PluginHooks(["flags", "shorter"])
    found = hooks.declared("fhirpub_resource_types", ResourceType)

    assert [one.summary for _, one in found] == [("code",)]
    assert hooks.problems == {}


def test_a_wrapper_that_fails_is_named(install: Install) -> None:
    install("flags", declaring(), group=V2)
    install("shorter", WRAPPER % "1 / 0", group=V2)

    with pytest.raises(PluginError, match=r"plugin shorter .* ZeroDivisionError.*line 8"):
        load(["flags", "shorter"])


def test_one_hook_that_fails_does_not_keep_others_from_being_called(install: Install) -> None:
    install("flags", declaring())
    install("goals", declaring().replace("return [", "return [1 / 0, "))

    hooks = PluginHooks(["goals", "flags"])
    found = hooks.declared("fhirpub_resource_types", ResourceType)

    assert [plugin for plugin, _ in found] == ["flags"]
    assert list(hooks.problems) == ["goals"]


@pytest.mark.parametrize("group", ["fhirpub.plugins", "fhirpub.plugins.v1"])
def test_a_plugin_of_version_1_goes_on_working(install: Install, group: str) -> None:
    install("flags", declaring(), group=group)

    assert list(load(["flags"])) == ["Flag"]
    assert [one.api for one in available() if one.name == "flags"] == [1]


def test_of_a_plugin_made_for_two_versions_the_newer_one_is_loaded(install: Install) -> None:
    install("flags", declaring(), distribution="old")
    install("flags", declaring().replace("Flag", "Goal"), distribution="new", group=V2)

    assert list(load(["flags"])) == ["Goal"]


def test_a_hook_of_version_2_needs_the_group_of_version_2(install: Install) -> None:
    install("stream", SINKS)

    with pytest.raises(PluginError, match=r"give its entry point the group fhirpub\.plugins\.v2"):
        load(["stream"])


def test_hooks_beyond_resource_types_are_listed(install: Install) -> None:
    install("stream", SINKS, group=V2)

    (source,) = [one for one in available() if one.name == "stream"]

    assert hooks_of(source) == ("fhirpub_event_sinks",)
    assert load(["stream"]) == {}


def test_every_hook_has_a_documentation_and_a_version() -> None:
    for name, hook in HOOKS.items():
        assert hook.__doc__
        assert "Returns:" in hook.__doc__ or "None" in str(hook.__annotations__["return"])
        assert since_version(name) in (1, 2)
