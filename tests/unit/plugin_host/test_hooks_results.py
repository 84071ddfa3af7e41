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


@pytest.mark.parametrize("returned", ["None", "7", "{}"])
def test_a_wrapper_that_returns_no_list_is_named(install: Install, returned: str) -> None:
    install("flags", declaring(), group=V2)
    odd = WRAPPER[: WRAPPER.index("    return")] + f"    return {returned}\n"
    install("odd", odd % "", group=V2)
    hooks = PluginHooks(["flags", "odd"])

    assert hooks.call("fhirpub_resource_types") == []
    said = "the wrapper fhirpub_resource_types must return a list of what others returned"
    assert hooks.problems == {"odd": [f"{hooks.sources['odd'].where}: {said}"]}


def test_a_wrapper_that_adds_to_a_tuple_is_named_with_what_it_adds(install: Install) -> None:
    install("flags", declaring(), group=V2)
    odd = WRAPPER[: WRAPPER.index("    return")] + "    return (*found, [7])\n"
    install("odd", odd % "", group=V2)
    hooks = PluginHooks(["flags", "odd"])

    found = hooks.declared("fhirpub_resource_types", ResourceType)

    assert [plugin for plugin, _ in found] == ["flags"]
    said = "fhirpub_resource_types must return a list of ResourceType, not int"
    assert hooks.problems == {"odd": [f"{hooks.sources['odd'].where}: {said}"]}


# What cannot be imported


def problem_of(source: str, install: Install) -> str:
    install("flags", source)
    ((problem,),) = PluginHooks(["flags"]).problems.values()
    return problem


def test_a_plugin_that_python_cannot_read_is_named_with_the_line(install: Install) -> None:
    problem = problem_of("import os\n\nx = = 1\n", install)

    assert "cannot be imported: SyntaxError: invalid syntax" in problem
    assert problem.endswith(" (in trial_dist_flags.py, line 3)")


def test_a_plugin_that_fails_while_it_is_imported_is_named_with_the_line(install: Install) -> None:
    problem = problem_of("x = 1\n1 / 0\n", install)

    assert problem.endswith(
        "cannot be imported: ZeroDivisionError: division by zero (in trial_dist_flags.py, line 2)"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fhirpub_resource_type", "; did you mean fhirpub_resource_types"),
        ("fhirpub_zzz", "; hooks are fhirpub_"),
    ],
)
def test_a_hook_that_there_is_not_is_named_with_those_that_there_are(
    install: Install, name: str, words: str
) -> None:
    source = declaring().replace("def fhirpub_resource_types", f"def {name}")

    assert f"{name} is not a hook{words}" in problem_of(source, install)
