"""Key pairs, and assertions of any content."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
from joserfc.jwk import ECKey, KeyParameters, RSAKey
from joserfc.jws import JWSRegistry, serialize_compact

AUDIENCE = "https://fhir.example.org/oauth/token"
NOW = 1_800_000_000
CLIENT_ID = "0b7e4cf0-1111-4222-8333-444455556666"
_ANY_ALGORITHM = JWSRegistry(algorithms=["RS256", "RS384", "RS512", "ES256", "ES384", "PS384"])
_ANY_ALGORITHM.strict_check_header = False


@dataclass(frozen=True)
class Pair:
    """A key pair of a client, made by another library."""

    private: RSAKey | ECKey
    algorithm: str

    def public(self, **changes: Any) -> dict[str, Any]:
        return {**self.private.as_dict(private=False), **changes}

    def sign(
        self, claims: Mapping[str, Any] | bytes, *, header: Mapping[str, Any] | None = None
    ) -> str:
        """Sign anything: by default with the header that a client sends."""
        members = {"alg": self.algorithm, "kid": self.private.kid, "typ": "JWT"}
        payload = claims if isinstance(claims, bytes) else orjson.dumps(claims)
        sent = {**members, **(header or {})}
        protected = {name: value for name, value in sent.items() if value is not None}
        return serialize_compact(protected, payload, self.private, registry=_ANY_ALGORITHM)


@cache
def pair(algorithm: str, kid: str = "k1") -> Pair:
    """Return a key pair for an algorithm, the same for the same kid."""
    parameters: KeyParameters = {"kid": kid}
    if algorithm.startswith("ES"):
        return Pair(ECKey.generate_key(f"P-{algorithm[2:]}", parameters), algorithm)
    return Pair(RSAKey.generate_key(2048, parameters), algorithm)


def key_set(*pairs: Pair) -> bytes:
    return orjson.dumps({"keys": [one.public() for one in pairs]})


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a right assertion; None removes one."""
    usual = {
        "iss": CLIENT_ID,
        "sub": CLIENT_ID,
        "aud": AUDIENCE,
        "exp": NOW + 300,
        "iat": NOW,
        "jti": "j-1",
    }
    return {name: value for name, value in {**usual, **changes}.items() if value is not None}


def b64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
