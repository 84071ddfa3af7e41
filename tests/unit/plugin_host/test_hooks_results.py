"""What hooks return is checked, and what is wrong with it names the plugin and its place."""

from __future__ import annotations

import pytest

from fhirpub.errors import PluginError
from fhirpub.plugin_api import ResourceType
from fhirpub.plugin_host.hooks import PluginHooks
from tests.unit.plugin_host.installing import MODULE, V2, Install, declaring
from tests.unit.plugin_host.test_hooks import WRAPPER

RETURNING = """
from fhirpub.plugin_api import hookimpl

@hookimpl
def fhirpub_resource_types():
    return %s
"""


@pytest.mark.parametrize(
    ("returned", "kind"),
    [("[7]", "int"), ("(None,)", "NoneType"), ("7", "int"), ("'Flag'", "str"), ("{}", "dict")],
)
def test_what_is_no_list_of_the_kind_is_a_problem_of_its_plugin(
    install: Install, returned: str, kind: str
) -> None:
    install("flags", RETURNING % returned)
    hooks = PluginHooks(["flags"])

    found = hooks.declared("fhirpub_resource_types", ResourceType)

    said = f"fhirpub_resource_types must return a list of ResourceType, not {kind}"
    where = hooks.sources["flags"].where
    assert found == []
    assert hooks.problems == {"flags": [f"{where}: {said}"]}


def test_of_a_list_with_one_stranger_nothing_is_taken(install: Install) -> None:
    given = declaring().replace("return [", "return [7, ")
    install("flags", given)
    hooks = PluginHooks(["flags"])

    assert hooks.declared("fhirpub_resource_types", ResourceType) == []
    assert [*hooks.problems] == ["flags"]


@pytest.mark.parametrize("returned", ["[]", "()"])
def test_an_empty_list_declares_nothing_and_is_right(install: Install, returned: str) -> None:
    install("flags", RETURNING % returned)
    hooks = PluginHooks(["flags"])

    assert hooks.declared("fhirpub_resource_types", ResourceType) == []
    assert hooks.problems == {}


def test_a_hook_that_returns_nothing_is_a_problem(install: Install) -> None:
    install("flags", RETURNING % "None")
    hooks = PluginHooks(["flags"])

    assert hooks.declared("fhirpub_resource_types", ResourceType) == []
    where = hooks.sources["flags"].where
    said = f"{where}: fhirpub_resource_types returned None, so adds nothing"
    assert hooks.problems == {"flags": [said]}


def test_each_result_has_its_plugin(install: Install) -> None:
    install("flags", declaring())
    install("goals", declaring().replace("Flag", "Goal"))
    hooks = PluginHooks(["goals", "flags"])

    found = hooks.declared("fhirpub_resource_types", ResourceType)

    assert [(plugin, one.name) for plugin, one in found] == [("goals", "Goal"), ("flags", "Flag")]


def test_what_a_wrapper_makes_is_of_the_wrapper_and_the_rest_of_others(install: Install) -> None:
    more = WRAPPER.replace("return [[replace", "return [*found, *[[replace") + "]"
    more = more.replace("for types in found]\n]", "for types in found]]\n")
    install("flags", declaring(), group=V2)
    install("more", more % "", group=V2)
    hooks = PluginHooks(["flags", "more"])

    found = hooks.call("fhirpub_resource_types")

    assert [plugin for plugin, _types in found] == ["flags", "more"]


def test_a_wrapper_that_returns_no_list_is_no_problem_of_the_call(install: Install) -> None:
    install("flags", declaring(), group=V2)
    odd = WRAPPER[: WRAPPER.index("    return")] + "    return ()\n"
    install("odd", odd % "", group=V2)
    hooks = PluginHooks(["flags", "odd"])

    assert hooks.call("fhirpub_resource_types") == []
    assert hooks.problems == {}


def test_all_problems_are_raised_at_once_one_a_line(install: Install) -> None:
    install("flags", RETURNING % "7")
    install("goals", MODULE % "8")
    hooks = PluginHooks(["flags", "goals"])
    hooks.declared("fhirpub_resource_types", ResourceType)

    with pytest.raises(PluginError) as refused:
        hooks.require_no_problems()

    assert [line.split()[1] for line in str(refused.value).splitlines()] == ["flags", "goals"]
