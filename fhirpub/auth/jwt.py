"""Access tokens as texts: written one way, and read only if they are exactly so (RFC 9068, 8725).

What python-jose leaves open is closed here before it sees a token: altered base64, unknown
header members, claims of other types, names given twice, deep nesting.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import orjson
from jose import jws
from jose.exceptions import JOSEError

from fhirpub.auth import refusals
from fhirpub.auth.keys import ReadyKey
from fhirpub.errors import Refused
from fhirpub.fhir.strict_json import loads

MAX_CHARACTERS = 4096
TYPE = "at+jwt"
REGISTERED = frozenset(
    {"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "client_id", "scope", "cnf"}
)
CERTIFICATE = "x5t#S256"

_SEGMENTS = 3
_SEGMENT = re.compile("[A-Za-z0-9_-]+")
_HEADER = {"alg", "kid", "typ"}
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LATEST = 253_402_300_799  # the last second of the year 9999
_AHEAD_SECONDS = 60
_MAX_TEXT_LENGTH = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """The parts of a JWT; nothing in it is proved yet."""

    header: Mapping[str, Any] = field(repr=False)
    payload: dict[str, Any] = field(repr=False)
    message: bytes = field(repr=False)
    """What is signed."""
    signature: bytes = field(repr=False)

    @property
    def kid(self) -> str:
        """The key that its header names; empty if it names none."""
        kid = self.header.get("kid")
        return kid if type(kid) is str else ""


@dataclass(frozen=True, slots=True)
class Opened:
    """A token of ours taken apart; nothing in it is proved yet."""

    algorithm: str
    kid: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The claims of a token, in the right types. ``expires`` is in seconds since 1970."""

    jti: str
    client_id: str
    tenant: str
    scopes: tuple[str, ...]
    expires: int
    certificate: str = ""
    """The digest of the certificate that the token is bound to (RFC 8705, 3.1), or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The claims that a token of ours must have to be good here and now."""

    issuer: str
    audience: str
    tenant_claim: str
    leeway_seconds: int

    def claims_of(self, payload: Mapping[str, Any], *, now: int) -> Claims:
        """Return the claims at a moment in milliseconds; raises NotAuthenticated.

        The signature must have been verified: the refusals name what is wrong.
        """
        if payload.get("iss") != self.issuer:
            raise refusals.misdirected("iss", "issuer")
        if payload.get("aud") != self.audience:  # a list is nothing that we issue
            raise refusals.misdirected("aud", "audience")
        _text(payload, "sub")
        jti = _text(payload, "jti")
        expires = self._expires(payload, now)
        tenant = _text(payload, self.tenant_claim)
        if _UUID.fullmatch(tenant) is None:
            raise refusals.lacks(self.tenant_claim)
        scope = payload.get("scope", "")
        if type(scope) is not str:
            raise refusals.lacks("scope")
        return Claims(
            jti=jti,
            client_id=_text(payload, "client_id"),
            tenant=tenant,
            scopes=tuple(scope.split()),
            expires=expires,
            certificate=certificate_of(payload),
        )

    def _expires(self, payload: Mapping[str, Any], now: int) -> int:
        leeway = self.leeway_seconds
        expires, issued = _seconds(payload, "exp"), _seconds(payload, "iat")
        if now >= (expires + leeway) * 1000:
            raise refusals.expired()
        if now < (issued - max(leeway, _AHEAD_SECONDS)) * 1000:
            raise refusals.not_yet_valid("iat")
        if "nbf" in payload and now < (_seconds(payload, "nbf") - leeway) * 1000:
            raise refusals.not_yet_valid("nbf")
        return expires


def encode(claims: Mapping[str, Any], key: ReadyKey, *, type_: str = TYPE) -> str:
    """Return a signed token, or a statement of another type that is no token."""
    return jws.sign(
        orjson.dumps(claims),
        key.signer,
        headers={"typ": type_, "kid": key.kid},
        algorithm=key.algorithm,
    )


def decode(token: str, *, type_: str = TYPE) -> Opened:
    """Take a token apart; raises NotAuthenticated unless it is written as we write them."""
    segments = parse_segments(token)
    members = segments.header
    if members.keys() != _HEADER or members["typ"] != type_:
        raise refusals.unproved("header")
    algorithm, kid = members["alg"], members["kid"]
    if type(algorithm) is not str or type(kid) is not str:
        raise refusals.unproved("header")
    return Opened(algorithm, kid, segments.payload)


def parse_segments(token: str, *, most: int = MAX_CHARACTERS) -> Segments:
    """Take a JWT apart.

    Raises NotAuthenticated unless each segment has exactly one reading, and one that is an object.
    """
    if len(token) > most:
        raise refusals.unproved("too long")
    segments = token.split(".", _SEGMENTS)
    if len(segments) != _SEGMENTS:
        raise refusals.unproved("segments")
    header, payload, signature = [_decode_segment(segment) for segment in segments]
    return Segments(
        header=_object(header),
        payload=_object(payload),
        message=token.rpartition(".")[0].encode(),
        signature=signature,
    )


def check_signature(token: str, claimed: Opened, key: ReadyKey | None) -> None:
    """Raise NotAuthenticated unless this key, with its own algorithm, signed the token."""
    if key is None:
        raise refusals.unproved("kid")
    if claimed.algorithm != key.algorithm:
        raise refusals.unproved("alg")
    try:
        jws.verify(token, key.verifier, algorithms=[key.algorithm])
    except (JOSEError, ValueError, ArithmeticError, RecursionError):
        raise refusals.unproved("signature") from None


def _decode_segment(segment: str) -> bytes:
    """Decode a segment that is the one text of its bytes: no padding, blanks or spare bits."""
    if _SEGMENT.fullmatch(segment) is None or len(segment) % 4 == 1:
        raise refusals.unproved("base64url")
    raw = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != segment:
        raise refusals.unproved("base64url")
    return raw


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = loads(raw)
    except Refused:
        raise refusals.unproved("JSON") from None
    if type(value) is not dict:
        raise refusals.unproved("JSON")
    return value


def certificate_of(payload: Mapping[str, Any]) -> str:
    """Return the certificate that a token is bound to, or nothing.

    Raises NotAuthenticated for one that is bound otherwise, which cannot be checked.
    """
    if "cnf" not in payload:
        return ""
    bound = payload["cnf"]
    if type(bound) is not dict or bound.keys() != {CERTIFICATE}:
        raise refusals.lacks("cnf")
    return _text(bound, CERTIFICATE)


def numeric_date(value: Any) -> int | float | Decimal | None:
    """Return a value if it is a NumericDate, which need not be an integer (RFC 7519, 2)."""
    is_number = isinstance(value, int | float | Decimal) and type(value) is not bool
    return value if is_number and 0 <= value <= _LATEST else None


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    if type(value) is not str or not 0 < len(value) <= _MAX_TEXT_LENGTH:
        raise refusals.lacks(name)
    return value


def _seconds(payload: Mapping[str, Any], name: str) -> int:
    value = payload.get(name)
    if type(value) is not int or not 0 <= value <= _LATEST:
        raise refusals.lacks(name)
    return value
