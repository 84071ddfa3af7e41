"""The sinks that plugins declare: their names, and that no two share one."""

from __future__ import annotations

import pytest

from fhirpub.plugin_api import EventSink
from fhirpub.plugin_host.sinks import load_event_sinks
from tests.unit.plugin_host.installing import V2, Install, enabling, refusal_of, sinks_named


def loaded(*plugins: str) -> list[EventSink]:
    return [*load_event_sinks(enabling(*plugins))]


@pytest.mark.parametrize("name", ["9-b", "a" * 64])
def test_a_sink_has_its_name(install: Install, name: str) -> None:
    install("one", sinks_named(name), group=V2)

    assert [one.name for one in loaded("one")] == [name]


@pytest.mark.parametrize("name", ["A", "", "-a", "a" * 65, "a_b", 7])
def test_a_name_of_another_form_is_refused(install: Install, name: object) -> None:
    install("one", sinks_named(name), group=V2)

    (line,) = refusal_of(load_event_sinks, "one")

    assert "has a sink whose name is not of lower-case letters, digits and hyphens" in line


def test_the_sinks_of_plugins_are_taken_in_their_order(install: Install) -> None:
    install("one", sinks_named("b", "a" * 64), group=V2)
    install("two", sinks_named("0-x", "c"), group=V2)

    assert [one.name for one in loaded("two", "one")] == ["0-x", "c", "b", "a" * 64]


def test_each_event_loop_gets_sinks_of_its_own(install: Install) -> None:
    install("one", sinks_named("a"), group=V2)

    assert loaded("one")[0] is not loaded("one")[0]


def test_a_name_that_another_sink_has_is_refused(install: Install) -> None:
    install("one", sinks_named("a"), group=V2)
    install("two", sinks_named("a"), group=V2)

    (line,) = refusal_of(load_event_sinks, "one", "two")

    assert line.startswith("plugin two (")
    assert line.endswith("the sink a is already of one")


def test_a_plugin_has_no_two_sinks_of_one_name(install: Install) -> None:
    install("one", sinks_named("a", "b", "a"), group=V2)

    (line,) = refusal_of(load_event_sinks, "one")

    assert line.endswith(": the sink a is already of one")
