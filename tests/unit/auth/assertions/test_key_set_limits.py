"""Keys of clients at the limits of what is used, and what verifies by them."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from jose.backends.base import Key
from jose.exceptions import JOSEError

from fhirpub.auth.assertions.key_set import (
    MAX_BYTES,
    MAX_KEYS,
    PublicKey,
    check_key_set,
    read_key_set,
)
from fhirpub.errors import ConfigurationError
from tests.unit.auth.assertions.signing import Pair, b64url, pair

ES384, RS384 = pair("ES384", "a"), pair("RS384", "b")


def a_set(*members: Any) -> bytes:
    return orjson.dumps({"keys": list(members)})


def problem_of(*members: Any) -> str:
    with pytest.raises(ConfigurationError) as raised:
        check_key_set(a_set(*members))
    return str(raised.value)


def only(member: dict[str, Any]) -> PublicKey:
    (key,) = read_key_set(a_set(member))
    return key


def signed_by(signer: Pair) -> tuple[bytes, bytes]:
    message, _, signature = signer.sign(b"{}").rpartition(".")
    padded = signature + "=" * (-len(signature) % 4)
    return message.encode(), base64.urlsafe_b64decode(padded)


@pytest.mark.parametrize(
    "changes",
    [
        {"kid": "k" * 255},
        {"kid": " ~"},
        {"use": "sig"},
        {"key_ops": ["verify"]},
        {"key_ops": ["sign", "verify"]},
        {"alg": "RS256"},
        {"e": b64url(b"\x03")},
        {"e": b64url((2**32 - 1).to_bytes(4, "big"))},
        {"n": b64url(b"\x80" + b"\xff" * 255)},
        {"n": b64url(b"\xff" * 1_024)},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_a_key_at_a_limit_can_be_used(changes: dict[str, Any]) -> None:
    assert check_key_set(a_set(RS384.public(**changes)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kid": ""}, "must have a kid of 1 to 255 printable ASCII characters"),
        ({"kid": "k" * 256}, "must have a kid of 1 to 255 printable ASCII characters"),
        ({"kid": "a\x7f"}, "must have a kid of 1 to 255 printable ASCII characters"),
        ({"kid": "a\n"}, "must have a kid of 1 to 255 printable ASCII characters"),
        ({"use": None}, "must be for signatures: use is sig, key_ops has verify"),
        ({"key_ops": []}, "must be for signatures: use is sig, key_ops has verify"),
        ({"e": b64url(b"\x04")}, "has an unusual exponent: use 65537"),
        ({"e": b64url((2**32 + 1).to_bytes(5, "big"))}, "has an unusual exponent: use 65537"),
        ({"n": b64url(b"\x7f" + b"\xff" * 255)}, "must have 2048 to 8192 bits"),
        ({"n": b64url(b"\x01" + b"\xff" * 1_024)}, "must have 2048 to 8192 bits"),
        ({"n": None}, "must have n and e in base64url"),
        ({"e": "AQABA"}, "must have n and e in base64url"),
        ({"e": "AQ=="}, "must have n and e in base64url"),
        ({"kty": "oct"}, "must be an RSA or EC key: kty"),
        (
            {"alg": None},
            "has an alg that is not one of RS384, ES384, RS256 and ES256, or not for its kty",
        ),
        (
            {"alg": "ES384"},
            "has an alg that is not one of RS384, ES384, RS256 and ES256, or not for its kty",
        ),
        *(
            ({name: "AQ"}, "has members of a private key: give the public key only")
            for name in ("d", "p", "q", "dp", "dq", "qi", "oth", "k")
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_key_beyond_a_limit_is_refused_in_words(changes: dict[str, Any], said: str) -> None:
    assert problem_of(RS384.public(**changes)) == f"key 1: {said}"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"x": b64url(b"\x01" * 47)}, "must have x and y of 48 bytes in base64url"),
        ({"y": b64url(b"\x01" * 49)}, "must have x and y of 48 bytes in base64url"),
        ({"y": None}, "must have x and y of 48 bytes in base64url"),
        ({"crv": None}, "must be on the curve P-384 or P-256"),
        ({"crv": ["P-384"]}, "must be on the curve P-384 or P-256"),
        ({"x": b64url(b"\x01" * 48)}, "is no point of its curve, or no key"),
    ],
)
def test_a_point_that_is_none_is_refused_in_words(changes: dict[str, Any], said: str) -> None:
    assert problem_of(ES384.public(**changes)) == f"key 1: {said}"


def test_what_is_wrong_is_named_with_the_number_of_its_key() -> None:
    assert problem_of(ES384.public(), "x", RS384.public(kty="x", use="enc")) == (
        "key 2: must be a JSON object\n"
        "key 3: must be for signatures: use is sig, key_ops has verify\n"
        "key 3: must be an RSA or EC key: kty"
    )


def test_two_keys_of_one_name_are_named_after_what_is_wrong_with_others() -> None:
    other = pair("ES384", "d").public(kid="a")

    assert problem_of(ES384.public(), "x", other) == (
        "key 2: must be a JSON object\nseveral keys have the kid a"
    )


def test_two_keys_of_different_types_may_have_one_name() -> None:
    kept = check_key_set(a_set(ES384.public(kid="a"), RS384.public(kid="a")))

    assert [key["kty"] for key in orjson.loads(kept)["keys"]] == ["EC", "RSA"]


def test_two_keys_of_different_curves_need_two_names() -> None:
    other = pair("ES256", "c").public(kid="a")

    assert problem_of(ES384.public(), other) == "several keys have the kid a"


def test_each_name_of_several_keys_is_named_once() -> None:
    members = [ES384.public(kid=kid) for kid in ("a", "b", "a", "b", "a", "c")]

    assert problem_of(*members) == "several keys have the kid a\nseveral keys have the kid b"


def test_keys_stay_in_their_order() -> None:
    members = [ES384.public(kid="b"), RS384.public(kid="c"), ES384.public(kid="a")]

    assert [key.kid for key in read_key_set(a_set(*members))] == ["b", "c", "a"]
    assert orjson.loads(check_key_set(a_set(*members))) == {"keys": members}


def test_a_set_has_twenty_keys_at_most() -> None:
    members = [ES384.public(kid=str(number)) for number in range(MAX_KEYS + 1)]

    assert len(read_key_set(a_set(*members[:20]))) == 20
    assert problem_of(*members) == "the key set has more than 20 keys"


def test_a_set_has_64_kib_at_most() -> None:
    raw = a_set(ES384.public())

    assert len(read_key_set(raw.ljust(MAX_BYTES))) == 1
    with pytest.raises(ConfigurationError) as refused:
        check_key_set(raw.ljust(65_537))
    assert str(refused.value) == "the key set has more than 65536 bytes"


def test_what_is_no_set_is_refused_in_words() -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_key_set(b"[]")

    assert str(refused.value) == 'the key set must be a JSON Web Key Set: {"keys": [...]}'


def test_the_algorithm_of_a_key_is_kept_and_the_only_one() -> None:
    member = RS384.public(alg="RS256", use="sig")

    assert [*only(member).verifiers] == ["RS256"]
    assert only(member).jwk == RS384.public(alg="RS256")


@pytest.mark.parametrize("algorithm", ["ES384", "ES256", "RS384", "RS256"])
def test_a_signature_is_verified_by_its_algorithm(algorithm: str) -> None:
    signer = pair(algorithm)
    message, signature = signed_by(signer)
    key = only(signer.public())

    assert key.verifies(algorithm, message, signature)
    assert not key.verifies(algorithm, message + b"x", signature)


@pytest.mark.parametrize("signature", [b"", b"x", b"\x00" * 96, b"x" * 97])
def test_a_signature_of_any_bytes_is_a_wrong_one(signature: bytes) -> None:
    assert not only(ES384.public()).verifies("ES384", b"message", signature)


@pytest.mark.parametrize("failure", [JOSEError(), ValueError(), OverflowError()])
def test_a_signature_that_a_library_fails_with_is_a_wrong_one(failure: Exception) -> None:
    class Failing(Key):
        def verify(self, msg: bytes, sig: bytes) -> bool:
            raise failure

    failing = Failing({}, "ES384")

    assert not PublicKey("a", {"ES384": failing}, {}).verifies("ES384", b"message", b"x")


@pytest.mark.parametrize("algorithm", ["ES256", "RS384", "none", ""])
def test_a_key_verifies_nothing_by_an_algorithm_that_is_not_its_own(algorithm: str) -> None:
    message, signature = signed_by(ES384)

    assert not only(ES384.public()).verifies(algorithm, message, signature)


@pytest.mark.parametrize(
    ("kid", "is_passkey"), [("passkey:1", True), ("passkey", False), ("a passkey:1", False)]
)
def test_a_passkey_is_known_by_its_name(kid: str, *, is_passkey: bool) -> None:
    assert only(ES384.public(kid=kid)).is_passkey is is_passkey


def test_no_key_is_in_what_may_be_logged() -> None:
    assert repr(only(ES384.public())) == "PublicKey(kid='a')"
