"""Whether an assertion is right: decided by its text, the keys, the audiences and the time alone.

SMART App Launch 2 (Backend Services) defines what it must hold, RFC 7523 how it authenticates. Its
header names a key only: ``jku``, ``jwk``, ``x5c`` and ``x5u`` are never followed.

A caller takes the subject from `open_assertion`, finds the keys registered for it, calls
`verify_assertion`, and then has the store accept the ``jti`` once:
``ClientActivity.use_assertion``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from fhirpub.auth.assertions.key_set import ALGORITHMS, PublicKey
from fhirpub.auth.jwt import MAX_CHARACTERS, numeric_date, parse_segments
from fhirpub.errors import NotAuthenticated
from fhirpub.runtime.clock import Clock

MAX_SECONDS = 300
"""How far ahead an assertion may expire."""
SKEW_SECONDS = 60
"""How far the clock of a client may be ahead."""
TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

_TYPES = ("jwt", "client-authentication+jwt")
_MAX_TEXT_LENGTH = 255
_MAX_AUDIENCES = 10
_SHAPE = f"must be a signed JWT in its compact form, of at most {MAX_CHARACTERS} characters"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAssertion:
    """An assertion taken apart; nothing in it is proved yet."""

    algorithm: str
    kid: str
    subject: str
    """The client that it claims to come from: equal to ``iss``."""
    payload: Mapping[str, Any] = field(repr=False)
    message: bytes = field(repr=False)
    signature: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """What a verified assertion states."""

    subject: str
    jti: str
    expires: int
    """When it is refused as expired, in milliseconds: until then its ``jti`` is remembered."""


class AssertionRefused(ValueError):
    """An assertion is wrong. Its text is a fixed sentence, which may be sent and logged."""


def open_assertion(text: str) -> OpenedAssertion:
    """Take an assertion apart; raises AssertionRefused for what none can look like."""
    try:
        segments = parse_segments(text)
    except NotAuthenticated:
        raise AssertionRefused(_SHAPE) from None
    header, payload = segments.header, segments.payload
    kind = header.get("typ", "JWT")
    if type(kind) is not str or kind.lower() not in _TYPES or "crit" in header:
        raise AssertionRefused("must have typ JWT in its header, and no crit")
    algorithm = header.get("alg")
    if algorithm not in ALGORITHMS:
        raise AssertionRefused(f"must be signed by one of {', '.join(ALGORITHMS)}: alg")
    if not segments.kid:
        raise AssertionRefused("must name its key in its header: kid")
    subject = _text(payload, "sub")
    if payload.get("iss") != subject:
        raise AssertionRefused("must have the client_id in both iss and sub")
    return OpenedAssertion(
        algorithm=algorithm,
        kid=segments.kid,
        subject=subject,
        payload=payload,
        message=segments.message,
        signature=segments.signature,
    )


def verify_assertion(
    opened: OpenedAssertion,
    keys: Iterable[PublicKey],
    *,
    audiences: Sequence[str],
    clock: Clock,
    leeway_seconds: int = 0,
) -> Assertion:
    """Return what an assertion states if one of the keys of its subject signed it.

    Args:
        opened: The assertion.
        keys: The keys that are registered for its subject, and no others.
        audiences: What ``aud`` may be; the first is what clients are advised to send.
        clock: The current time.
        leeway_seconds: How much later than ``exp`` it is still accepted.

    Returns:
        The subject, the ``jti`` that must be accepted only once, and the end.

    Raises:
        AssertionRefused: It is not signed by one of the keys, is for another audience, has
            expired, or expires later than in five minutes.
    """
    named = [key for key in keys if key.kid == opened.kid and opened.algorithm in key.verifiers]
    # Several keys of one name leave open which was meant (SMART App Launch 2).
    if len(named) != 1 or not named[0].verifies(
        opened.algorithm, opened.message, opened.signature
    ):
        raise AssertionRefused("is not signed by a key that is registered for its client")
    now, payload = clock(), opened.payload
    if not names_one_of(payload.get("aud"), audiences):
        raise AssertionRefused(f"must have the aud {audiences[0]}")
    expires = _check_times(payload, now, leeway_seconds)
    return Assertion(subject=opened.subject, jti=_text(payload, "jti"), expires=expires)


def names_one_of(sent: Any, audiences: Sequence[str]) -> bool:
    """Return whether an ``aud``, a text or a short list, names one of the audiences."""
    named = [sent] if type(sent) is str else sent
    if type(named) is not list or len(named) > _MAX_AUDIENCES:
        return False
    return any(type(one) is str and one in audiences for one in named)


def _check_times(payload: Mapping[str, Any], now: int, leeway_seconds: int) -> int:
    """Return when an assertion ends, in milliseconds, if it is valid now."""
    end = math.floor((_seconds(payload, "exp") + leeway_seconds) * 1000)
    if now >= end:
        raise AssertionRefused("has expired: sign a new one")
    latest = now + (MAX_SECONDS + SKEW_SECONDS) * 1000
    if _seconds(payload, "exp") * 1000 > latest:
        raise AssertionRefused("must expire within five minutes: exp")
    for name in ("iat", "nbf"):
        if name in payload and _seconds(payload, name) * 1000 > now + SKEW_SECONDS * 1000:
            raise AssertionRefused(f"is not valid yet: compare the clocks of both sides, {name}")
    return end


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    length = len(value) if type(value) is str and value.isprintable() else 0
    if not 0 < length <= _MAX_TEXT_LENGTH:
        most = f"1 to {_MAX_TEXT_LENGTH} printable characters"
        raise AssertionRefused(f"must have a text of {most}: {name}")
    return str(value)


def _seconds(payload: Mapping[str, Any], name: str) -> int | float | Decimal:
    seconds = numeric_date(payload.get(name))
    if seconds is None:
        raise AssertionRefused(f"must have a time in seconds since 1970: {name}")
    return seconds
