"""Which events there are, and what patterns mean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.webhooks.event_types import EventTypes, matches
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT

KNOWN = EventTypes.of([DIAGNOSTIC_REPORT])


def test_the_events_of_enabled_types_and_of_the_service_are_known() -> None:
    assert {"diagnostic_report.created", "diagnostic_report.updated", "endpoint.test"} <= set(
        KNOWN.names
    )


def test_an_event_of_a_type_that_is_not_enabled_is_unknown() -> None:
    assert "diagnostic_report.created" not in EventTypes.of([]).names


def test_a_type_without_published_schemas_is_known_by_its_name() -> None:
    other = replace(DIAGNOSTIC_REPORT, name="CarePlan")

    assert set(EventTypes.of([other]).names) >= {"care_plan.created", "care_plan.updated"}


@pytest.mark.parametrize(
    "pattern",
    ["*", "*.*", "diagnostic_report.*", "*.created", "diagnostic_report.created", "endpoint.*"],
)
def test_a_pattern_that_means_something_is_good(pattern: str) -> None:
    assert KNOWN.problem(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "near"),
    [
        ("diagnostic_report.create", "did you mean diagnostic_report.created?"),
        ("diagnosticreport.*", "did you mean diagnostic_report.*?"),
        ("", "known are "),
        ("**", "known are "),
    ],
)
def test_an_unknown_pattern_is_refused_with_the_nearest(pattern: str, near: str) -> None:
    assert near in KNOWN.problem(pattern)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("*", True),
        ("*.*", True),
        ("a_b.*", True),
        ("*.created", True),
        ("a_b.created", True),
        ("a_b.updated", False),
        ("a.*", False),
        ("*.create", False),
    ],
)
def test_an_event_is_wanted_by_its_halves(pattern: str, *, wanted: bool) -> None:
    assert matches(["x.y", pattern], "a_b.created") is wanted
