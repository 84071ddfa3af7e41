"""A passkey of this site, of this challenge and of a verified user is taken, and no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from fhirpub.auth.assertions.key_set import PublicKey, check_key_set, read_key_set
from fhirpub.auth.passkeys import PasskeyRefused
from fhirpub.console.ceremonies import Ceremonies
from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.contracts.store.records import a_client
from tests.console.sign_in.passkey import PRESENT, Passkey

ORIGIN = "https://console.example.org"
SITE = Ceremonies("console.example.org", ORIGIN)
ADA = a_client(id="5a5b5c5d-0000-4000-8000-aabbccddeeff", name="Ada")


def created(passkey: Passkey, statement: str = "s") -> PublicKey:
    """Return the key of a passkey that the site has taken."""
    answer = passkey.create(SITE.to_create(ADA, statement))
    (key,) = read_key_set(dumps({"keys": [SITE.read_new(answer, statement)]}))
    return key


def is_right(passkey: Passkey, key: PublicKey, statement: str = "s", **changes: bytes) -> bool:
    answer = passkey.sign_in(SITE.to_sign_in("s"), **changes)
    try:
        SITE.verify(answer, statement, key)
    except PasskeyRefused:
        return False
    return True


def a_passkey(**changes: Any) -> Passkey:
    return Passkey(**{"origin": ORIGIN, **changes})


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_a_passkey_that_was_created_signs_in(algorithm: Any) -> None:
    passkey = a_passkey(algorithm=algorithm)

    key = created(passkey)

    assert (key.kid, key.jwk["alg"]) == (passkey.kid, algorithm)
    assert is_right(passkey, key)


def test_a_new_passkey_is_a_key_as_clients_have_it() -> None:
    passkey = a_passkey()
    answer = passkey.create(SITE.to_create(ADA, "s"))

    key = SITE.read_new(answer, "s")

    assert {name: key[name] for name in ("kty", "crv", "alg", "kid")} == {
        "kty": "EC",
        "crv": "P-256",
        "alg": "ES256",
        "kid": passkey.kid,
    }
    assert check_key_set(dumps({"keys": [key]}))


def test_a_browser_creates_a_passkey_for_the_person_and_not_one_that_there_is() -> None:
    key = SITE.read_new(a_passkey().create(SITE.to_create(ADA, "s")), "s")
    known = a_client(id=ADA.id, name="Ada", jwks=check_key_set(dumps({"keys": [key]})))

    options = json.loads(SITE.to_create(known, "s"))

    assert (options["rp"], options["user"]["name"]) == (
        {"id": SITE.host, "name": SITE.host},
        "Ada",
    )
    assert [f"passkey:{one['id']}" for one in options["excludeCredentials"]] == [key["kid"]]


def test_a_person_without_a_name_has_the_id_in_its_place() -> None:
    options = json.loads(SITE.to_create(a_client(id="c-1", name=""), "s"))

    assert options["user"]["name"] == "c-1"


def test_a_sign_in_needs_a_verified_user_and_its_own_challenge() -> None:
    first, second = (json.loads(SITE.to_sign_in(one)) for one in ("s", "t"))

    assert (first["userVerification"], first["rpId"]) == ("required", SITE.host)
    assert first["challenge"] != second["challenge"]


def test_an_answer_to_another_challenge_is_refused() -> None:
    passkey = a_passkey()
    key = created(passkey)

    assert not is_right(passkey, key, statement="of another time")
    with pytest.raises(PasskeyRefused):
        SITE.read_new(passkey.create(SITE.to_create(ADA, "s")), "of another time")


def test_an_answer_of_another_site_is_refused() -> None:
    passkey = a_passkey()
    key = created(passkey)
    passkey.origin = "https://evil.example"

    assert not is_right(passkey, key)
    with pytest.raises(PasskeyRefused):
        created(passkey)


def test_an_answer_for_another_host_is_refused() -> None:
    passkey = a_passkey()
    key = created(passkey)
    passkey.host = "evil.example"

    assert not is_right(passkey, key)


def test_a_user_that_is_only_present_is_refused() -> None:
    passkey = a_passkey()
    key = created(passkey)
    passkey.flags = PRESENT

    assert not is_right(passkey, key)
    with pytest.raises(PasskeyRefused):
        created(a_passkey(flags=PRESENT))


def test_another_passkey_is_refused() -> None:
    assert not is_right(a_passkey(host=SITE.host), created(a_passkey()))


def test_a_changed_signature_is_refused() -> None:
    passkey = a_passkey()

    assert not is_right(passkey, created(passkey), signature=b"\x30\x06\x02\x01\x01\x02\x01\x01")


@pytest.mark.parametrize(("length", "taken"), [(184, True), (185, False)])
def test_the_id_of_a_passkey_fits_into_the_name_of_a_key(length: int, *, taken: bool) -> None:
    passkey = a_passkey(id=b"x" * length)

    if taken:
        assert created(passkey).kid == passkey.kid
    else:
        with pytest.raises(PasskeyRefused, match="ValueError"):
            created(passkey)


def test_a_browser_names_the_person_and_the_key() -> None:
    passkey = a_passkey()
    created(passkey)

    answer = passkey.sign_in(SITE.to_sign_in("s"))

    assert SITE.claimed_key(answer) == (ADA.id, passkey.kid)


@pytest.mark.parametrize("credential", ["", "{}", "[]", "text", '{"id":"x"}'])
def test_what_is_no_answer_of_a_browser_is_refused_without_its_text(credential: str) -> None:
    for read in (SITE.claimed_key, lambda one: SITE.read_new(one, "s")):
        with pytest.raises(PasskeyRefused) as refused:
            read(credential)
        assert not credential or credential not in str(refused.value)


@pytest.mark.parametrize(("length", "reason"), [(32_768, "Invalid"), (32_769, "TooLong")])
def test_an_answer_that_is_too_long_is_not_read(length: int, reason: str) -> None:
    reads: list[Callable[[str], Any]] = [SITE.claimed_key, lambda one: SITE.read_new(one, "s")]
    for read in reads:
        with pytest.raises(PasskeyRefused, match=reason):
            read("x" * length)


def test_a_browser_creates_a_passkey_beside_all_that_there_are() -> None:
    keys = [SITE.read_new(a_passkey().create(SITE.to_create(ADA, "s")), "s") for _ in range(3)]
    known = a_client(id=ADA.id, name="Ada", jwks=check_key_set(dumps({"keys": keys})))

    options = json.loads(SITE.to_create(known, "s"))

    excluded = [f"passkey:{one['id']}" for one in options["excludeCredentials"]]
    assert excluded == [key["kid"] for key in keys]
