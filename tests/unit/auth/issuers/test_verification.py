"""Tokens of other issuers at the limits of their time, and what their headers may be."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fhirpub.auth.assertions.key_set import PublicKey, read_key_set
from fhirpub.auth.issuers.verification import (
    MAX_CHARACTERS,
    Proved,
    check_claims,
    check_header,
    check_signature,
)
from fhirpub.auth.jwt import Segments, parse_segments
from fhirpub.errors import NotAuthenticated
from fhirpub.plugin_api import TokenHolder, TokenIssuer
from fhirpub.problems import RequestProblem
from tests.unit.auth.assertions.signing import NOW, key_set, pair

CORP, AUDIENCE = "https://login.corp.example", "https://fhir.lab.example"
KEY, OTHER = pair("ES256", "corp-1"), pair("ES256", "corp-2")
ISSUER = TokenIssuer(
    name="corp",
    url=CORP,
    audience=AUDIENCE,
    tenants=("t",),
    scopes=(),
    identify=lambda _claims: TokenHolder(client="app", tenant="t"),
)


def proved(*, at: float = NOW, leeway: int = 0, **changes: Any) -> Proved:
    usual = {"iss": CORP, "aud": AUDIENCE, "exp": NOW + 600, "iat": NOW}
    claims = {name: value for name, value in {**usual, **changes}.items() if value is not None}
    return check_claims(claims, ISSUER, leeway_seconds=leeway, now=round(at * 1000))


def refusal(**changes: Any) -> tuple[str, object]:
    with pytest.raises(NotAuthenticated) as refused:
        proved(**changes)
    return refused.value.reason, refused.value.details


def token(**header: Any) -> Segments:
    usual = {"alg": "ES256", "kid": "corp-1", "typ": "at+jwt"}
    found = {name: value for name, value in {**usual, **header}.items() if value is not None}
    return Segments(header=found, payload={}, message=b"", signature=b"")


def header_refusal(**header: Any) -> str:
    with pytest.raises(NotAuthenticated) as refused:
        check_header(token(**header))
    return refused.value.reason


def keys_of(*raw: bytes) -> list[PublicKey]:
    return [key for each in raw for key in read_key_set(each)]


def signature_refusal(segments: Segments, keys: list[PublicKey]) -> str:
    with pytest.raises(NotAuthenticated) as refused:
        check_signature(segments, keys)
    return refused.value.reason


def signed() -> Segments:
    return parse_segments(KEY.sign({"iss": CORP}, header={"typ": "at+jwt"}))


def test_a_token_is_good_until_its_end() -> None:
    assert proved() == Proved(until=(NOW + 600) * 1000, certificate="")


def test_it_ends_with_its_last_millisecond() -> None:
    assert proved(at=NOW + 599.999).until
    assert refusal(at=NOW + 600) == ("expired", RequestProblem.TOKEN_EXPIRED)


def test_the_leeway_prolongs_it() -> None:
    assert proved(at=NOW + 609.999, leeway=10).until == (NOW + 610) * 1000
    assert refusal(at=NOW + 610, leeway=10) == ("expired", RequestProblem.TOKEN_EXPIRED)


def test_an_end_between_two_milliseconds_is_the_earlier_one() -> None:
    assert proved(exp=NOW + 0.9995).until == NOW * 1000 + 999


def test_it_may_be_issued_a_minute_ahead() -> None:
    assert proved(iat=NOW + 60).until
    assert refusal(iat=NOW + 61) == ("iat lies ahead", RequestProblem.TOKEN_INVALID)


def test_a_longer_leeway_counts_for_when_it_was_issued() -> None:
    assert proved(iat=NOW + 90, leeway=90).until
    assert refusal(iat=NOW + 91, leeway=90)[0] == "iat lies ahead"


def test_a_shorter_leeway_leaves_the_minute() -> None:
    assert proved(iat=NOW + 60, leeway=5).until


def test_it_is_good_from_its_first_millisecond_without_a_leeway() -> None:
    assert proved(nbf=NOW).until
    assert refusal(nbf=NOW, at=NOW - 0.001)[0] == "nbf lies ahead"


def test_the_leeway_lets_it_begin_sooner() -> None:
    assert proved(nbf=NOW + 10, leeway=10).until
    assert refusal(nbf=NOW + 11, leeway=10)[0] == "nbf lies ahead"


@pytest.mark.parametrize("missing", ["iat", "nbf"])
def test_when_it_begins_need_not_be_stated(missing: str) -> None:
    changes: dict[str, Any] = {missing: None}

    assert proved(**changes).until


@pytest.mark.parametrize("name", ["exp", "iat", "nbf"])
@pytest.mark.parametrize("value", ["1", True, -1, 253_402_300_800])
def test_a_time_that_is_none_is_named(name: str, value: object) -> None:
    assert refusal(**{name: value}) == (name, RequestProblem.TOKEN_INVALID)


def test_the_end_must_be_stated() -> None:
    assert refusal(exp=None) == ("exp", RequestProblem.TOKEN_INVALID)


@pytest.mark.parametrize("issuer", [None, f"{CORP}/", 7])
def test_another_issuer_is_refused(issuer: object) -> None:
    with pytest.raises(NotAuthenticated) as refused:
        proved(iss=issuer)

    assert (refused.value.reason, refused.value.details) == (
        "iss",
        RequestProblem.TOKEN_MISDIRECTED,
    )
    assert "another issuer" in str(refused.value)


def test_another_audience_is_refused() -> None:
    with pytest.raises(NotAuthenticated) as refused:
        proved(aud="https://other.example")

    assert refused.value.details is RequestProblem.TOKEN_MISDIRECTED
    assert "another audience" in str(refused.value)


def test_a_token_for_another_purpose_is_refused() -> None:
    with pytest.raises(NotAuthenticated) as refused:
        proved(typ="ID")

    assert refused.value.details is RequestProblem.TOKEN_MISDIRECTED
    assert "another purpose" in str(refused.value)


def test_a_token_that_is_called_so_in_its_claims_is_one() -> None:
    assert proved(typ="Bearer").until


def test_the_certificate_that_it_is_bound_to_is_returned() -> None:
    assert proved(cnf={"x5t#S256": "digest"}).certificate == "digest"


@pytest.mark.parametrize("typ", ["at+jwt", "AT+JWT", "application/at+jwt", "JWT", "jwt", None])
def test_the_type_is_one_of_the_usual_ones_in_any_case(typ: str | None) -> None:
    check_header(token(typ=typ))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"typ": "id+jwt"}, "header"),
        ({"typ": ""}, "header"),
        ({"typ": 7}, "header"),
        ({"crit": []}, "header"),
        ({"alg": None}, "alg"),
        ({"alg": "none"}, "alg"),
        ({"alg": "es256"}, "alg"),
        ({"kid": None}, "no kid"),
        ({"kid": ""}, "no kid"),
        ({"kid": 7}, "no kid"),
    ],
)
def test_another_header_is_refused(header: dict[str, Any], reason: str) -> None:
    assert header_refusal(**header) == reason


def test_the_key_that_is_named_verifies() -> None:
    check_signature(signed(), keys_of(key_set(OTHER, KEY)))


def test_a_key_that_is_not_there_is_refused() -> None:
    assert signature_refusal(signed(), []) == "kid"
    assert signature_refusal(signed(), keys_of(key_set(OTHER))) == "kid"


def test_another_key_of_the_name_verifies_nothing() -> None:
    renamed = {"keys": [OTHER.public(kid="corp-1")]}
    raw = orjson.dumps(renamed)

    assert signature_refusal(signed(), keys_of(raw)) == "signature"


def test_a_key_for_another_algorithm_is_refused() -> None:
    assert signature_refusal(signed(), keys_of(key_set(pair("RS256", "corp-1")))) == "alg"


def test_a_key_of_another_type_with_the_same_name_is_passed_over() -> None:
    check_signature(signed(), keys_of(key_set(pair("RS256", "corp-1"), KEY)))


def test_two_keys_of_one_name_leave_open_which_was_meant() -> None:
    assert signature_refusal(signed(), keys_of(key_set(KEY), key_set(KEY))) == "alg"


def test_tokens_of_others_have_8192_characters_at_most() -> None:
    assert MAX_CHARACTERS == 8_192
