"""Which secrets of an endpoint sign, and that no other endpoint can use them."""

from __future__ import annotations

import pytest

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import SecretsUnavailable
from fhirpub.storage.webhook_contract import Endpoint, EndpointSecret
from fhirpub.testing.webhook_contract import NOW, an_endpoint
from fhirpub.webhooks.management.secret_encryption import live_secrets, token_of

CIPHER = SecretCipher([b"k" * 32])


def endpoint(*secrets: tuple[str, int | None]) -> Endpoint:
    made = an_endpoint()
    sealed = tuple(
        EndpointSecret(CIPHER.encrypt(text, endpoint=made.id, purpose="secret"), expires)
        for text, expires in secrets
    )
    token = CIPHER.encrypt("token", endpoint=made.id, purpose="token")
    return an_endpoint(id=made.id, secrets=sealed, token=token)


def test_secrets_sign_until_their_end_the_newest_first() -> None:
    made = endpoint(("new", None), ("old", NOW + 1), ("older", NOW), ("oldest", NOW - 1))

    assert live_secrets(made, CIPHER, now=NOW) == ("new", "old")


def test_the_token_is_the_one_of_the_endpoint() -> None:
    assert token_of(endpoint(), CIPHER) == "token"


def test_a_secret_that_was_moved_to_another_endpoint_signs_nothing() -> None:
    moved = an_endpoint(secrets=endpoint(("secret", None)).secrets, token=endpoint().token)

    with pytest.raises(SecretsUnavailable):
        live_secrets(moved, CIPHER, now=NOW)
    with pytest.raises(SecretsUnavailable):
        token_of(moved, CIPHER)


def test_a_token_is_no_secret_to_sign_with() -> None:
    made = endpoint()
    swapped = an_endpoint(id=made.id, secrets=(EndpointSecret(made.token),))

    with pytest.raises(SecretsUnavailable):
        live_secrets(swapped, CIPHER, now=NOW)


def test_an_expired_secret_of_a_lost_key_stops_nothing() -> None:
    made = an_endpoint(secrets=(EndpointSecret(b"lost", NOW),))

    assert live_secrets(made, CIPHER, now=NOW) == ()
