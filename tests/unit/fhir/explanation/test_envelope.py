"""What a body of another kind is called, without a word of it."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.fhir.explanation.envelope import kind_of, refuse_kind

TYPES = frozenset({"Bundle", "Observation"})


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"resourceType": "Bundle"}, "a Bundle"),
        ({"resourceType": "Observation"}, "an Observation"),
        ({"resourceType": "Juan"}, "an object of an unknown resourceType"),
        ({"resourceType": ["Bundle"]}, "an object of an unknown resourceType"),
        ({}, "an object without resourceType"),
        ([{"resourceType": "Bundle"}], "an array"),
        ("Juan", "a string"),
        (None, "no object"),
        (7, "no object"),
    ],
)
def test_a_body_is_named_by_its_kind(body: Any, kind: str) -> None:
    assert kind_of(body, TYPES) == kind


def test_the_advice_for_the_kind_ends_the_sentence() -> None:
    refusal = refuse_kind([], TYPES, "a Patient", advice={"array": "send one", "Bundle": "no"})

    (issue,) = refusal.issues
    assert issue.diagnostics == "the body must be a Patient, and is an array: send one"
    assert issue.details == "body-unexpected"
