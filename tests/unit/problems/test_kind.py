"""What is known of each kind of problem."""

from __future__ import annotations

import pytest

from fhirpub.problems import ALL, ContentProblem, Problem, RequestProblem

_ISSUE_TYPES = {
    *("invalid", "structure", "required", "value", "invariant", "security", "login", "unknown"),
    *("expired", "forbidden", "suppressed", "processing", "not-supported", "duplicate"),
    *("multiple-matches", "not-found", "deleted", "too-long", "code-invalid", "extension"),
    *("too-costly", "business-rule", "conflict", "transient", "lock-error", "no-store"),
    *("exception", "timeout", "incomplete", "throttled", "informational"),
}


def test_a_problem_is_equal_to_its_code() -> None:
    problem: str = ContentProblem.BODY_EMPTY

    assert {problem: 1}["body-empty"] == 1
    assert str(problem) == "body-empty"
    assert isinstance(ContentProblem.BODY_EMPTY, Problem)


def test_a_problem_is_shown_as_words() -> None:
    assert ContentProblem.BODY_EMPTY.display == "Body empty"


def test_several_types_are_kept_in_order() -> None:
    class Example(Problem):
        ONE = ("one-two", "transient throttled", "Meaning.", "Remedy.")

    one = Example.ONE
    assert (one.types, one.meaning, one.remedy) == (
        ("transient", "throttled"),
        "Meaning.",
        "Remedy.",
    )


def test_no_code_is_there_twice() -> None:
    assert len({*map(str, ALL)}) == len(ALL)


@pytest.mark.parametrize("problem", ALL, ids=str)
def test_each_problem_has_types_of_r4_and_is_explained_in_sentences(problem: Problem) -> None:
    assert problem.types
    assert {*problem.types} <= _ISSUE_TYPES
    assert problem.meaning.endswith(".")
    assert problem.remedy.endswith(".")


def test_a_code_is_shown_as_words() -> None:
    assert RequestProblem.STORAGE_QUOTA_USED_UP.display == "Storage quota used up"
    assert all("-" not in problem.display for problem in ALL)
