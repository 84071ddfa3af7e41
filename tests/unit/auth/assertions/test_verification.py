"""An assertion is accepted for exactly one reason, and refused for each way to forge it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fhirpub.auth.assertions.key_set import ALGORITHMS, PublicKey, read_key_set
from fhirpub.auth.assertions.verification import (
    Assertion,
    AssertionRefused,
    open_assertion,
    verify_assertion,
)
from tests.unit.auth.assertions.signing import (
    AUDIENCE,
    CLIENT_ID,
    NOW,
    Pair,
    b64url,
    claims,
    key_set,
    pair,
)

ISSUER = "https://fhir.example.org"
ES384 = pair("ES384")
SIGNED = ES384.sign(claims())
TWICE = b'{"sub": 1, "sub": 2}'
UNPROVED = "is not signed by a key that is registered for its client"


def verify(
    text: str, keys: Sequence[PublicKey] | None = None, *, now: float = NOW, leeway: int = 0
) -> Assertion:
    known = read_key_set(key_set(ES384)) if keys is None else keys
    return verify_assertion(
        open_assertion(text),
        known,
        audiences=(AUDIENCE, ISSUER),
        clock=lambda: round(now * 1000),
        leeway_seconds=leeway,
    )


def refusal_of(text: str, **options: Any) -> str:
    with pytest.raises(AssertionRefused) as raised:
        verify(text, **options)
    return str(raised.value)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_assertion_by_each_algorithm_is_accepted(algorithm: str) -> None:
    signer = pair(algorithm)

    found = verify(signer.sign(claims()), read_key_set(key_set(signer)))

    assert found == Assertion(subject=CLIENT_ID, jti="j-1", expires=(NOW + 300) * 1000)


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": ISSUER},
        {"aud": ["https://other.example.org", AUDIENCE]},
        {"exp": NOW + 299.5},
        {"iat": None},
        {"iat": NOW + 59},
        {"nbf": NOW + 59},
        {"exp": NOW + 360},
        {"exp": NOW + 1},
        {"more": {"nested": [1]}},
    ],
)
def test_what_the_specifications_leave_to_the_client_is_accepted(changes: dict[str, Any]) -> None:
    assert verify(ES384.sign(claims(**changes))).subject == CLIENT_ID


@pytest.mark.parametrize(
    "header", [{"typ": None}, {"typ": "jwt"}, {"typ": "client-authentication+jwt"}]
)
def test_the_type_in_the_header_may_be_each_of_the_usual_ones(header: dict[str, Any]) -> None:
    assert verify(ES384.sign(claims(), header=header)).subject == CLIENT_ID


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"aud": "https://fhir.example.org/fhir/r4"}, f"must have the aud {AUDIENCE}"),
        ({"aud": []}, f"must have the aud {AUDIENCE}"),
        ({"aud": [AUDIENCE] * 11}, f"must have the aud {AUDIENCE}"),
        ({"aud": {AUDIENCE: 1}}, f"must have the aud {AUDIENCE}"),
        ({"aud": None}, f"must have the aud {AUDIENCE}"),
        ({"exp": NOW}, "has expired: sign a new one"),
        ({"exp": NOW - 1}, "has expired: sign a new one"),
        ({"exp": NOW + 361}, "must expire within five minutes: exp"),
        ({"exp": 1e300}, "must have a time in seconds since 1970: exp"),
        ({"exp": "1800000300"}, "must have a time in seconds since 1970: exp"),
        ({"exp": True}, "must have a time in seconds since 1970: exp"),
        ({"exp": None}, "must have a time in seconds since 1970: exp"),
        ({"iat": "now"}, "must have a time in seconds since 1970: iat"),
        ({"iat": NOW + 61}, "is not valid yet: compare the clocks of both sides, iat"),
        ({"nbf": NOW + 61}, "is not valid yet: compare the clocks of both sides, nbf"),
        ({"jti": None}, "must have a text of 1 to 255 printable characters: jti"),
        ({"jti": ""}, "must have a text of 1 to 255 printable characters: jti"),
        ({"jti": "j" * 256}, "must have a text of 1 to 255 printable characters: jti"),
        ({"jti": "a\x85b"}, "must have a text of 1 to 255 printable characters: jti"),
        ({"jti": 7}, "must have a text of 1 to 255 printable characters: jti"),
        ({"sub": None}, "must have a text of 1 to 255 printable characters: sub"),
        ({"iss": "other"}, "must have the client_id in both iss and sub"),
        ({"iss": None}, "must have the client_id in both iss and sub"),
    ],
)
def test_a_wrong_claim_is_named(changes: dict[str, Any], said: str) -> None:
    assert refusal_of(ES384.sign(claims(**changes))) == said


def test_the_leeway_prolongs_an_assertion_and_how_long_its_id_is_remembered() -> None:
    text = ES384.sign(claims(exp=NOW))

    assert verify(text, now=NOW + 9.9, leeway=10).expires == (NOW + 10) * 1000
    assert refusal_of(text, now=NOW + 10, leeway=10) == "has expired: sign a new one"


@pytest.mark.parametrize("algorithm", ["none", "HS256", "HS384", "RS512", "PS384", "", None, 7])
def test_no_other_algorithm_is_accepted(algorithm: object) -> None:
    header = {"alg": algorithm, "kid": "k1", "typ": "JWT"}
    text = f"{b64url(orjson.dumps(header))}.{b64url(orjson.dumps(claims()))}.AAAA"

    assert refusal_of(text).startswith("must be signed by one of RS384")


@pytest.mark.parametrize("algorithm", ["HS256", "HS384"])
def test_the_public_key_is_no_secret_to_sign_with(algorithm: str) -> None:
    header = {"alg": algorithm, "kid": "k1", "typ": "JWT"}
    message = f"{b64url(orjson.dumps(header))}.{b64url(orjson.dumps(claims()))}"
    secret = orjson.dumps(ES384.public())
    mac = hmac.digest(secret, message.encode(), hashlib.new(f"sha{algorithm[2:]}").name)

    assert refusal_of(f"{message}.{b64url(mac)}").startswith("must be signed by one of")


@pytest.mark.parametrize(("sent", "algorithm"), [("ES384", "RS384"), ("RS384", "ES384")])
def test_a_key_verifies_only_by_its_own_type(sent: str, algorithm: str) -> None:
    text = pair(sent).sign(claims())

    assert refusal_of(text, keys=read_key_set(key_set(pair(algorithm)))) == UNPROVED


def test_a_key_with_an_algorithm_verifies_by_no_other() -> None:
    signer = Pair(pair("RS384").private, "RS256")
    named = orjson.dumps({"keys": [signer.public(alg="RS384")]})

    assert verify(signer.sign(claims()), read_key_set(key_set(signer))).subject == CLIENT_ID
    assert refusal_of(signer.sign(claims()), keys=read_key_set(named)) == UNPROVED


def test_the_key_of_another_client_with_the_same_kid_is_none() -> None:
    assert refusal_of(pair("ES384", "k2").sign(claims(), header={"kid": "k1"})) == UNPROVED


def test_an_unknown_kid_leads_to_no_other_key() -> None:
    assert refusal_of(ES384.sign(claims(), header={"kid": "k2"})) == UNPROVED


def test_two_keys_of_one_kid_and_type_are_refused_since_either_may_be_meant() -> None:
    twins = [pair("ES384"), Pair(pair("ES384", "k2").private, "ES384")]
    raw = orjson.dumps({"keys": [twins[0].public(), twins[1].public(kid="k1")]})

    assert refusal_of(ES384.sign(claims()), keys=read_key_set(raw)) == UNPROVED


def test_two_keys_of_one_kid_and_different_types_are_told_apart_by_the_algorithm() -> None:
    keys = read_key_set(key_set(pair("ES384"), pair("RS384")))

    assert verify(pair("RS384").sign(claims()), keys).subject == CLIENT_ID
    assert verify(pair("ES384").sign(claims()), keys).subject == CLIENT_ID


@pytest.mark.parametrize("member", ["jwk", "jku", "x5u", "x5c", "x5t"])
def test_a_key_that_the_header_brings_along_is_ignored(member: str) -> None:
    forger = pair("ES384", "forger")
    brought = {"jwk": forger.public(), "x5c": ["MIIB"], "x5t": "AAAA"}
    extra = {member: brought.get(member, "https://forger.example.org/jwks")}

    assert refusal_of(forger.sign(claims(), header={"kid": "k1", **extra})) == UNPROVED
    assert verify(ES384.sign(claims(), header=extra)).subject == CLIENT_ID


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"typ": "at+jwt"}, "must have typ JWT in its header, and no crit"),
        ({"typ": 7}, "must have typ JWT in its header, and no crit"),
        ({"kid": None}, "must name its key in its header: kid"),
        ({"kid": ""}, "must name its key in its header: kid"),
    ],
)
def test_a_wrong_header_is_named(header: dict[str, Any], said: str) -> None:
    assert refusal_of(_with_header(header)) == said


def _with_header(changes: dict[str, Any]) -> str:
    """Return an assertion with a header that a library might not write."""
    members = {"alg": "ES384", "kid": "k1", "typ": "JWT", **changes}
    header = {name: value for name, value in members.items() if value is not None}
    return f"{b64url(orjson.dumps(header))}.{b64url(orjson.dumps(claims()))}.AAAA"


def test_a_critical_extension_is_refused() -> None:
    said = "must have typ JWT in its header, and no crit"

    assert refusal_of(_with_header({"crit": ["exp"]})) == said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a.b.c",
        "....",
        "e30.e30.",
        "é.é.é",
        "W10.W10.AAAA",
        f"e30.{b64url(b'[' * 2000)}.AAAA",
        f"e30.{b64url(TWICE)}.AAAA",
        "A" * 5000,
        "A." * 2000,
    ],
)
def test_what_is_no_token_is_refused_by_its_shape(text: str) -> None:
    assert refusal_of(text).startswith("must be ")


@settings(max_examples=300)
@given(st.data())
def test_no_altered_assertion_is_accepted(data: st.DataObject) -> None:
    text = SIGNED
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(codec="ascii", exclude_characters=text[place]))
    altered = text[:place] + other + text[place + 1 :]

    with pytest.raises(AssertionRefused):
        verify(altered)


@settings(max_examples=300)
@given(
    st.dictionaries(
        st.sampled_from(["iss", "sub", "aud", "exp", "iat", "nbf", "jti"]),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
            max_leaves=5,
        ),
    )
)
def test_signed_claims_of_any_form_are_accepted_or_refused(changes: dict[str, Any]) -> None:
    try:
        found = verify(ES384.sign(claims(**changes)))
    except AssertionRefused:
        return
    assert found.subject == CLIENT_ID
    assert NOW * 1000 < found.expires <= (NOW + 360) * 1000
