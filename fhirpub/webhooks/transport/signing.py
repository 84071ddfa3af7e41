"""Signatures of deliveries, made and verified with nothing but the standard library.

What is signed is ``webhook-id + "." + webhook-timestamp + "." + body``, by HMAC-SHA-256. The
result stands in two headers: ``webhook-signature`` in base64, as Standard Webhooks has it, and
``X-Webhook-Signature`` in hex with its time. While a secret is being replaced, both list one
signature for each secret (ADR 20).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets as random_source
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

TOLERANCE_SECONDS = 300
"""How far a delivery's time may be from the receiver's clock."""

Reason = Literal["headers", "clock", "rewritten-body", "no-match"]
"""Why a delivery is not verified; the sentences are in :class:`NotVerified`."""

_PREFIX = "whsec_"
_NEW_SECRET_BYTES = 32
_SHORTEST, _LONGEST = 24, 64
_ID = re.compile(r"[A-Za-z0-9_]{1,64}")
_TIME = re.compile(r"[0-9]{1,12}")
_MAX_SIGNATURES = 20
_MAX_EXPLAINED_BYTES = 65_536


class BadSecret(ValueError):
    """A signing secret cannot be used. The text does not hold it."""


class NotVerified(Exception):
    """A delivery must not be trusted. ``reason`` is why, the text is what to do about it."""

    _SENTENCES: Mapping[Reason, str] = {
        "headers": "a header of the signature is missing or malformed",
        "clock": "the signature is right, but its time is too far from this clock: set the "
        "clock, or it is an old delivery that is being sent again",
        "rewritten-body": "the signature is of another text of the same JSON: verify the bytes "
        "as they came, before anything reads and writes them again",
        "no-match": "no signature matches: the secret is another one, or the body, the id or "
        "the time was changed on the way",
    }

    def __init__(self, reason: Reason) -> None:
        super().__init__(self._SENTENCES[reason])
        self.reason = reason


def new_secret(random_bytes: Callable[[int], bytes] = random_source.token_bytes) -> str:
    """Return a fresh signing secret, ``whsec_`` and the base64 of 32 random bytes."""
    return _PREFIX + base64.b64encode(random_bytes(_NEW_SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """Return the key in a ``whsec_`` secret: 24 to 64 bytes. Raises BadSecret."""
    if not secret.startswith(_PREFIX):
        raise BadSecret("a signing secret begins with whsec_")
    text = secret.removeprefix(_PREFIX)
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadSecret("what follows whsec_ must be base64") from None
    if base64.b64encode(key).decode() != text:
        raise BadSecret("what follows whsec_ must be base64 without spare bits")
    if not _SHORTEST <= len(key) <= _LONGEST:
        raise BadSecret(f"a signing secret has {_SHORTEST} to {_LONGEST} bytes")
    return key


def signed_headers(
    event_id: str, timestamp: int, body: bytes, *, secrets: Sequence[str]
) -> dict[str, str]:
    """Return the headers that prove a delivery, signed with each secret, newest first.

    ``timestamp`` is in seconds since 1970, of this attempt. Raises BadSecret.
    """
    if not secrets or not _ID.fullmatch(event_id):
        raise ValueError("a delivery needs a secret and an id that cannot hold a separator")
    macs = [_mac(key_of(secret), event_id, str(timestamp), body) for secret in secrets]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{_base64(mac)}" for mac in macs),
        "X-Webhook-Signature": ",".join([f"t={timestamp}", *(f"v1={mac.hex()}" for mac in macs)]),
    }


def verify(
    headers: Mapping[str, str], body: bytes, secrets: str | Iterable[str], *, now: float
) -> None:
    """Return if a delivery is authentic: any signature, in either header, by any of the secrets.

    ``headers`` are the request's, in any case; ``body`` the bytes as they came; ``now`` the
    receiver's time in seconds since 1970 (``time.time()``). Raises NotVerified with the reason,
    and BadSecret if a secret is empty, short or malformed, or none is given. The time it takes
    does not depend on how much of a signature is right.
    """
    keys = [key_of(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise BadSecret("a delivery cannot be verified without a secret")
    given = {name.lower(): value for name, value in headers.items()}
    event_id = given.get("webhook-id", "")
    claims = list(_claims(given))
    if not (_ID.fullmatch(event_id) and 0 < len(claims) <= _MAX_SIGNATURES):
        raise NotVerified("headers")
    proved = _verified_times(claims, keys, event_id, body)
    if proved and any(abs(now - int(time)) <= TOLERANCE_SECONDS for time in proved):
        return
    if proved:
        raise NotVerified("clock")
    if any(_verified_times(claims, keys, event_id, text) for text in _other_texts(body)):
        raise NotVerified("rewritten-body")
    raise NotVerified("no-match")


@dataclass(frozen=True, slots=True)
class _Claim:
    """One signature that a request carries, as text, and its claimed time."""

    time: str
    text: str
    form: Callable[[bytes], str]


def _claims(given: Mapping[str, str]) -> Iterator[_Claim]:
    time = given.get("webhook-timestamp", "")
    if _TIME.fullmatch(time):
        for part in given.get("webhook-signature", "").split():
            version, _, text = part.partition(",")
            if version == "v1":
                yield _Claim(time, text, _base64)
    first, *others = given.get("x-webhook-signature", "").split(",")
    time = first.removeprefix("t=")
    if first.startswith("t=") and _TIME.fullmatch(time):
        for other in others:
            version, _, text = other.partition("=")
            if version == "v1":
                yield _Claim(time, text, bytes.hex)


def _verified_times(
    claims: Iterable[_Claim], keys: Sequence[bytes], event_id: str, body: bytes
) -> list[str]:
    """Return the times of the claims that are right; all are looked at, whatever is found."""
    right = []
    for claim in claims:
        for key in keys:
            expected = claim.form(_mac(key, event_id, claim.time, body))
            if hmac.compare_digest(expected.encode(), claim.text.encode(errors="replace")):
                right.append(claim.time)
    return right


def _mac(key: bytes, event_id: str, timestamp: str, body: bytes) -> bytes:
    return hmac.digest(key, f"{event_id}.{timestamp}.".encode() + body, hashlib.sha256)


def _base64(mac: bytes) -> str:
    return base64.b64encode(mac).decode()


# What a framework may have made of the body before it was verified.

_NAMES = (
    *("transaction_id", "event_id", "event_type", "timestamp", "sequence", "api_version"),
    *("traceparent", "data"),
    *("resource_type", "id", "version_id", "identifier", "system", "value"),
    *("status", "previous_status", "self"),
)
"""The names of a delivery's JSON, in the order in which it is written."""


def _other_texts(body: bytes) -> Iterator[bytes]:
    """Return the texts from which the usual readers and writers of JSON could have made the body.

    Deliveries are compact UTF-8; the last form is for senders whose JSON has blanks.
    """
    yield body.strip()
    if len(body) > _MAX_EXPLAINED_BYTES:
        return
    try:
        value = json.loads(body.removeprefix(b"\xef\xbb\xbf"))
        for item in (value, _sort_keys(value), _sorted(value)):
            yield json.dumps(item, separators=(",", ":"), ensure_ascii=False).encode()
            yield json.dumps(item, separators=(",", ":")).encode()
            yield json.dumps(item).encode()
    except (ValueError, RecursionError):
        return


def _sort_keys(value: Any) -> Any:
    rank = {name: number for number, name in enumerate(_NAMES)}
    return _with_names_by(lambda name: rank.get(name, len(rank)), value)


def _sorted(value: Any) -> Any:
    return _with_names_by(str, value)


def _with_names_by(key: Callable[[str], Any], value: Any) -> Any:
    if isinstance(value, list):
        return [_with_names_by(key, item) for item in value]
    if isinstance(value, dict):
        return {name: _with_names_by(key, value[name]) for name in sorted(value, key=key)}
    return value
