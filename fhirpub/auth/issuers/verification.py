"""Whether an access token of another issuer is right: by its text, the keys and the time alone.

Its form is that of RFC 9068, as far as issuers follow it: many write ``typ`` as ``JWT``. The
header names a key only: ``jku``, ``jwk``, ``x5c`` and ``x5u`` are never followed (RFC 8725).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from fhirpub.auth import refusals
from fhirpub.auth.assertions.key_set import ALGORITHMS, PublicKey
from fhirpub.auth.assertions.verification import names_one_of
from fhirpub.auth.jwt import Segments, certificate_of, numeric_date
from fhirpub.plugin_api.issuers import TokenIssuer

MAX_CHARACTERS = 8_192
"""Tokens of other issuers carry more than ours, such as the groups of a user."""

_TYPES = ("at+jwt", "application/at+jwt", "jwt")
_AHEAD_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """When a verified token ends, in milliseconds, and the certificate that it is bound to."""

    until: int
    certificate: str


def check_header(token: Segments) -> None:
    """Raise NotAuthenticated for a header that no token of an issuer may have."""
    kind = token.header.get("typ", "JWT")
    if type(kind) is not str or kind.lower() not in _TYPES or "crit" in token.header:
        raise refusals.unproved("header")
    if token.header.get("alg") not in ALGORITHMS:
        raise refusals.unproved("alg")
    if not token.kid:
        raise refusals.unproved("no kid")


def check_signature(token: Segments, keys: Sequence[PublicKey]) -> None:
    """Raise NotAuthenticated unless the named key, which must be one, signed the token."""
    algorithm = token.header["alg"]
    named = [key for key in keys if key.kid == token.kid]
    if not named:
        raise refusals.unproved("kid")
    named = [key for key in named if algorithm in key.verifiers]
    if len(named) != 1:
        raise refusals.unproved("alg")
    if not named[0].verifies(algorithm, token.message, token.signature):
        raise refusals.unproved("signature")


def check_claims(
    payload: Mapping[str, Any], issuer: TokenIssuer, *, leeway_seconds: int, now: int
) -> Proved:
    """Return until when a token is valid, whose signature is verified.

    Raises NotAuthenticated. The audience is compared with that of the issuer: a token of it for
    another service is none for this one, nor is an ID token, which is for its client.
    """
    if payload.get("iss") != issuer.url:
        raise refusals.misdirected("iss", "issuer")
    if not names_one_of(payload.get("aud"), [issuer.audience]):
        raise refusals.misdirected("aud", "audience")
    if payload.get("typ", "Bearer") != "Bearer":  # Keycloak signs all its tokens with one key
        raise refusals.misdirected("typ of the claims", "purpose")
    end = math.floor((_seconds(payload, "exp") + leeway_seconds) * 1000)
    if now >= end:
        raise refusals.expired()
    for name, ahead in (("nbf", leeway_seconds), ("iat", max(leeway_seconds, _AHEAD_SECONDS))):
        if name in payload and now < (_seconds(payload, name) - ahead) * 1000:
            raise refusals.not_yet_valid(name)
    return Proved(until=end, certificate=certificate_of(payload))


def _seconds(payload: Mapping[str, Any], name: str) -> int | float | Decimal:
    seconds = numeric_date(payload.get(name))
    if seconds is None:
        raise refusals.lacks(name)
    return seconds
