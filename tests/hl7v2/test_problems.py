"""Problems name their place as laboratories do."""

from __future__ import annotations

import pytest

from fhirpub_hl7v2.problems import Code, Problem, Unusable, kept_as_registered


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("is wrong", "OBX", 2, 5), "OBX[2]-5: is wrong"),
        (Problem("is wrong", "OBX", 2), "OBX[2]: is wrong"),
        (Problem("is wrong"), "is wrong"),
        (Problem("is wrong", field=3), "is wrong"),
    ],
)
def test_a_problem_stands_behind_its_place(problem: Problem, text: str) -> None:
    assert str(problem) == text


def test_a_message_that_cannot_be_used_has_all_problems_in_one_text() -> None:
    unusable = Unusable([Problem("one", "PID"), Problem("two")])

    assert str(unusable) == "PID[1]: one; two"
    assert len(unusable.problems) == 2


def test_what_stays_as_registered_is_named_and_accepted() -> None:
    problem = kept_as_registered(["patient", "DiagnosticReport.code"])

    assert problem.code is Code.ACCEPTED
    assert problem.text == (
        "stored, but for patient, DiagnosticReport.code: what differs there stays as it was "
        "registered"
    )
