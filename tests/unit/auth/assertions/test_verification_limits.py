"""Assertions at the limits of time, length and number."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.auth.assertions.key_set import read_key_set
from fhirpub.auth.assertions.verification import (
    AssertionRefused,
    OpenedAssertion,
    names_one_of,
    open_assertion,
    verify_assertion,
)
from tests.unit.auth.assertions.signing import AUDIENCE, CLIENT_ID, NOW, claims, key_set, pair
from tests.unit.auth.assertions.test_verification import ES384, refusal_of, verify

EXPIRED = "has expired: sign a new one"
SHAPE = "must be a signed JWT in its compact form, of at most 4096 characters"


def signed(**changes: Any) -> str:
    return ES384.sign(claims(**changes))


def test_an_assertion_ends_with_its_last_millisecond() -> None:
    text = signed(exp=NOW + 10)

    assert verify(text, now=NOW + 9.999).expires == (NOW + 10) * 1000
    assert refusal_of(text, now=NOW + 10) == EXPIRED


def test_an_assertion_ends_at_its_end_if_no_leeway_is_given() -> None:
    with pytest.raises(AssertionRefused) as refused:
        verify_assertion(
            open_assertion(signed(exp=NOW)),
            read_key_set(key_set(ES384)),
            audiences=[AUDIENCE],
            clock=lambda: NOW * 1000,
        )

    assert str(refused.value) == EXPIRED


def test_an_end_between_two_milliseconds_is_the_earlier_one() -> None:
    text = signed(exp=NOW + 0.9995)

    assert verify(text, now=NOW + 0.998).expires == NOW * 1000 + 999
    assert refusal_of(text, now=NOW + 0.999) == EXPIRED


def test_it_ends_six_minutes_ahead_at_most_whatever_the_leeway() -> None:
    assert verify(signed(exp=NOW + 360), leeway=10).expires == (NOW + 370) * 1000
    said = "must expire within five minutes: exp"
    assert refusal_of(signed(exp=NOW + 360.001), leeway=10) == said


@pytest.mark.parametrize("name", ["iat", "nbf"])
def test_the_clock_of_a_client_may_be_a_minute_ahead(name: str) -> None:
    said = f"is not valid yet: compare the clocks of both sides, {name}"

    assert verify(signed(**{name: NOW + 60})).subject == CLIENT_ID
    assert refusal_of(signed(**{name: NOW + 60.001})) == said


@pytest.mark.parametrize("name", ["iat", "nbf"])
def test_an_assertion_of_long_ago_is_one_until_it_ends(name: str) -> None:
    assert verify(signed(**{name: 0})).subject == CLIENT_ID


@pytest.mark.parametrize("name", ["iat", "nbf"])
@pytest.mark.parametrize("value", [-1, 253_402_300_800, False, [NOW]])
def test_a_time_that_is_none_is_named(name: str, value: object) -> None:
    said = f"must have a time in seconds since 1970: {name}"

    assert refusal_of(signed(**{name: value})) == said


def test_an_id_has_255_characters_at_most() -> None:
    assert verify(signed(jti="j" * 255)).jti == "j" * 255
    assert verify(signed(jti="ñ")).jti == "ñ"


def test_a_client_has_255_characters_at_most() -> None:
    long = "c" * 256
    said = "must have a text of 1 to 255 printable characters: sub"

    assert verify(signed(iss=long[1:], sub=long[1:])).subject == long[1:]
    assert refusal_of(signed(iss=long, sub=long)) == said


def test_ten_audiences_are_looked_at() -> None:
    others = [f"https://{number}.example" for number in range(9)]

    assert verify(signed(aud=[*others, AUDIENCE])).subject == CLIENT_ID
    assert refusal_of(signed(aud=["https://x.example", *others, AUDIENCE])) == (
        f"must have the aud {AUDIENCE}"
    )


@pytest.mark.parametrize(
    ("sent", "is_named"),
    [
        ("a", True),
        ("b", True),
        (["x", "b"], True),
        ([7, "a"], True),
        ("c", False),
        ("ab", False),
        ([], False),
        ([["a"]], False),
        (["c"], False),
        ({"a": 1}, False),
        (None, False),
        (7, False),
    ],
)
def test_an_audience_is_a_text_or_in_a_list_of_texts(sent: object, *, is_named: bool) -> None:
    assert names_one_of(sent, ["a", "b"]) is is_named


def test_an_assertion_taken_apart_has_all_that_is_needed_to_verify_it() -> None:
    text = signed()
    opened = open_assertion(text)

    assert (opened.algorithm, opened.kid, opened.subject) == ("ES384", "k1", CLIENT_ID)
    assert dict(opened.payload) == claims()
    assert opened.message.decode() == text.rpartition(".")[0]
    assert len(opened.signature) == 96


def test_nothing_that_proves_a_client_is_in_what_may_be_logged() -> None:
    opened = OpenedAssertion(
        algorithm="ES384",
        kid="k1",
        subject="ward",
        payload={"jti": "secret"},
        message=b"secret",
        signature=b"secret",
    )

    assert repr(opened) == "OpenedAssertion(algorithm='ES384', kid='k1', subject='ward')"


@pytest.mark.parametrize("text", ["", "a.b", "a.b.c.d", "A" * 4_097])
def test_what_is_no_token_is_refused_in_words(text: str) -> None:
    assert refusal_of(text) == SHAPE


def test_an_assertion_has_4096_characters_at_most() -> None:
    texts = [signed(more="x" * length) for length in range(2_700, 2_800)]
    longest = max((text for text in texts if len(text) <= 4_096), key=len)
    too_long = min((text for text in texts if len(text) > 4_096), key=len)

    assert len(too_long) - len(longest) < 3
    assert verify(longest).subject == CLIENT_ID
    assert refusal_of(too_long) == SHAPE


@pytest.mark.parametrize("typ", ["JWT", "Client-Authentication+JWT"])
def test_the_type_in_the_header_is_read_in_any_case(typ: str) -> None:
    assert verify(ES384.sign(claims(), header={"typ": typ})).subject == CLIENT_ID


@pytest.mark.parametrize("typ", ["", "at+jwt", "application/jwt"])
def test_another_type_in_the_header_is_refused(typ: str) -> None:
    with pytest.raises(AssertionRefused) as refused:
        open_assertion(ES384.sign(claims(), header={"typ": typ}))

    assert str(refused.value) == "must have typ JWT in its header, and no crit"


def test_the_words_of_another_algorithm_name_those_that_are_accepted() -> None:
    text = ES384.sign(claims()).split(".")
    text[0] = "eyJhbGciOiJub25lIiwia2lkIjoiazEifQ"

    assert refusal_of(".".join(text)) == (
        "must be signed by one of RS384, ES384, RS256, ES256: alg"
    )


def test_the_signature_is_looked_at_before_the_claims() -> None:
    forged = pair("ES384", "other").sign(claims(exp=1, aud="x", jti=""), header={"kid": "k1"})

    assert refusal_of(forged) == "is not signed by a key that is registered for its client"


def test_the_audience_is_looked_at_before_the_time() -> None:
    assert refusal_of(signed(aud="x", exp=1)) == f"must have the aud {AUDIENCE}"


def test_without_a_key_nothing_is_verified() -> None:
    unproved = "is not signed by a key that is registered for its client"

    assert refusal_of(signed(), keys=()) == unproved


def test_the_right_key_is_found_among_others() -> None:
    keys = read_key_set(key_set(pair("ES384", "other"), ES384, pair("RS384", "third")))

    assert verify(signed(), keys).subject == CLIENT_ID
