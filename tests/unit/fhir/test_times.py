"""Times as HTTP and FHIR write them, whatever the machine's time zone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.fhir.times import (
    UnstorableTime,
    from_http,
    http_date,
    instant,
    is_after,
    is_date_beside_time,
    is_plain_utc,
    to_utc,
    zone_of,
)

NOVEMBER = 784_111_777_000  # 1994-11-06T08:49:37Z


@pytest.fixture(params=["America/Lima", "Asia/Kolkata", "UTC"])
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_zone")
@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 -0000",
        "Sun, 06 Nov 1994 09:49:37 +0100",
        "1994-11-06T08:49:37Z",
        "1994-11-06T03:49:37-05:00",
    ],
)
def test_all_forms_of_a_moment_are_read_alike_in_every_zone(text: str) -> None:
    assert from_http(text) == NOVEMBER


@pytest.mark.parametrize("text", ["", "never", "1994-11-06T08:49:37", "Sun, 99 Nov 1994", "1"])
def test_what_names_no_moment_is_none(text: str) -> None:
    assert from_http(text) is None


@given(st.integers(0, 4_102_444_800_000))
def test_an_instant_that_we_write_is_read_to_the_millisecond(moment: int) -> None:
    assert from_http(instant(moment)) == moment


@given(st.integers(0, 4_102_444_800))
def test_a_date_that_we_write_is_read_to_the_second(seconds: int) -> None:
    assert from_http(http_date(seconds * 1000)) == seconds * 1000


@pytest.mark.parametrize("part", [0, 499, 500, 999])
def test_an_http_date_has_the_second_that_has_begun(part: int) -> None:
    assert http_date(NOVEMBER + part) == "Sun, 06 Nov 1994 08:49:37 GMT"


OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=OFFSETS)  # noqa: DTZ001


@given(TIMES, TIMES)
def test_of_two_times_the_later_moment_is_after_the_other(one: datetime, other: datetime) -> None:
    assert is_after(one.isoformat(), other.isoformat()) == (one > other)


@given(TIMES, TIMES, st.sampled_from([4, 7, 10]))
def test_of_a_time_and_a_date_the_days_as_they_are_written_count(
    one: datetime, other: datetime, length: int
) -> None:
    date = other.isoformat()[:length]

    assert is_after(one.isoformat(), date) == (one.isoformat()[:length] > date)
    assert is_after(date, one.isoformat()) == (date > one.isoformat()[:length])


@given(TIMES)
def test_a_time_has_the_zone_of_its_offset(time: datetime) -> None:
    assert zone_of(time.isoformat()) == time.tzinfo
    assert zone_of(time.isoformat()[:10]) is None


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2026-01-02T10:00:00.5Z", "2026-01-02T10:00:00.50Z", False),
        ("2026-01-02T10:00:00.500000000001Z", "2026-01-02T10:00:00.5Z", True),
        ("2026-01-02T10:00:00.50Z", "2026-01-02T10:00:00.5Z", False),
        ("2026-01-02T10:00:00.05Z", "2026-01-02T10:00:00.1Z", False),
        ("2026-01-02T10:00:00.1Z", "2026-01-02T10:00:00.05Z", True),
        ("2026-01-02T10:00:00Z", "2026-01-02T10:00:00.5Z", False),
        ("2026-01-02T10:00:00.5Z", "2026-01-02T10:00:00Z", True),
        ("2026-01-02T10:00:00.00Z", "2026-01-02T10:00:00Z", False),
        ("2026-01-02T10:00:60Z", "2026-01-02T10:01:00Z", False),
        ("2026-01-02T10:00:61Z", "2026-01-02T10:00:00Z", False),
        ("2026-01-02T10:00:00Z", "2026-01-02T10:00:61Z", False),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z", False),
        ("2026-02-30T00:00:00Z", "2026-01-01T00:00:00Z", False),
    ],
)
def test_the_digits_of_a_second_have_an_order(start: str, end: str, *, expected: bool) -> None:
    assert is_after(start, end) is expected


@pytest.mark.usefixtures("_zone")
def test_in_a_comparison_a_time_without_an_offset_is_utc_in_every_zone() -> None:
    assert is_after("2026-01-02T10:00:00", "2026-01-02T09:59:59Z")
    assert not is_after("2026-01-02T10:00:00", "2026-01-02T10:00:00Z")
    assert not is_after("2026-01-02T10:00:00Z", "2026-01-02T10:00:00")


@pytest.mark.parametrize(
    ("sent", "zone", "local"),
    [
        ("2026-01-02T10:00:00", "America/Lima", "2026-01-02T10:00:00-05:00"),
        ("2026-01-02T10:00:00.120", "UTC", "2026-01-02T10:00:00.120Z"),
        ("2026-01-02T10:00:00+02:00", "America/Lima", "2026-01-02T10:00:00+02:00"),
        ("1850-01-02T10:00:00", "America/Lima", "1850-01-02T10:00:00-05:08"),
    ],
)
def test_an_offset_that_is_assumed_is_written_down(sent: str, zone: str, local: str) -> None:
    time = to_utc(sent, default_zone=UTC if zone == "UTC" else ZoneInfo(zone))

    assert time is not None
    assert time.local == local


def test_a_time_without_an_offset_is_read_in_the_zone_of_each_call() -> None:
    sent = "2026-01-02T10:00:00"
    zones = [ZoneInfo("America/Lima"), UTC, ZoneInfo("America/Lima")]
    times = [to_utc(sent, default_zone=zone) for zone in zones]

    assert [time and time.text for time in times] == [
        "2026-01-02T15:00:00Z",
        "2026-01-02T10:00:00Z",
        "2026-01-02T15:00:00Z",
    ]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("2026-01-02T10:00:00Z", "2026-01-02T10:00:00Z"),
        ("2026-01-02T10:00:00.10+02:00", "2026-01-02T08:00:00.10Z"),
        ("2026-01-02T10:00:00.123456789-05:30", "2026-01-02T15:30:00.123456789Z"),
        ("2026-12-31T23:59:60Z", "2027-01-01T00:00:00Z"),
        ("2026-12-31T23:59:59.9+14:00", "2026-12-31T09:59:59.9Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_a_time_is_stored_in_utc_with_its_digits(sent: str, stored: str) -> None:
    time = to_utc(sent, default_zone=ZoneInfo("America/Lima"))

    assert time is not None
    assert (time.text, time.zone_assumed, time.local) == (stored, False, sent)


def test_a_time_without_an_offset_is_marked() -> None:
    time = to_utc("2026-01-02T10:00:00", default_zone=UTC)

    assert time is not None
    assert time.zone_assumed is True


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02",
        "2026-01-02T10:00Z",
        "2026-01-02T10:00:61Z",
        "2026-02-30T10:00:00Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T10:00:00+14:30",
        "2026-01-02T10:00:00+99:00",
        "2026-01-02 10:00:00Z",
        "x" * 65,
    ],
)
def test_what_holds_no_time_of_day_is_none(text: str) -> None:
    assert to_utc(text, default_zone=UTC) is None


@pytest.mark.parametrize("digits", [10, 60])
def test_more_digits_than_nine_cannot_be_stored(digits: int) -> None:
    with pytest.raises(UnstorableTime, match=r"^has more than nine digits of a second$"):
        to_utc(f"2026-01-02T10:00:00.{'1' * digits}", default_zone=UTC)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+00:01", "9999-12-31T23:59:60Z"])
def test_a_moment_outside_four_digits_of_a_year_cannot_be_stored(text: str) -> None:
    with pytest.raises(UnstorableTime, match=r"^is not in the years 0001 to 9999 as UTC$"):
        to_utc(text, default_zone=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-02T10:00:00Z", True),
        ("2026-01-02T10:00:00.123456789Z", True),
        ("2026-01-02T10:00:00.1234567891Z", False),
        ("2026-01-02T10:00:60Z", False),
        ("2026-01-02T10:00:00+00:00", False),
        ("2026-01-02", False),
        ("", False),
    ],
)
def test_a_text_is_plain_utc_only_if_nothing_in_it_is_converted(
    text: str, *, expected: bool
) -> None:
    assert is_plain_utc(text) is expected


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ({"start": "2026-01-02", "end": "2026-01-02T10:00:00Z"}, True),
        ({"start": "2026-01-02T10:00:00Z", "end": "2026-01-03"}, True),
        ({"start": "2026-01-02T10:00:00Z", "end": "2026-01-02T11:00:00Z"}, False),
        ({"start": "2026-01-02", "end": "2026-01"}, False),
        ({"start": "2026-01-02T10:00:00Z"}, False),
        ({"end": "2026-01-02T10:00:00Z"}, False),
        ({"start": 2026, "end": "2026-01-02T10:00:00Z"}, False),
        ({"start": "2026-01-02T10:00:00Z", "end": None}, False),
        ({}, False),
    ],
)
def test_a_date_beside_a_time_is_noticed(period: dict[str, object], *, expected: bool) -> None:
    assert is_date_beside_time(period) is expected


def test_of_two_dates_the_later_one_is_after_the_other_as_far_as_both_go() -> None:
    assert is_after("2026-02-01", "2026-01-31")
    assert not is_after("2026-01-31", "2026-01")
    assert not is_after("2026-01-02", "2026-01-02T00:00:00Z")
    assert is_after("2026-01-03", "2026-01-02T23:00:00Z")


def test_an_instant_that_cannot_be_stored_is_no_condition() -> None:
    assert from_http("1994-11-06T08:49:37.0000000001Z") is None
