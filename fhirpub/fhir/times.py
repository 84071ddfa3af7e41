"""Dates and times: local or UTC on the way in, UTC from then on (D-65, D-66, D-103)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache

_TIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"T(?P<clock>[0-9]{2}:[0-9]{2}):(?P<second>[0-9]{2})(?P<fraction>\.[0-9]+)?"
    r"(?P<offset>Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
)
_LEAP_SECOND = 60
_MAX_FRACTION_LENGTH = 10
_MAX_PLAIN_LENGTH = len("2026-11-21T10:00:00.123456789Z")


class UnstorableTime(ValueError):
    """A time of FHIR's form that cannot be kept as UTC."""


@dataclass(frozen=True, slots=True)
class UtcTime:
    """A time as it is stored. ``zone_assumed``: the sender left the offset out."""

    text: str
    zone_assumed: bool


def is_plain_utc(text: str) -> bool:
    """Return, fast, whether a text can only be a time that is UTC already, or no time."""
    return text[-1:] == "Z" and len(text) <= _MAX_PLAIN_LENGTH and ":60" not in text


def to_utc(text: str, *, default_zone: tzinfo) -> UtcTime | None:
    """Return a time in UTC with the digits of its fraction kept; ``:60`` is the next minute.

    None: the text holds no time of day, or none that exists; the schema validates it.
    Raises UnstorableTime.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    seconds = int(match["second"])
    if seconds > _LEAP_SECOND:
        return None
    offset = match["offset"]
    try:
        local = datetime.fromisoformat(f"{match['date']}T{match['clock']}:00{offset or ''}")
    except ValueError:
        return None
    if len(match["fraction"] or "") > _MAX_FRACTION_LENGTH:
        raise UnstorableTime("has more than nine digits of a second")
    zoned = local if offset else local.replace(tzinfo=default_zone)
    try:
        moment = zoned.astimezone(UTC) + timedelta(seconds=seconds)
    except OverflowError:
        raise UnstorableTime("is not in the years 0001 to 9999 as UTC") from None
    return UtcTime(f"{moment.isoformat()[:19]}{match['fraction'] or ''}Z", not offset)


@lru_cache(maxsize=1024)
def instant(milliseconds: int) -> str:
    """Return a FHIR instant in UTC, such as ``2026-11-21T10:00:00.123Z``."""
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{moment.isoformat()[:19]}.{milliseconds % 1000:03d}Z"


def http_date(milliseconds: int) -> str:
    """Return the HTTP-date of a moment, to the second (RFC 9110 section 5.6.7)."""
    return _http_date(milliseconds // 1000)


def from_http(text: str) -> int | None:
    """Read an HTTP-date, or an instant as the specification writes it, as milliseconds.

    An HTTP-date that names no zone, such as that of C's asctime, is UTC (RFC 9110 section 5.6.7).
    """
    if _TIME.fullmatch(text):
        return parse_instant(text)
    try:
        moment = parsedate_to_datetime(text)
        return round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError):
        return None


def parse_instant(text: str) -> int | None:
    """Read a moment of any offset as milliseconds; None for anything else, or with none."""
    try:
        time = to_utc(text, default_zone=UTC)
    except UnstorableTime:
        return None
    if time is None or time.zone_assumed:
        return None
    return round(datetime.fromisoformat(time.text).timestamp() * 1000)


@lru_cache(maxsize=1024)
def _http_date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
