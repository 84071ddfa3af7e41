"""What is included because of what is included, and how much of it counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.interactions.search import inclusion
from fhirpub.interactions.search.includes import Include
from fhirpub.storage.contract import Version
from tests.panels import result
from tests.unit.interactions.patients.people import NATIONAL, Ward, person
from tests.unit.interactions.search.including import (
    OBSERVATION,
    PERFORMERS,
    REPORTS_OF_RESULTS,
    RESULTS,
    included,
    remarks,
    shown,
    with_included,
)

HAVING = Include(source=OBSERVATION, parameter="has-member", reverse=True)
DERIVED = Include(source=OBSERVATION, parameter="derived-from", reverse=True)


async def panel_of(ward: Ward) -> tuple[Version, Version, Version]:
    """Register a report with a result, and another one that refers to it in two ways."""
    to_first = [{"reference": "Observation/a"}]
    report = await ward.report(
        "R-1",
        person((NATIONAL, "1")),
        result("a"),
        result("b", hasMember=to_first, derivedFrom=to_first),
    )
    second = next(one for one in report.members if b"hasMember" in one.body)
    first = next(one for one in report.members if one is not second)
    return report, first, second


@pytest.mark.parametrize("is_followed", [True, False])
async def test_only_with_iterate_what_refers_to_what_is_included_is_included(
    ward: Ward, *, is_followed: bool
) -> None:
    report, first, second = await panel_of(ward)
    # Only the first result: the report refers to both.
    alone = replace(report, search=b'[["result","%s","Observation"]]' % first.id.encode())

    found = await included(ward, alone, RESULTS, replace(HAVING, iterate=is_followed))

    expected = [first, second] if is_followed else [first]
    assert found == sorted(f"Observation/{one.id}" for one in expected)


async def test_what_refers_to_a_match_in_two_ways_counts_once(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, first, second = await panel_of(ward)
    monkeypatch.setattr(inclusion, "MAX_PAGE_BYTES", len(second.body) + 1)

    _page, found = await with_included(ward, [first], HAVING, DERIVED, REPORTS_OF_RESULTS)

    assert shown(found) == [f"DiagnosticReport/{report.id}", f"Observation/{second.id}"]
    assert remarks(found) == []


async def test_a_page_ends_where_the_parts_of_its_reports_are_large_together(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = [await ward.report(f"R-{one}", person((NATIONAL, f"{one}"))) for one in range(6)]
    monkeypatch.setattr(inclusion, "MAX_PAGE_BYTES", 3 * len(reports[0].parts))

    page, found = await with_included(ward, reports, PERFORMERS)

    assert (len(page.versions), page.more) == (4, True)
    assert len(found.parts) == 4
