"""One issue for all places of the same problem."""

from __future__ import annotations

from fhirpub.errors import Issue
from fhirpub.interactions.checks.merged_places import merge_places
from fhirpub.problems import ContentProblem


def _warning(text: str, at: str) -> Issue:
    return Issue.warning(ContentProblem.ELEMENT_RECOMMENDED, text, at)


def test_issues_that_differ_only_in_their_places_are_one() -> None:
    merged = merge_places([_warning("a", "x"), _warning("b", "y"), _warning("a", "z")])

    assert merged == [_warning("a", "x").at("x", "z"), _warning("b", "y")]


def test_what_was_merged_before_keeps_all_of_its_places() -> None:
    once = merge_places([_warning("a", "x"), _warning("a", "y")])

    merged = merge_places([*once, _warning("a", "z")])

    assert merged == [_warning("a", "x").at("x", "y", "z")]


def test_an_issue_names_a_hundred_places_and_counts_the_others() -> None:
    (merged,) = merge_places(_warning("a", f"x[{number}]") for number in range(103))

    assert len((merged.expression, *merged.also_at)) == 100
    assert merged.diagnostics == "a (and in 3 more places)"
