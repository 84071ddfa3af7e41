"""The signing secrets and the token of an endpoint: made, encrypted, and rotated."""

from __future__ import annotations

import secrets
from dataclasses import replace

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import BrokenRule
from fhirpub.problems import OperationProblem
from fhirpub.storage.webhook_contract import Endpoint, EndpointSecret
from fhirpub.webhooks.management.secret_encryption import token_of

MAX_OLD_SECRETS = 5

_TOKEN_PREFIX = "whtok_"  # noqa: S105 - says what it is
_TOKEN_BYTES = 32


def new_token() -> str:
    """Return a random token, by whose prefix it is recognized."""
    return _TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)


def encrypt_secret(endpoint_id: str, secret: str, seal: SecretCipher) -> EndpointSecret:
    """Return a signing secret of an endpoint as it is stored. Raises SecretsUnavailable."""
    return EndpointSecret(seal.encrypt(secret, endpoint=endpoint_id, purpose="secret"))


def reencrypt(endpoint: Endpoint, seal: SecretCipher) -> Endpoint:
    """Return an endpoint with its secrets under the first key. Raises SecretsUnavailable."""

    def again(each: EndpointSecret) -> EndpointSecret:
        text = seal.decrypt(each.sealed, endpoint=endpoint.id, purpose="secret")
        return replace(encrypt_secret(endpoint.id, text, seal), expires=each.expires)

    token = token_of(endpoint, seal)
    return replace(
        endpoint,
        secrets=tuple(again(secret) for secret in endpoint.secrets),
        token=seal.encrypt(token, endpoint=endpoint.id, purpose="token"),
    )


def with_new_secret(endpoint: Endpoint, sealed: EndpointSecret, *, now: int, end: int) -> Endpoint:
    """Return an endpoint with another signing secret; the one before it is valid until ``end``.

    What was replaced earlier keeps its own end, unless all are to end now: receivers may still be
    moving from it. Raises BrokenRule if more than 5 would be left.
    """
    old = [_ending(secret, now=now, end=end) for secret in endpoint.secrets]
    live = [secret for secret in old if secret.expires is not None and now < secret.expires]
    if len(live) > MAX_OLD_SECRETS:
        raise BrokenRule.because(
            f"has {MAX_OLD_SECRETS} earlier secrets whose time is not over; "
            "wait for one to end, or rotate with grace_seconds 0",
            details=OperationProblem.SECRETS_TOO_MANY,
        )
    return replace(endpoint, secrets=(sealed, *live))


def _ending(secret: EndpointSecret, *, now: int, end: int) -> EndpointSecret:
    if secret.expires is None or end <= now:
        return replace(secret, expires=end)
    return secret
