"""Codes of problems of persons, and their issue types: clients compare them."""

from __future__ import annotations

from fhirpub.problems import PatientProblem

CODES = {
    "PERSON_AMBIGUOUS": "person-ambiguous: informational",
    "PERSON_CONFLICT": "person-conflict: informational",
}


def test_each_problem_keeps_its_code_and_its_types() -> None:
    assert {one.name: f"{one}: {' '.join(one.types)}" for one in PatientProblem} == CODES
