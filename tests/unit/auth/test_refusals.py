"""The sentences about refused tokens can be sent in a header."""

from __future__ import annotations

import re

import pytest

from fhirpub.auth import refusals
from fhirpub.errors import NotAuthenticated
from fhirpub.problems import RequestProblem

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
        refusals.unbound(),
        refusals.lacks('a "claim"'),
        refusals.revoked(),
        refusals.unknown_holder("x"),
        refusals.disabled(),
    ],
)
def test_a_sentence_fits_into_error_description(refusal: NotAuthenticated) -> None:
    assert DESCRIPTION.fullmatch(str(refusal))


@pytest.mark.parametrize(
    ("refusal", "reason", "details"),
    [
        (refusals.no_token(), "no Authorization header", RequestProblem.TOKEN_MISSING),
        (refusals.basic(), "HTTP Basic", RequestProblem.AUTHORIZATION_MALFORMED),
        (
            refusals.several_headers(),
            "several Authorization headers",
            RequestProblem.AUTHORIZATION_MALFORMED,
        ),
        (refusals.unproved("bad MAC"), "bad MAC", RequestProblem.TOKEN_INVALID),
        (refusals.expired(), "expired", RequestProblem.TOKEN_EXPIRED),
        (refusals.not_yet_valid("iat"), "iat lies ahead", RequestProblem.TOKEN_INVALID),
        (refusals.misdirected("aud", "service"), "aud", RequestProblem.TOKEN_MISDIRECTED),
        (refusals.unbound(), "certificate", RequestProblem.TOKEN_INVALID),
        (refusals.lacks("scope"), "scope", RequestProblem.TOKEN_INVALID),
        (refusals.revoked(), "revoked", RequestProblem.TOKEN_REVOKED),
        (refusals.unknown_holder("no tenant"), "no tenant", RequestProblem.TOKEN_INVALID),
        (refusals.disabled(), "client or tenant", RequestProblem.CLIENT_DISABLED),
    ],
)
def test_a_refusal_has_a_reason_for_the_log_and_a_code_for_the_caller(
    refusal: NotAuthenticated, reason: str, details: RequestProblem
) -> None:
    assert (refusal.reason, refusal.details) == (reason, details)


def test_what_a_caller_reads_has_no_reason_of_the_log() -> None:
    assert "bad MAC" not in str(refusals.unproved("bad MAC"))


@pytest.mark.parametrize(
    ("refusal", "token_sent"),
    [
        (refusals.no_token(), False),
        (refusals.basic(), False),
        (refusals.malformed("x", token_sent=False), False),
        (refusals.malformed("x", token_sent=True), True),
        (refusals.several_headers(), True),
        (refusals.unproved("x"), True),
        (refusals.expired(), True),
        (refusals.disabled(), True),
    ],
)
def test_only_of_a_token_that_was_sent_the_challenge_has_an_error(
    refusal: NotAuthenticated, *, token_sent: bool
) -> None:
    assert refusal.token_sent is token_sent


def test_the_sentence_names_what_a_token_is_for() -> None:
    assert "for another audience" in str(refusals.misdirected("aud", "audience"))
