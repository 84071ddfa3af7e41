"""Dates and times: local or UTC on the way in, UTC from then on (D-65, D-66, D-103)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from typing import Any

_TIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"T(?P<clock>[0-9]{2}:[0-9]{2}):(?P<second>[0-9]{2})(?P<fraction>\.[0-9]+)?"
    r"(?P<offset>Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
)
_OFFSET = re.compile(r"(?:Z|[+-][0-9]{2}:[0-9]{2})\Z")
_LEAP_SECOND = 60
_MAX_FRACTION_LENGTH = 10
_MAX_CACHED_LENGTH = 64
_MAX_PLAIN_LENGTH = len("2026-11-21T10:00:00.123456789Z")


class UnstorableTime(ValueError):
    """A time of FHIR's form that cannot be kept as UTC."""


@dataclass(frozen=True, slots=True)
class UtcTime:
    """A time as it is stored. ``zone_assumed``: the sender left the offset out.

    ``local`` is the text as it was sent, with the offset that was assumed.
    """

    text: str
    zone_assumed: bool
    local: str


def is_plain_utc(text: str) -> bool:
    """Return, fast, whether a text can only be a time that is UTC already, or no time."""
    return text[-1:] == "Z" and len(text) <= _MAX_PLAIN_LENGTH and ":60" not in text


def to_utc(text: str, *, default_zone: tzinfo) -> UtcTime | None:
    """Return a time in UTC with the digits of its fraction kept; ``:60`` is the next minute.

    None: the text holds no time of day, or none that exists; the schema validates it.
    Raises UnstorableTime.
    """
    if len(text) > _MAX_CACHED_LENGTH:
        return _to_utc(text, default_zone)
    return _cached(text, UTC if _OFFSET.search(text) else default_zone)


def _to_utc(text: str, default_zone: tzinfo) -> UtcTime | None:
    match = _TIME.fullmatch(text)
    minute = match and _minute(match, default_zone)
    if match is None or minute is None:
        return None
    fraction, offset = match["fraction"] or "", match["offset"]
    if len(fraction) > _MAX_FRACTION_LENGTH:
        raise UnstorableTime("has more than nine digits of a second")
    try:
        second = _second(match, minute)
    except OverflowError:
        raise UnstorableTime("is not in the years 0001 to 9999 as UTC") from None
    assumed = "" if offset else minute.isoformat()[19:25].replace("+00:00", "Z")
    return UtcTime(f"{second}{fraction}Z", not offset, text + assumed)


_cached = lru_cache(maxsize=256)(_to_utc)
"""A registration asks twice for each of its times."""


def _minute(match: re.Match[str], default_zone: tzinfo) -> datetime | None:
    """Return the minute that a time is in, in its own zone; None if there is no such time."""
    if int(match["second"]) > _LEAP_SECOND:
        return None
    offset = match["offset"]
    try:
        minute = datetime.fromisoformat(f"{match['date']}T{match['clock']}:00{offset or ''}")
    except ValueError:
        return None
    return minute if offset else minute.replace(tzinfo=default_zone)


def _second(match: re.Match[str], minute: datetime) -> str:
    """Return a time to the second, as UTC; raises OverflowError outside the years 1 to 9999."""
    moment = minute.astimezone(UTC) + timedelta(seconds=int(match["second"]))
    return moment.isoformat()[:19]


def is_date_beside_time(period: Mapping[str, Any]) -> bool:
    """Return whether one end of a Period has a time of day and the other has none.

    As UTC the time could fall on another day than the sender wrote, and the date could not.
    """
    start, end = period.get("start"), period.get("end")
    return isinstance(start, str) and isinstance(end, str) and ("T" in start) != ("T" in end)


def zone_of(text: str) -> tzinfo | None:
    """Return the offset that a time names, if it names one."""
    match = _OFFSET.search(text)
    return datetime.fromisoformat(f"2000-01-01T00:00:00{match[0]}").tzinfo if match else None


def is_after(start: str, end: str) -> bool:
    """Return whether a Period begins after it ends, by what both ends name (per-1).

    Two times are compared as moments. A date has no zone: what stands beside it is read as it is
    written, as far as the shorter one goes.
    """
    if "T" in start and "T" in end:
        begins, ends = _moment(start), _moment(end)
        return begins is not None and ends is not None and begins > ends
    dates = [text.partition("T")[0] for text in (start, end)]
    length = min(map(len, dates))
    return dates[0][:length] > dates[1][:length]


def _moment(text: str) -> tuple[str, str] | None:
    """Return a time as a second of UTC and the digits after it, which have an order."""
    match = _TIME.fullmatch(text)
    minute = match and _minute(match, UTC)
    if match is None or minute is None:
        return None
    try:
        return _second(match, minute), (match["fraction"] or "").rstrip(".0")
    except OverflowError:
        return None


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
