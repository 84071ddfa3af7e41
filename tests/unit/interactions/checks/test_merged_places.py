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


def test_a_hundred_places_are_named_without_a_count() -> None:
    (merged,) = merge_places(_warning("a", f"x[{number}]") for number in range(100))

    assert len((merged.expression, *merged.also_at)) == 100
    assert merged.diagnostics == "a"


def test_of_one_place_more_the_count_is_named() -> None:
    (merged,) = merge_places(_warning("a", f"x[{number}]") for number in range(101))

    assert merged.diagnostics == "a (and in 1 more places)"


def test_one_issue_with_more_places_than_are_named_is_shortened() -> None:
    one = _warning("a", "x").at(*(f"x[{number}]" for number in range(101)))

    (merged, _other) = merge_places([one, _warning("b", "y")])

    assert merged.diagnostics == "a (and in 1 more places)"


def test_errors_and_warnings_with_the_same_words_are_two_issues() -> None:
    error = Issue.error(ContentProblem.ELEMENT_RECOMMENDED, "a", "x")

    assert merge_places([error, _warning("a", "y")]) == [error, _warning("a", "y")]


def test_without_issues_there_is_none() -> None:
    assert merge_places([]) == []


def test_issues_with_the_same_words_and_different_codes_are_two() -> None:
    one, other = (
        Issue.error(ContentProblem.ELEMENT_RECOMMENDED, "a", "x", code=code)
        for code in ("business-rule", "required")
    )

    assert merge_places([one, other]) == [one, other]


def test_issues_of_two_problems_with_the_same_words_are_two() -> None:
    one = Issue.warning(ContentProblem.RULE_BROKEN, "a", "x", code="invalid")
    other = Issue.warning(ContentProblem.ELEMENT_RECOMMENDED, "a", "x", code="invalid")

    assert merge_places([one, other]) == [one, other]
