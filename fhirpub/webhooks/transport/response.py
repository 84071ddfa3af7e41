"""What is read of a receiver's response, and what may be kept of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fhirpub.fhir.times import from_http
from fhirpub.webhooks.policy.outcome import Wish

_SECONDS = re.compile("[0-9]{1,9}")
_MAX_DATE_LENGTH = len("Wednesday, 21-Nov-26 10:00:00 GMT")
_HIDDEN = b"[token]"
_WISHES: tuple[Wish, ...] = ("disable", "abort-message")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """What came of a request for a document: ``problem`` is empty, or why there is no body."""

    problem: str = ""
    body: bytes = field(default=b"", repr=False)
    cache_control: str = ""


def retry_after(text: str, now: int) -> float | None:
    """Read the header as seconds from now: whole seconds, or a date (RFC 9110 section 10.2.3)."""
    if _SECONDS.fullmatch(text):
        return float(text)
    moment = from_http(text) if 0 < len(text) <= _MAX_DATE_LENGTH else None
    return None if moment is None else max(0.0, (moment - now) / 1000)


def wish_in(text: str) -> Wish | None:
    """Read the header by which a receiver asks to be sent no more."""
    wish = text.strip().lower()
    return next((item for item in _WISHES if item == wish), None)


def as_kept(answer: bytes, token: str) -> bytes:
    """Return what may be kept of an answer that repeats the token."""
    return answer.replace(token.encode(), _HIDDEN)
