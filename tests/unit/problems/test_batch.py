"""Codes of problems of entries of batches, and their issue types: clients compare them."""

from __future__ import annotations

from fhirpub.problems import BatchProblem

CODES = {
    "BATCH_TIMEOUT": "batch-timeout: transient",
    "BATCH_ANSWER_TOO_LARGE": "batch-answer-too-large: too-costly",
    "CONDITION_UNSUPPORTED": "condition-unsupported: not-supported",
    "REGISTERED_BEFORE": "registered-before: informational",
    "REGISTERED_DIFFERENTLY": "registered-differently: duplicate",
}


def test_each_problem_keeps_its_code_and_its_types() -> None:
    assert {one.name: f"{one}: {' '.join(one.types)}" for one in BatchProblem} == CODES
