"""Keys of clients are public, strong enough, and named."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OctKey

from fhirpub.auth.assertions.key_set import MAX_KEYS, check_key_set, read_key_set
from fhirpub.errors import ConfigurationError
from tests.collector import computing_less_than
from tests.unit.auth.assertions.signing import b64url, key_set, pair

TEXTS = st.text(st.characters(exclude_categories=["C"]))
ES384, RS384, ES256 = pair("ES384", "a"), pair("RS384", "b"), pair("ES256", "c")


def a_set(*members: Any) -> bytes:
    return orjson.dumps({"keys": list(members)})


def problem_of(raw: bytes) -> str:
    with pytest.raises(ConfigurationError) as raised:
        check_key_set(raw)
    return str(raised.value)


def test_keys_are_kept_with_their_public_members_alone() -> None:
    more = {"use": "sig", "x5c": ["MIIB"], "note": "ours", "alg": "ES384"}

    kept = orjson.loads(check_key_set(a_set(ES384.public(**more), RS384.public())))

    assert kept == {"keys": [{**ES384.public(), "alg": "ES384"}, RS384.public()]}


def test_what_is_kept_is_read_again() -> None:
    kept = check_key_set(key_set(ES384, RS384, ES256)).encode()

    found = read_key_set(kept)

    assert [(key.kid, sorted(key.verifiers)) for key in found] == [
        ("a", ["ES384"]),
        ("b", ["RS256", "RS384"]),
        ("c", ["ES256"]),
    ]


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ("key", "key 1: must be a JSON object"),
        (ES384.public(kid=None), "key 1: must have a kid of 1 to 255 printable ASCII characters"),
        (ES384.public(kid="é"), "key 1: must have a kid of 1 to 255 printable ASCII characters"),
        (OctKey.generate_key(256, {"kid": "o"}).as_dict(), "has members of a private key"),
        ({"kty": "OKP", "crv": "Ed25519", "kid": "o"}, "key 1: must be an RSA or EC key: kty"),
        (ES384.private.as_dict(private=True), "has members of a private key"),
        (RS384.private.as_dict(private=True), "has members of a private key"),
        (ES384.public(use="enc"), "must be for signatures: use is sig, key_ops has verify"),
        (ES384.public(key_ops=["sign"]), "must be for signatures"),
        (ES384.public(key_ops="verify"), "must be for signatures"),
        (ES384.public(alg="ES256"), "has an alg that is not one of"),
        (RS384.public(alg="RS512"), "has an alg that is not one of"),
        (RS384.public(alg=["RS384"]), "has an alg that is not one of"),
        (RS384.public(n="="), "must have n and e in base64url"),
        (RS384.public(e=3), "must have n and e in base64url"),
        (RS384.public(e=b64url(b"\x02")), "has an unusual exponent: use 65537"),
        (RS384.public(e=b64url(b"\x01")), "has an unusual exponent: use 65537"),
        (RS384.public(e=b64url(b"\xff" * 300)), "has an unusual exponent: use 65537"),
        (RS384.public(n=b64url(b"\xff" * 2000)), "must have 2048 to 8192 bits"),
        (RS384.public(n=b64url(b"\xff" * 255)), "must have 2048 to 8192 bits"),
        (
            ECKey.generate_key("P-521", {"kid": "l"}).as_dict(private=False),
            "must be on the curve P-384 or P-256",
        ),
        (ES384.public(x=b64url(b"\x01" * 48)), "is no point of its curve, or no key"),
        (ES384.public(x="AQ"), "must have x and y of 48 bytes in base64url"),
        (ES384.public(crv="P-256"), "must have x and y of 32 bytes in base64url"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_and_left_out_of_a_published_set(
    member: Any, said: str
) -> None:
    assert said in problem_of(a_set(member))
    assert [key.kid for key in read_key_set(a_set(member, RS384.public(kid="good")))] == ["good"]


def test_no_problem_repeats_a_value_of_the_key() -> None:
    private = ES384.private.as_dict(private=True)

    assert str(private["d"]) not in problem_of(a_set(private))


def test_all_problems_of_all_keys_are_named_at_once() -> None:
    said = problem_of(a_set({"kty": "EC"}, ES384.public(kid=7, use="enc")))

    assert [line.partition(":")[0] for line in said.splitlines()] == [
        "key 1",
        "key 1",
        "key 2",
        "key 2",
    ]


def test_two_keys_of_one_type_need_two_names() -> None:
    other = pair("ES384", "d").public(kid="a")

    assert problem_of(a_set(ES384.public(), other)) == "several keys have the kid a"


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"{}", b'{"keys": {}}', b"\xff", b'{"keys": [], "keys": []}', b"null"]
)
def test_what_is_no_key_set_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="JSON Web Key Set"):
        read_key_set(raw)
    assert "JSON Web Key Set" in problem_of(raw)


def test_a_set_without_a_key_is_refused() -> None:
    assert problem_of(b'{"keys": []}') == "the key set has no key"
    assert read_key_set(b'{"keys": []}') == ()


@pytest.mark.parametrize(
    "raw",
    [
        b" " * 65_537,
        a_set(*[{}] * (MAX_KEYS + 1)),
        b'{"keys": [' + b"{}," * 20_000 + b"{}]}",
        b'{"keys": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    ],
)
def test_a_huge_set_is_refused_at_once(raw: bytes) -> None:
    with computing_less_than(0.5), pytest.raises(ValueError):
        read_key_set(raw)


@given(
    st.dictionaries(
        st.sampled_from(["kty", "kid", "n", "e", "crv", "x", "y", "alg", "use", "key_ops"]),
        st.none()
        | st.integers(-(2**63), 2**64)
        | st.lists(TEXTS, max_size=2)
        | st.sampled_from(["RSA", "EC", "P-384", "P-256", "RS384", "ES384", "sig", "AQAB", "k"])
        | TEXTS,
    )
)
def test_a_member_of_any_form_is_a_key_or_left_out(changes: dict[str, Any]) -> None:
    for known in (RS384, ES384):
        raw = json.dumps({"keys": [{**known.public(), **changes}]}).encode()

        assert len(read_key_set(raw)) <= 1
