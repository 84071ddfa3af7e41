"""The sentences about refused tokens can be sent in a header."""

from __future__ import annotations

import re

import pytest

from fhirpub.auth import refusals
from fhirpub.errors import NotAuthenticated

DESCRIPTION = re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]+")
"""What RFC 6750, section 3, allows in error_description."""


@pytest.mark.parametrize(
    "refusal",
    [
        refusals.no_token(),
        refusals.malformed("x", token_sent=True),
        refusals.basic(),
        refusals.several_headers(),
        refusals.unproved("x"),
        refusals.expired(),
        refusals.not_yet_valid("iat"),
        refusals.misdirected("iss", "issuer"),
        refusals.lacks('a "claim"'),
        refusals.disabled(),
    ],
    ids=lambda refusal: refusal.details,
)
def test_a_sentence_fits_into_error_description(refusal: NotAuthenticated) -> None:
    assert DESCRIPTION.fullmatch(str(refusal))
