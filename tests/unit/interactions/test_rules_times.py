"""Times of elements that repeat: each is converted, and each that cannot be is named."""

from __future__ import annotations

from typing import Any

from fhirpub.interactions import rules
from tests.unit.interactions.updating import CONTEXT


def times_in(*started: Any) -> tuple[list[Any], list[tuple[str, str]]]:
    """Return what becomes of the times of some series, and the places of issues."""
    resource = {"series": [{"started": one} if one else {} for one in started]}
    issues = [*rules.times_as_utc(resource, ["series.started"], CONTEXT)]
    return (
        [one.get("started") for one in resource["series"]],
        [(issue.severity, issue.expression) for issue in issues],
    )


def test_a_time_behind_one_in_utc_is_converted() -> None:
    found, issues = times_in(
        "2026-11-20T10:00:00Z", "2026-11-20", None, 5, "2026-11-20T10:00:00+02:00"
    )

    assert found == ["2026-11-20T10:00:00Z", "2026-11-20", None, 5, "2026-11-20T08:00:00Z"]
    assert issues == []


def test_each_time_that_utc_cannot_have_is_named_and_others_are_converted() -> None:
    too_early = "0001-01-01T00:00:00+02:00"

    found, issues = times_in(too_early, "2026-11-20T10:00:00+02:00", too_early)

    assert found == [too_early, "2026-11-20T08:00:00Z", too_early]
    assert issues == [("error", "series[0].started"), ("error", "series[2].started")]


def test_each_time_without_an_offset_is_remarked() -> None:
    _found, issues = times_in("2026-11-20T10:00:00", "2026-11-20T11:00:00")

    assert issues == [("warning", "series[0].started"), ("warning", "series[1].started")]
