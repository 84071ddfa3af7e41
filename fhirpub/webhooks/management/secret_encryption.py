"""The secrets of endpoints as they are sent, decrypted by the cipher of the store (D-206)."""

from __future__ import annotations

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.storage.webhook_contract import Endpoint


def live_secrets(endpoint: Endpoint, seal: SecretCipher, *, now: int) -> tuple[str, ...]:
    """Return the secrets that sign for an endpoint, newest first. Raises SecretsUnavailable."""
    return tuple(
        seal.decrypt(secret.sealed, endpoint=endpoint.id, purpose="secret")
        for secret in endpoint.secrets
        if secret.expires is None or now < secret.expires
    )


def token_of(endpoint: Endpoint, seal: SecretCipher) -> str:
    """Return the token by which an endpoint knows us. Raises SecretsUnavailable."""
    return seal.decrypt(endpoint.token, endpoint=endpoint.id, purpose="token")
