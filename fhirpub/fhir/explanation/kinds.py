"""The kind of problem that a sentence about an element states."""

from __future__ import annotations

import re

from fhirpub.problems import ContentProblem

_KINDS = {
    re.compile("has properties |has unknown properties"): ContentProblem.ELEMENT_UNKNOWN,
    re.compile(r"[^(]*\([a-z]{3}-\d+\)$"): ContentProblem.INVARIANT_BROKEN,
    re.compile("is required"): ContentProblem.ELEMENT_REQUIRED,
    re.compile("must be (an|given) |must (not be|hold) |needs "): ContentProblem.ELEMENT_MALFORMED,
}


def kind_of_problem(sentence: str) -> ContentProblem:
    """Return the kind by the sentence alone, since several keywords may report one problem."""
    found = (kind for form, kind in _KINDS.items() if form.match(sentence))
    return next(found, ContentProblem.VALUE_INVALID)
