"""The secrets of an endpoint: each rotation, the end of each earlier one, and another key."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import BrokenRule, SecretsUnavailable
from fhirpub.problems import OperationProblem
from fhirpub.storage.webhook_contract import Endpoint, EndpointSecret
from fhirpub.webhooks.management.endpoint_secrets import (
    encrypt_secret,
    new_token,
    reencrypt,
    with_new_secret,
)

NOW, HOUR, DAY = 1_800_000_000_000, 3_600_000, 86_400_000
ENDPOINT = Endpoint(
    id="e",
    tenant="t",
    url="https://receiver.example.org",
    created=NOW,
    secrets=(EndpointSecret(b"1"),),
)
NEXT = EndpointSecret(b"next")
OLD_KEY, NEW_KEY = bytes(32), bytes(range(32))


def with_earlier(count: int, *, expires: int) -> Endpoint:
    """Return the endpoint with earlier secrets, beside the one that is in use."""
    earlier = [EndpointSecret(b"%d" % number, expires) for number in range(count)]
    return replace(ENDPOINT, secrets=(EndpointSecret(b"current"), *earlier))


def test_a_second_rotation_leaves_the_grace_of_the_first() -> None:
    first = with_new_secret(ENDPOINT, EndpointSecret(b"2"), now=NOW, end=NOW + DAY)

    later = NOW + 1
    second = with_new_secret(first, EndpointSecret(b"3"), now=later, end=later + HOUR)

    ends = {secret.sealed: secret.expires for secret in second.secrets}
    assert ends == {b"3": None, b"2": later + HOUR, b"1": NOW + DAY}


def test_the_secrets_stand_from_the_newest_to_the_oldest() -> None:
    first = with_new_secret(ENDPOINT, EndpointSecret(b"2"), now=NOW, end=NOW + DAY)

    second = with_new_secret(first, EndpointSecret(b"3"), now=NOW, end=NOW + DAY)

    assert [secret.sealed for secret in second.secrets] == [b"3", b"2", b"1"]


def test_a_rotation_without_grace_ends_all_before_it() -> None:
    first = with_new_secret(ENDPOINT, EndpointSecret(b"2"), now=NOW, end=NOW + DAY)

    second = with_new_secret(first, EndpointSecret(b"3"), now=NOW + 1, end=NOW + 1)

    assert second.secrets == (EndpointSecret(b"3"),)


def test_an_earlier_secret_is_dropped_exactly_at_its_end() -> None:
    endpoint = with_earlier(1, expires=NOW)

    before = with_new_secret(endpoint, NEXT, now=NOW - 1, end=NOW + HOUR)
    at_its_end = with_new_secret(endpoint, NEXT, now=NOW, end=NOW + HOUR)

    assert [secret.sealed for secret in before.secrets] == [b"next", b"current", b"0"]
    assert [secret.sealed for secret in at_its_end.secrets] == [b"next", b"current"]


def test_a_grace_of_a_millisecond_is_a_grace() -> None:
    rotated = with_new_secret(with_earlier(1, expires=NOW + DAY), NEXT, now=NOW, end=NOW + 1)

    assert [secret.expires for secret in rotated.secrets] == [None, NOW + 1, NOW + DAY]


def test_five_earlier_secrets_may_be_left() -> None:
    rotated = with_new_secret(with_earlier(4, expires=NOW + 1), NEXT, now=NOW, end=NOW + HOUR)

    assert len(rotated.secrets) == 6


def test_a_sixth_earlier_secret_is_refused() -> None:
    with pytest.raises(
        BrokenRule,
        match=r"^has 5 earlier secrets whose time is not over; wait for one to end, or rotate "
        r"with grace_seconds 0$",
    ) as refused:
        with_new_secret(with_earlier(5, expires=NOW + 1), NEXT, now=NOW, end=NOW + HOUR)

    (issue,) = refused.value.issues
    assert (issue.details, issue.code) == (OperationProblem.SECRETS_TOO_MANY, "business-rule")


def test_earlier_secrets_whose_time_is_over_are_not_too_many() -> None:
    rotated = with_new_secret(with_earlier(50, expires=NOW), NEXT, now=NOW, end=NOW + HOUR)

    assert len(rotated.secrets) == 2


def test_without_grace_there_are_never_too_many() -> None:
    rotated = with_new_secret(with_earlier(9, expires=NOW + DAY), NEXT, now=NOW, end=NOW)

    assert rotated.secrets == (NEXT,)


def test_a_rotation_changes_nothing_but_the_secrets() -> None:
    rotated = with_new_secret(ENDPOINT, NEXT, now=NOW, end=NOW + HOUR)

    assert replace(rotated, secrets=ENDPOINT.secrets) == ENDPOINT


def test_a_token_is_known_by_its_prefix_and_never_the_same() -> None:
    tokens = {new_token() for _ in range(3)}

    assert len(tokens) == 3
    assert all(re.fullmatch("whtok_[A-Za-z0-9_-]{43}", token) for token in tokens)


def test_a_secret_is_encrypted_for_its_endpoint() -> None:
    seal = SecretCipher([NEW_KEY])

    secret = encrypt_secret("e", "whsec_x", seal)

    assert secret.expires is None
    assert seal.decrypt(secret.sealed, endpoint="e", purpose="secret") == "whsec_x"
    with pytest.raises(SecretsUnavailable):
        seal.decrypt(secret.sealed, endpoint="other", purpose="secret")


def sealed_endpoint() -> Endpoint:
    old = SecretCipher([OLD_KEY])
    secrets = (
        encrypt_secret("e", "whsec_new", old),
        replace(encrypt_secret("e", "whsec_old", old), expires=NOW + DAY),
    )
    token = old.encrypt("whtok_x", endpoint="e", purpose="token")
    return replace(ENDPOINT, secrets=secrets, token=token)


def test_an_endpoint_under_another_key_has_the_same_secrets_ends_and_token() -> None:
    endpoint, seal = sealed_endpoint(), SecretCipher([NEW_KEY])

    again = reencrypt(endpoint, SecretCipher([NEW_KEY, OLD_KEY]))

    texts = [
        (seal.decrypt(secret.sealed, endpoint="e", purpose="secret"), secret.expires)
        for secret in again.secrets
    ]
    assert texts == [("whsec_new", None), ("whsec_old", NOW + DAY)]
    assert seal.decrypt(again.token, endpoint="e", purpose="token") == "whtok_x"
    assert replace(again, secrets=endpoint.secrets, token=endpoint.token) == endpoint


def test_an_endpoint_whose_key_is_lost_is_not_encrypted_again() -> None:
    with pytest.raises(SecretsUnavailable):
        reencrypt(sealed_endpoint(), SecretCipher([NEW_KEY]))
