"""What interactions work with follows from the settings and the plugins."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.app import context as made
from fhirpub.app.context import create_context, ignore_new_events, name_plugins_of
from fhirpub.config.patients import PatientsConfig
from fhirpub.config.settings import (
    Config,
    FhirConfig,
    PluginsConfig,
    TerminologyConfig,
    TypeConfig,
)
from fhirpub.errors import ConfigurationError, PluginError
from fhirpub.interactions.context import Context
from fhirpub.plugin_host.loader import load
from fhirpub.testing.clock import HandClock

PERSONS = "urn:example:persons"


@pytest.fixture(scope="module")
def context() -> Context:
    config = Config(
        fhir=FhirConfig(default_timezone="America/Lima"),
        patients=PatientsConfig(person_systems=[PERSONS]),
        terminology=TerminologyConfig(assume=["urn:example:codes"]),
    )
    return create_context(config, clock=HandClock(now=7))


def test_all_types_of_the_plugins_are_searched_and_patients_too(context: Context) -> None:
    assert {*context.types} <= {*context.searched}
    assert "Patient" in context.searched


def test_searches_and_times_are_in_the_zone_of_the_settings(context: Context) -> None:
    assert str(context.default_zone) == "America/Lima"


def test_every_index_knows_which_identifiers_stand_for_persons(context: Context) -> None:
    assert {tuple(one.person_systems) for one in context.searched.values()} == {(PERSONS,)}


def test_codes_of_the_systems_that_the_settings_assume_are_taken_for_correct(
    context: Context,
) -> None:
    assert context.terminology.assumed == {"urn:example:codes"}


def test_a_context_has_the_clock_and_reaches_no_store(context: Context) -> None:
    assert context.clock() == 7
    assert getattr(context, "resources", 0) is None
    assert context.added is ignore_new_events


def test_only_types_with_repeating_parts_are_revisable(context: Context) -> None:
    assert {*context.revisable} == {name for name, one in context.types.items() if one.repeating}


@pytest.mark.parametrize("zone", ["Nowhere/Town", "../etc/passwd", ""])
def test_a_zone_that_does_not_exist_is_named(zone: str) -> None:
    with pytest.raises(ConfigurationError, match=r"\[fhir\] default_timezone: there is no zone"):
        made._zone(zone)


def configured(**settings: Any) -> Any:
    return SimpleNamespace(of_type=lambda _name: TypeConfig(**settings))


def test_elements_of_the_settings_are_updatable_beside_those_of_the_type() -> None:
    declared = load(["diagnosticreport"])["DiagnosticReport"]

    extended = made._with_updatable(configured(updatable=["conclusionCode"]), declared)

    assert extended.updatable == declared.updatable | {"conclusionCode"}
    assert made._with_updatable(configured(), declared) is declared


def test_an_element_that_cannot_be_updated_is_refused_with_its_group() -> None:
    declared = load(["diagnosticreport"])["DiagnosticReport"]

    with pytest.raises(ConfigurationError, match=r"^\[diagnosticreport\] updatable: "):
        made._with_updatable(configured(updatable=["subject"]), declared)


@pytest.mark.parametrize(
    ("setting", "declares", "is_refused"),
    [
        ("clinical", False, True),
        ("clinical", True, False),
        ("none", False, False),
    ],
)
def test_a_flow_of_states_needs_a_type_that_declares_one(
    setting: str, *, declares: bool, is_refused: bool
) -> None:
    types: Any = {"Flag": SimpleNamespace(state_flow={"a": "b"} if declares else {})}
    config: Any = SimpleNamespace(of_type=lambda _name: SimpleNamespace(state_flow=setting))

    if is_refused:
        with pytest.raises(ConfigurationError, match=r"\[flag\] state_flow: the type declares"):
            made._check_state_flows(config, types)
    else:
        made._check_state_flows(config, types)


@pytest.mark.parametrize("names", [["guess"], ["subject", "guess"], ["guess", "subject"]])
def test_a_reference_that_no_search_includes_is_refused_with_its_plugin(
    context: Context, names: list[str]
) -> None:
    operation = SimpleNamespace(
        code="print",
        type="DiagnosticReport",
        includes=tuple(f"DiagnosticReport:{name}" for name in names),
    )
    declared: Any = SimpleNamespace(plugin="printer", operation=operation)
    changed = replace(context, operations={"DiagnosticReport": [declared]})

    with pytest.raises(PluginError, match=r"plugin printer: operation 'print' follows \S+guess, "):
        made._check_includes(changed)


def test_each_reference_that_no_search_includes_is_refused(context: Context) -> None:
    operation = SimpleNamespace(
        code="print",
        type="DiagnosticReport",
        includes=("DiagnosticReport:one", "DiagnosticReport:two"),
    )
    declared: Any = SimpleNamespace(plugin="printer", operation=operation)
    changed = replace(context, operations={"DiagnosticReport": [declared]})

    with pytest.raises(PluginError) as refused:
        made._check_includes(changed)

    assert [line.split()[5] for line in str(refused.value).splitlines()] == [
        "DiagnosticReport:one,",
        "DiagnosticReport:two,",
    ]


def named(monkeypatch: pytest.MonkeyPatch, *modules: str, environment: str = "sandbox") -> Any:
    """Return what faults are named by, if plugins p0, p1 and so on are of modules."""
    found: list[Any] = []
    sources = [
        SimpleNamespace(name=f"p{number}", module=module) for number, module in enumerate(modules)
    ]
    monkeypatch.setattr(
        made, "available", lambda: [*sources, SimpleNamespace(name="x", module="x")]
    )
    monkeypatch.setattr(
        made,
        "name_plugins",
        lambda names, shows_tracebacks: found.append((names, shows_tracebacks)),
    )
    enabled = [one.name for one in sources]
    name_plugins_of(replace(PluginsConfig(enabled=enabled), environment=environment))  # type: ignore[arg-type]
    return found[0]


def test_a_fault_names_its_plugin_by_the_package_if_that_has_one_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names, shows = named(monkeypatch, "one.plugin", "two.a", "two.b")

    assert names == {"one": "p0", "two.a": "p1", "two.b": "p2"}
    assert shows is False


@pytest.mark.parametrize(("environment", "shows"), [("development", True), ("production", False)])
def test_tracebacks_are_shown_in_development_alone(
    monkeypatch: pytest.MonkeyPatch, environment: str, *, shows: bool
) -> None:
    assert named(monkeypatch, "one", environment=environment)[1] is shows
