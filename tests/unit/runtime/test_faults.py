"""What is logged of an exception: its place and its plugin, and its text only for developers."""

from __future__ import annotations

import pytest

from fhirpub.runtime.faults import name_plugins, where

pytestmark = pytest.mark.usefixtures("faults_as_before")

SECRET = "Verraeterisch"


def fault(code: str, *, module: str = "acme_flags.rules") -> Exception:
    """Return what code of a module raises."""
    try:
        exec(compile(code, "rules.py", "exec"), {"__name__": module})
    except Exception as problem:  # noqa: BLE001
        return problem
    raise AssertionError("nothing was raised")


def test_without_plugins_a_fault_has_its_type_and_its_place() -> None:
    name_plugins({}, shows_tracebacks=False)

    found = where(fault(f"\n{{}}['{SECRET}']"))

    assert found == {"error": "KeyError", "place": "rules.py:2"}


@pytest.mark.parametrize(
    ("module", "plugin"),
    [
        ("acme_flags", "flags"),
        ("acme_flags.rules.deep", "flags"),
        ("acme_flags_of_others", None),
        ("acme.goals.rules", "goals"),
        ("acme.plans", "plans"),
        ("acme", None),
    ],
)
def test_a_fault_names_the_plugin_whose_module_it_is_in(module: str, plugin: str | None) -> None:
    names = {"acme_flags": "flags", "acme.goals": "goals", "acme.plans": "plans"}
    name_plugins(names, shows_tracebacks=False)

    assert where(fault("1 / 0", module=module)).get("plugin") == plugin


def test_a_fault_names_the_plugin_of_the_closest_package() -> None:
    name_plugins({"acme": "all", "acme.plans": "plans"}, shows_tracebacks=False)

    assert where(fault("1 / 0", module="acme.plans.rules"))["plugin"] == "plans"
    assert where(fault("1 / 0", module="acme.goals"))["plugin"] == "all"


def test_a_fault_below_a_plugin_is_that_of_the_plugin() -> None:
    name_plugins({"acme_flags": "flags"}, shows_tracebacks=False)

    found = where(fault("import json\njson.loads('{')"))

    assert (found["plugin"], found["error"]) == ("flags", "JSONDecodeError")


def test_a_fault_in_a_plugin_that_another_one_calls_is_that_of_the_one_called() -> None:
    name_plugins({"acme_flags": "flags", "acme.plans": "plans"}, shows_tracebacks=False)
    inner = "exec(compile('1 / 0', 'rules.py', 'exec'), {'__name__': 'acme.plans'})"

    assert where(fault(inner))["plugin"] == "plans"


def test_a_traceback_has_the_causes_first_and_each_text() -> None:
    name_plugins({}, shows_tracebacks=True)
    first = f"{{}}['{SECRET}']"
    code = f"try:\n    {first}\nexcept KeyError as one:\n    raise ValueError('two') from one"

    lines = where(fault(code))["traceback"]

    assert lines.index(f"KeyError: '{SECRET}'") < lines.index("which led to:")
    assert lines[-1] == "ValueError: two"
    assert any(line.startswith("rules.py:2 in <module>") for line in lines)


@pytest.mark.parametrize(
    ("ending", "shows_first"), [("", True), (" from None", False), (" from OSError('o')", False)]
)
def test_a_traceback_has_what_python_itself_shows_of_causes(
    ending: str, *, shows_first: bool
) -> None:
    name_plugins({}, shows_tracebacks=True)
    code = f"try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ValueError('two'){ending}"

    lines = where(fault(code))["traceback"]

    assert any("ZeroDivisionError" in line for line in lines) is shows_first
    assert ("OSError: o" in lines) is ("OSError" in ending)
    assert lines[-1] == "ValueError: two"


def test_a_traceback_has_five_exceptions_at_most() -> None:
    name_plugins({}, shows_tracebacks=True)
    raising = "raise ValueError('0')"
    for number in range(1, 8):
        inner = raising.replace("\n", "\n    ")
        raising = f"try:\n    {inner}\nexcept ValueError:\n    raise ValueError('{number}')"

    lines = where(fault(raising))["traceback"]

    found = [line for line in lines if line.startswith("ValueError: ")]
    assert found == [f"ValueError: {number}" for number in (3, 4, 5, 6, 7)]


def test_a_traceback_is_bounded() -> None:
    name_plugins({}, shows_tracebacks=True)
    code = "def again(n):\n    return again(n + 1)\nagain(0)"

    assert len(where(fault(code))["traceback"]) < 50
