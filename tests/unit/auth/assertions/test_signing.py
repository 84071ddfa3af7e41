"""What the service's own commands sign with the key of a client is accepted for a minute."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fhirpub.auth.assertions.key_set import check_key_set, read_key_set
from fhirpub.auth.assertions.signing import new_key_pair, sign_assertion
from fhirpub.auth.assertions.verification import Assertion, open_assertion, verify_assertion
from fhirpub.auth.jwt import parse_segments
from fhirpub.errors import ConfigurationError
from tests.unit.auth.assertions.signing import AUDIENCE, CLIENT_ID, NOW, pair

NO_KEY = "is no private key for ES384, ES256, RS384 as a JWK with a kid"


def sign(key: Any) -> str:
    return sign_assertion(
        key, subject=CLIENT_ID, audience=AUDIENCE, clock=lambda: NOW * 1000 + 999
    )


def verify(text: str, public: Any) -> Assertion:
    keys = read_key_set(orjson.dumps(public))
    return verify_assertion(
        open_assertion(text), keys, audiences=[AUDIENCE], clock=lambda: NOW * 1000
    )


def test_what_is_signed_with_a_new_key_is_verified_with_its_public_key() -> None:
    private, public = new_key_pair()

    stated = verify(sign(private), public)

    assert (stated.subject, stated.expires) == (CLIENT_ID, (NOW + 60) * 1000)


def test_an_assertion_states_who_signs_for_whom_and_when() -> None:
    private, _public = new_key_pair()

    payload = dict(open_assertion(sign(private)).payload)

    assert len(payload.pop("jti")) == 32
    assert payload == {
        "iss": CLIENT_ID,
        "sub": CLIENT_ID,
        "aud": AUDIENCE,
        "iat": NOW,
        "exp": NOW + 60,
    }


def test_no_two_assertions_have_one_jti() -> None:
    private, _public = new_key_pair()

    first, second = (open_assertion(sign(private)).payload["jti"] for _ in range(2))

    assert first != second


def test_the_public_key_of_a_new_pair_can_be_registered() -> None:
    private, public = new_key_pair()

    (kept,) = orjson.loads(check_key_set(orjson.dumps(public)))["keys"]

    assert kept == {name: private[name] for name in ("kty", "kid", "crv", "x", "y", "alg")}


def test_a_new_key_is_for_signatures_by_es384_and_named() -> None:
    private, public = new_key_pair()

    assert (private["crv"], private["alg"], private["use"]) == ("P-384", "ES384", "sig")
    assert len(private["kid"]) == 16
    assert public == {"keys": [{name: private[name] for name in private if name != "d"}]}


def test_no_two_pairs_are_the_same() -> None:
    (first, _), (second, _) = new_key_pair(), new_key_pair()

    assert {first["kid"], first["d"]}.isdisjoint({second["kid"], second["d"]})


@pytest.mark.parametrize("algorithm", ["ES384", "ES256", "RS384"])
def test_a_key_of_each_kind_signs_by_its_algorithm(algorithm: str) -> None:
    signer = pair(algorithm)

    text = sign(signer.private.as_dict(private=True))

    assert open_assertion(text).algorithm == algorithm
    assert verify(text, {"keys": [signer.public()]}).subject == CLIENT_ID


@pytest.mark.parametrize(
    "key",
    [
        None,
        "key",
        [],
        {},
        {"kid": "k1"},
        {"kid": 7, **{name: item for name, item in new_key_pair()[0].items() if name != "kid"}},
        {**new_key_pair()[0], "kty": "oct"},
        {**new_key_pair()[0], "d": "?"},
        {**new_key_pair()[0], "d": 7},
        {**new_key_pair()[0], "crv": "P-521"},
        {"kty": "RSA", "kid": "k1", "n": "AQAB"},
        new_key_pair()[1],
    ],
)
def test_what_is_no_private_key_is_refused_in_words(key: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        sign(key)

    assert str(refused.value) == NO_KEY


def test_a_public_key_signs_nothing() -> None:
    (public,) = new_key_pair()[1]["keys"]

    with pytest.raises(ConfigurationError, match="no private key"):
        sign(public)


def test_the_header_has_nothing_but_the_algorithm_the_key_and_the_type() -> None:
    private, _public = new_key_pair()

    header = parse_segments(sign(private)).header

    assert dict(header) == {"alg": "ES384", "kid": private["kid"], "typ": "JWT"}
