"""What was corrected in a body: the first places, and how many more there are."""

from __future__ import annotations

import pytest

from fhirpub.errors import MAX_PLACES, Issue
from fhirpub.fhir.lenient.corrections import Corrections
from fhirpub.problems import ContentProblem

RULE = "an empty string was left out"


def corrections(count: int = 0) -> Corrections:
    made = Corrections(ContentProblem.ELEMENT_MALFORMED, RULE)
    for each in range(count):
        made.add(f"name[{each}]")
    return made


def only_issue(made: Corrections) -> Issue:
    (issue,) = made.issues()
    return issue


def test_nothing_corrected_is_no_issue() -> None:
    assert [*corrections().issues()] == []


def test_a_correction_is_a_warning_at_its_place() -> None:
    issue = only_issue(corrections(1))

    assert (issue.severity, issue.code) == ("warning", "invalid")
    assert issue.details is ContentProblem.ELEMENT_MALFORMED
    assert (issue.expression, issue.diagnostics) == ("name[0]", RULE)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (MAX_PLACES, RULE),
        (MAX_PLACES + 1, f"{RULE} (and in 1 more places)"),
        (MAX_PLACES + 20, f"{RULE} (and in 20 more places)"),
    ],
)
def test_places_above_the_limit_are_counted_and_not_named(count: int, said: str) -> None:
    made = corrections(count)

    assert only_issue(made).diagnostics == said
    assert made.places == [f"name[{each}]" for each in range(MAX_PLACES)]


def test_one_place_stands_in_for_those_below_it() -> None:
    made = corrections(5)

    made.add_instead(2, "name")

    assert (made.places, made.count) == (["name[0]", "name[1]", "name"], 3)


def test_a_place_that_stands_in_for_unnamed_ones_is_counted_after_those_kept() -> None:
    made = corrections(MAX_PLACES + 20)

    made.add_instead(MAX_PLACES + 5, "name")

    assert (len(made.places), made.count) == (MAX_PLACES, MAX_PLACES + 6)


def test_two_kinds_of_corrections_share_no_places() -> None:
    corrections(3)

    assert corrections().places == []
