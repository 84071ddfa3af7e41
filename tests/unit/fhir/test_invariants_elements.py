"""FHIR's rules about narratives, extensions, attachments, periods and references into itself."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import Issue
from fhirpub.fhir.invariants import broken_invariants
from fhirpub.plugin_api import Entry
from fhirpub.problems import ContentProblem


def issues_of(leading: tuple[str, ...] = (), **elements: Any) -> list[Issue]:
    entry = Entry({"resourceType": "Observation", **elements}, "Observation")
    return [*broken_invariants(entry.resource, entry.rule_targets, entry.place_of, leading)]


def issue_of(**elements: Any) -> Issue:
    (issue,) = issues_of(**elements)
    assert (issue.severity, issue.code) == ("error", "exception")
    return issue


def places(**elements: Any) -> list[str]:
    return [issue.expression for issue in issues_of(**elements)]


def test_a_range_in_reverse_is_refused_in_words_of_its_rule() -> None:
    issue = issue_of(valueRange={"low": {"value": 2}, "high": {"value": 1}})

    assert (issue.diagnostics, issue.details, issue.expression) == (
        "low must not be more than high (rng-2)",
        ContentProblem.INVARIANT_BROKEN,
        "valueRange",
    )


def test_what_follows_a_reference_range_is_compared_all_the_same() -> None:
    first, second = ({"low": {"value": 2}, "high": {"value": 1}} for _ in range(2))

    assert places(referenceRange=[first], valueRange=second) == ["valueRange"]
    assert places(myreferenceRange=[first]) == ["myreferenceRange[0]"]


def test_a_narrative_that_is_not_harmless_is_refused() -> None:
    div = '<div xmlns="http://www.w3.org/1999/xhtml"><script>x</script></div>'

    issue = issue_of(text={"status": "generated", "div": div})

    assert issue.diagnostics.endswith(" (txt-1, txt-2)")
    assert (issue.details, issue.expression) == (ContentProblem.NARRATIVE_INVALID, "text.div")


def test_a_harmless_narrative_breaks_no_rule() -> None:
    div = '<div xmlns="http://www.w3.org/1999/xhtml"><p>good</p></div>'

    assert issues_of(text={"status": "generated", "div": div}) == []


def test_a_narrative_that_is_no_text_is_refused() -> None:
    assert places(text={"div": None}) == ["text.div"]


@pytest.mark.parametrize(
    "extension",
    [
        {"url": "u"},
        {"url": "u", "valueString": "x", "extension": [{"url": "v", "valueCode": "y"}]},
        {"url": "u", "_valueString": {"id": "i"}, "extension": [{"url": "v", "valueCode": "y"}]},
    ],
)
def test_an_extension_has_either_a_value_or_extensions(extension: dict[str, Any]) -> None:
    issue = issue_of(extension=[{"url": "good", "valueCode": "x"}, extension])

    assert (issue.diagnostics, issue.details, issue.expression) == (
        "must have either a value or extensions (ext-1)",
        ContentProblem.INVARIANT_BROKEN,
        "extension[1]",
    )


@pytest.mark.parametrize(
    "extension",
    [
        {"url": "u", "valueString": "x"},
        {"url": "u", "_valueString": {"id": "i"}},
        {"url": "u", "extension": [{"url": "v", "valueCode": "y"}]},
    ],
)
def test_an_extension_may_have_a_value_or_extensions(extension: dict[str, Any]) -> None:
    assert issues_of(extension=[extension]) == []


@pytest.mark.parametrize("extensions", [None, "x", {}, ["x"], [None], [["x"]]])
def test_extensions_of_another_form_break_no_rule(extensions: Any) -> None:
    assert issues_of(extension=extensions) == []


def test_extensions_are_looked_at_wherever_they_stand() -> None:
    assert places(component=[{"code": {"extension": ["x", {"url": "u"}]}}]) == [
        "component[0].code.extension[1]"
    ]


@pytest.mark.parametrize("name", ["contentType", "origin", "who"])
def test_data_stands_beside_what_says_its_form(name: str) -> None:
    assert issues_of(valueAttachment={"data": "eA==", name: "x"}) == []


def test_data_without_its_form_is_refused() -> None:
    issue = issue_of(valueAttachment={"data": "eA==", "title": "x"})

    assert (issue.diagnostics, issue.expression) == (
        "is required beside data (att-1)",
        "valueAttachment.contentType",
    )
    assert issue.details == ContentProblem.INVARIANT_BROKEN


@pytest.mark.parametrize("data", [None, [], {"x": 1}, 7])
def test_data_that_is_no_text_is_none_of_a_document(data: Any) -> None:
    assert issues_of(valueAttachment={"data": data}) == []


def test_a_reference_into_the_resource_leads_to_what_is_there() -> None:
    issue = issue_of(subject={"reference": "#p1"}, leading=("#p2", "p1"))

    assert (issue.diagnostics, issue.details, issue.expression) == (
        "must be # and the id of a contained resource (ref-1)",
        ContentProblem.REFERENCE_WRONG,
        "subject.reference",
    )


@pytest.mark.parametrize("literal", ["#", "#p1", "Patient/1", "urn:uuid:1", "", None, 7, ["#x"]])
def test_a_reference_that_leads_somewhere_or_elsewhere_is_good(literal: Any) -> None:
    assert issues_of(subject={"reference": literal}, leading=("#p1",)) == []


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        ("2026-01-02", "2026-01-01", ["effectivePeriod"]),
        ("2026-01-01T10:00:00.1Z", "2026-01-01T10:00:00Z", ["effectivePeriod"]),
        ("2026-01-01", "2026-01-01", []),
        ("2026-01-01", "2026-01-02", []),
        (20260102, "2026-01-01", []),
        ("2026-01-02", None, []),
    ],
)
def test_a_period_does_not_end_before_it_starts(start: Any, end: Any, found: list[str]) -> None:
    assert places(effectivePeriod={"start": start, "end": end}) == found


def test_a_period_in_reverse_is_refused_in_words_of_its_rule() -> None:
    issue = issue_of(effectivePeriod={"start": "2026-01-02", "end": "2026-01-01"})

    assert issue.diagnostics == "start must not be after end (per-1)"
    assert issue.details == ContentProblem.INVARIANT_BROKEN


@pytest.mark.parametrize("period", [{"end": "2026-01-01"}, {"start": "2026-01-01"}])
def test_a_period_with_one_end_breaks_no_rule(period: dict[str, str]) -> None:
    assert issues_of(effectivePeriod=period) == []


def test_all_that_breaks_a_rule_is_named_at_once() -> None:
    extension = [{"url": "u"}]

    found = places(
        extension=extension,
        subject={"reference": "#x", "extension": extension},
        valueRange={"low": {"value": 2}, "high": {"value": 1}, "extension": extension},
    )

    assert {*found} == {
        *("extension[0]", "subject.reference", "subject.extension[0]"),
        *("valueRange", "valueRange.extension[0]"),
    }
