"""Dates and times as the stretches of time that they stand for (R4 search, 3.1.1.4.7)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

TIME_RULE = "must be a date or time such as 2026-11-21 or 2026-11-21T10:00:00Z"
PREFIXES = ("eq", "ne", "gt", "lt", "ge", "le", "sa", "eb", "ap")

_DATE = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:T(?P<clock>[0-9]{2}:[0-9]{2})(?::(?P<second>[0-9]{2})(?P<fraction>\.[0-9]{1,9})?)?"
    r"(?P<offset>Z|[+-][0-9]{2}:[0-9]{2})?)?)?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_SECOND, _MINUTE = 1_000, 60_000
_LEAP_SECOND = 60
_PLAIN, _PLAIN_LENGTH = "--T::Z", len("2026-11-20T10:00:00Z")
"""What stands between the digits of a time as it is nearly always stored."""
_DAY_LENGTH = len("2026-11-20")
_END_OF_TIME = 253_402_300_800_000  # the first moment of the year 10000

TimeRange = tuple[int, int]
"""The first millisecond since 1970-01-01 UTC, and the first that comes after."""


def parse_range(text: str, *, default_zone: tzinfo) -> TimeRange | None:
    """Return the time from the beginning to the end of what a text names, as exactly as it does.

    ``2026-11`` is a month, ``2026-11-20T10:00Z`` a minute. What has no offset is read in the
    default zone. None: it is no date, dateTime or instant of FHIR.
    """
    try:
        if len(text) == _PLAIN_LENGTH and text[4::3] == _PLAIN:
            start = _milliseconds(datetime.fromisoformat(text))
            return start, start + _SECOND
    except ValueError:
        pass  # such as a leap second
    return (_cached if len(text) == _DAY_LENGTH else _parse_range)(text, default_zone)


def _parse_range(text: str, default_zone: tzinfo) -> TimeRange | None:
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        return (
            _time_range(match, default_zone)
            if match["clock"]
            else _date_range(match, default_zone)
        )
    except (ValueError, OverflowError):
        return None


_cached = lru_cache(maxsize=8_192)(_parse_range)
"""Days of birth are among some ten thousand, those of reports among the last few."""


def split_prefix(text: str, *, default_zone: tzinfo) -> tuple[str, TimeRange] | None:
    """Read a value of a search: a prefix, ``eq`` if there is none, and what it applies to."""
    prefix, date = (text[:2], text[2:]) if text[:2] in PREFIXES else ("eq", text)
    # An unescaped plus sign in a URL has been decoded as a blank.
    stretch = parse_range(date.replace(" ", "+"), default_zone=default_zone)
    return None if stretch is None else (prefix, stretch)


def _date_range(match: re.Match[str], zone: tzinfo) -> TimeRange:
    year, month, day = int(match["year"]), int(match["month"] or 1), int(match["day"] or 1)
    first = datetime(year, month, day, tzinfo=zone)
    if match["day"]:
        return _milliseconds(first), _next_midnight(first)
    following = (year, month + 1) if match["month"] and month < 12 else (year + 1, 1)
    if following[0] > 9999:
        return _milliseconds(first), _END_OF_TIME
    return _milliseconds(first), _milliseconds(datetime(*following, 1, tzinfo=zone))


def _next_midnight(day: datetime) -> int:
    """Return the end of a day, which need not have 24 hours."""
    try:
        return _milliseconds(day + timedelta(days=1))
    except OverflowError:
        return _END_OF_TIME


def _time_range(match: re.Match[str], zone: tzinfo) -> TimeRange:
    date = f"{match['year']}-{match['month']}-{match['day']}T{match['clock']}:00"
    moment = datetime.fromisoformat(date + (match["offset"] or ""))
    start = _milliseconds(moment if match["offset"] else moment.replace(tzinfo=zone))
    if match["second"] is None:
        return start, start + _MINUTE
    seconds = int(match["second"])
    if seconds > _LEAP_SECOND:
        raise ValueError(seconds)
    start += seconds * _SECOND
    if match["fraction"] is None:
        return start, start + _SECOND
    start += int(match["fraction"][1:4].ljust(3, "0"))
    exact = max(_SECOND // 10 ** (len(match["fraction"]) - 1), 1)
    return start, start + exact


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND
