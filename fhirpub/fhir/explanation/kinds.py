"""The kind of problem that a sentence about an element states."""

from __future__ import annotations

import re

from fhirpub.problems import ContentProblem

_KINDS = {
    re.compile("has properties |has unknown properties"): ContentProblem.ELEMENT_UNKNOWN,
    re.compile(r"[^(]*\([a-z]{3}-\d+\)$"): ContentProblem.INVARIANT_BROKEN,
    re.compile("is required"): ContentProblem.ELEMENT_REQUIRED,
    re.compile("must not be (null|an empty)|must hold |needs more"): ContentProblem.VALUE_EMPTY,
    re.compile("must be (an|given) |must not be |needs "): ContentProblem.ELEMENT_MALFORMED,
    re.compile("must be a valid code: (one|a code) of"): ContentProblem.CODE_NOT_ALLOWED,
    re.compile("must be a valid (date|dateTime|instant|time):"): ContentProblem.TIME_INVALID,
    re.compile("must be a valid base64Binary:"): ContentProblem.BASE64_INVALID,
    re.compile("must be a valid xhtml:"): ContentProblem.NARRATIVE_INVALID,
    re.compile("must be a valid (uri|url|canonical|oid|uuid):"): ContentProblem.URI_INVALID,
}


def kind_of_problem(sentence: str) -> ContentProblem:
    """Return the kind by the sentence alone, since several keywords may report one problem."""
    found = (kind for form, kind in _KINDS.items() if form.match(sentence))
    return next(found, ContentProblem.VALUE_INVALID)
