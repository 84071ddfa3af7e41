"""Sentences about elements, and the kinds of problems that they state."""

from __future__ import annotations

import pytest

from fhirpub.fhir.explanation.kinds import kind_of_problem


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("has unknown properties", "element-unknown"),
        ("has properties that FHIR R4 does not have here: famili", "element-unknown"),
        ("is required, in one of its forms", "element-required"),
        ("must not be negative (tim-4)", "invariant-broken"),
        ("must have name or identifier (org-1)", "invariant-broken"),
        ("must not be null", "value-empty"),
        ("must be an array, because it may repeat", "element-malformed"),
        ("must be a valid code: one of male, female", "code-not-allowed"),
        ("must be a valid dateTime: YYYY", "time-invalid"),
        ("must be a valid base64Binary: a string", "base64-invalid"),
        ("must be a valid canonical: a string", "uri-invalid"),
        ("must be a valid xhtml: a string", "narrative-invalid"),
        ("must be a valid code: no spaces at its ends", "value-invalid"),
        ("is not valid FHIR R4", "value-invalid"),
    ],
)
def test_a_sentence_states_one_kind_of_problem(sentence: str, kind: str) -> None:
    assert kind_of_problem(sentence) == kind
