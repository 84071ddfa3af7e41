"""Key pairs, and the assertions that are signed with them (RFC 7523, section 2.2)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jose import jwk, jws
from jose.exceptions import JOSEError

from fhirpub.errors import ConfigurationError
from fhirpub.runtime.clock import Clock

_ALGORITHM = "ES384"
_SECONDS = 60
_BY_KIND = {"P-384": _ALGORITHM, "P-256": "ES256", "RSA": "RS384"}
_NO_KEY = f"is no private key for {', '.join(_BY_KIND.values())} as a JWK with a kid"


def new_key_pair() -> tuple[dict[str, str], dict[str, list[dict[str, str]]]]:
    """Return a private key as a JWK, and the JWK Set with its public key (RFC 7517)."""
    pem = ec.generate_private_key(ec.SECP384R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    private = jwk.construct(pem.decode(), _ALGORITHM)
    named = {"kid": secrets.token_hex(8), "use": "sig"}
    public = {**_texts(private.public_key().to_dict()), **named}
    return {**_texts(private.to_dict()), **named}, {"keys": [public]}


def sign_assertion(key: Any, *, subject: str, audience: str, clock: Clock) -> str:
    """Return an assertion that is valid for a minute.

    Args:
        key: The private key as a JWK with a ``kid``, such as :func:`new_key_pair` returns.
        subject: The client that authenticates by it.
        audience: The URL at which it is used.
        clock: The current time.

    Raises:
        ConfigurationError: It is no such key.
    """
    if not isinstance(key, dict) or not isinstance(key.get("kid"), str):
        raise ConfigurationError(_NO_KEY)
    now = clock() // 1000
    claims = {
        "iss": subject,
        "sub": subject,
        "aud": audience,
        "iat": now,
        "exp": now + _SECONDS,
        "jti": secrets.token_urlsafe(24),
    }
    headers = {"typ": "JWT", "kid": key["kid"]}
    algorithm = _BY_KIND.get(str(key.get("crv", key.get("kty"))), _ALGORITHM)
    try:
        signer = jwk.construct(key, algorithm)
        return jws.sign(orjson.dumps(claims), signer, headers=headers, algorithm=algorithm)
    except (JOSEError, ValueError, TypeError):
        raise ConfigurationError(_NO_KEY) from None


def _texts(members: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value.decode() if isinstance(value, bytes) else value
        for name, value in members.items()
    }
