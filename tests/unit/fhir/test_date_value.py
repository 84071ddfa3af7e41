"""Dates as time ranges, and the prefixes of searches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.fhir.date_value import PREFIXES, parse_range, split_prefix

LIMA = ZoneInfo("America/Lima")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

moments = st.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001 - the zone is given separately
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.just(UTC),
)


def milliseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def stretch(text: str) -> tuple[datetime, datetime]:
    found = parse_range(text, default_zone=UTC)
    assert found is not None, text
    start, end = (EPOCH + timedelta(milliseconds=number) for number in found)
    return start, end


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("2026-02", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"),
        ("2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("2024-02-29", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"),
        ("2026-12-31", "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("2026-11-20T10:00", "2026-11-20T10:00:00Z", "2026-11-20T10:01:00Z"),
        ("2026-11-20T10:00Z", "2026-11-20T10:00:00Z", "2026-11-20T10:01:00Z"),
        ("2026-11-20T10:00:07Z", "2026-11-20T10:00:07Z", "2026-11-20T10:00:08Z"),
        ("2026-11-20T10:00:07-05:00", "2026-11-20T15:00:07Z", "2026-11-20T15:00:08Z"),
        ("2026-11-20T10:00:60Z", "2026-11-20T10:01:00Z", "2026-11-20T10:01:01Z"),
        ("2026-11-20T10:00:07.5Z", "2026-11-20T10:00:07.500Z", "2026-11-20T10:00:07.600Z"),
        ("2026-11-20T10:00:07.25Z", "2026-11-20T10:00:07.250Z", "2026-11-20T10:00:07.260Z"),
        ("2026-11-20T10:00:07.123Z", "2026-11-20T10:00:07.123Z", "2026-11-20T10:00:07.124Z"),
        ("2026-11-20T10:00:07.123456789Z", "2026-11-20T10:00:07.123Z", "2026-11-20T10:00:07.124Z"),
    ],
)
def test_a_date_lasts_as_long_as_it_is_exact(text: str, start: str, end: str) -> None:
    assert stretch(text) == (datetime.fromisoformat(start), datetime.fromisoformat(end))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "26",
        "2026-13",
        "2026-00",
        "2026-2",
        "2026-02-30",
        "2026-11-20T",
        "2026-11-20T10",
        "2026-11-20T10:00:61Z",
        "2026-11-20T24:00Z",
        "2026-11-20T10:00:00.Z",
        "2026-11-20T10:00:00.1234567890Z",
        "2026-11-20 10:00",
        "2026-11-20T10:00:00+25:00",
        "2026-W01-1T00:00:00Z",
        "20261120T100000.000Z",
        "0000",
        "\uff12\uff10\uff12\uff16",
        "2026-11-20T10:00:00Z\n",
        "ge2026",
    ],
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert parse_range(text, default_zone=UTC) is None


def test_the_last_year_ends() -> None:
    for text in ("9999", "9999-12", "9999-12-31"):
        found = parse_range(text, default_zone=UTC)

        assert found is not None
        assert found[1] == milliseconds(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)) + 1_000


def test_what_has_no_offset_is_read_in_the_zone_of_the_service() -> None:
    day = parse_range("2026-11-20", default_zone=LIMA)

    assert day is not None
    assert EPOCH + timedelta(milliseconds=day[0]) == datetime(2026, 11, 20, 5, tzinfo=UTC)
    assert parse_range("2026-11-20T10:00:00", default_zone=LIMA) == parse_range(
        "2026-11-20T10:00:00-05:00", default_zone=UTC
    )


def test_a_day_of_a_change_of_clocks_is_as_long_as_it_is() -> None:
    found = parse_range("2026-03-29", default_zone=ZoneInfo("Europe/Madrid"))

    assert found is not None
    assert found[1] - found[0] == 23 * 3_600_000


@given(moments, st.sampled_from([4, 7, 10, 16, 19]))
def test_a_moment_lies_within_every_less_exact_form_of_itself(
    moment: datetime, length: int
) -> None:
    found = parse_range(moment.isoformat()[:length], default_zone=UTC)

    assert found is not None
    assert found[0] <= milliseconds(moment) < found[1]


@given(moments, st.integers(0, 9))
def test_more_digits_are_never_a_longer_time(moment: datetime, digits: int) -> None:
    whole = moment.replace(microsecond=0).isoformat()[:19]
    fraction = f"{moment.microsecond:06d}000"[:digits]
    text = f"{whole}.{fraction}Z" if digits else f"{whole}Z"
    found = parse_range(text, default_zone=UTC)
    second = parse_range(f"{whole}Z", default_zone=UTC)

    assert found is not None
    assert second is not None
    assert second[0] <= found[0] < found[1] <= second[1]


@given(moments, st.integers(-14 * 60, 14 * 60))
def test_the_same_moment_in_another_zone_is_the_same_stretch(
    moment: datetime, minutes: int
) -> None:
    moment = moment.replace(microsecond=0)
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    try:
        local = moment + timedelta(minutes=minutes)
    except OverflowError:
        return
    text = f"{local.isoformat()[:19]}{sign}{hours:02d}:{rest:02d}"

    assert parse_range(text, default_zone=LIMA) == parse_range(
        f"{moment.isoformat()[:19]}Z", default_zone=LIMA
    )


@given(st.text(alphabet="0123456789-T:.+Z gelt", max_size=32))
def test_any_text_is_a_stretch_or_nothing(text: str) -> None:
    found = split_prefix(text, default_zone=UTC)

    if found is not None:
        prefix, (start, end) = found
        assert prefix in PREFIXES
        assert start < end


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_is_taken_off(prefix: str) -> None:
    day = parse_range("2026-11-20", default_zone=UTC)

    assert split_prefix(f"{prefix}2026-11-20", default_zone=UTC) == (prefix, day)
    assert split_prefix("2026-11-20", default_zone=UTC) == ("eq", day)
    assert split_prefix(prefix, default_zone=UTC) is None


def test_a_plus_that_became_a_blank_is_a_plus() -> None:
    assert split_prefix("ge2026-11-20T10:00:00 02:00", default_zone=UTC) == split_prefix(
        "ge2026-11-20T08:00:00Z", default_zone=UTC
    )


def test_a_day_has_another_beginning_in_each_zone_in_turn() -> None:
    zones = [UTC, LIMA, UTC]
    days = [parse_range("2026-11-23", default_zone=zone) for zone in zones]

    assert [day and day[0] // 3_600_000 % 24 for day in days] == [0, 5, 0]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("9998", "9999-01-01T00:00:00Z"),
        ("9998-12", "9999-01-01T00:00:00Z"),
        ("9999-11", "9999-12-01T00:00:00Z"),
        ("9999-12-30", "9999-12-31T00:00:00Z"),
        ("2026-11", "2026-12-01T00:00:00Z"),
        ("2026-01", "2026-02-01T00:00:00Z"),
        ("0001", "0002-01-01T00:00:00Z"),
    ],
)
def test_what_ends_before_the_end_of_time_ends_with_the_next(text: str, end: str) -> None:
    assert stretch(text)[1] == datetime.fromisoformat(end)


def test_the_last_second_ends_with_the_time() -> None:
    last = milliseconds(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))

    for text in ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59+00:00"):
        assert parse_range(text, default_zone=LIMA) == (last, last + 1_000)


@pytest.mark.parametrize("text", ["9999", "9999-12", "9999-12-31"])
def test_the_last_year_ends_in_a_zone_behind_utc_with_the_time(text: str) -> None:
    found = parse_range(text, default_zone=LIMA)

    assert found is not None
    assert found[1] == milliseconds(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)) + 1_000


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("2026-11-20T10:00:07.0Z", 100),
        ("2026-11-20T10:00:07.00Z", 10),
        ("2026-11-20T10:00:07.000Z", 1),
        ("2026-11-20T10:00:07.0000Z", 1),
        ("2026-11-20T10:00:59Z", 1_000),
        ("2026-11-20T10:00:60.5Z", 100),
        ("2026-11-20T10:00-05:00", 60_000),
    ],
)
def test_each_digit_makes_a_time_a_tenth_as_long_down_to_a_millisecond(
    text: str, length: int
) -> None:
    start, end = stretch(text)

    assert (end - start) == timedelta(milliseconds=length)


@pytest.mark.parametrize("text", ["GE2026", "xx2026", "g2026", "gege2026", "ge", "", "ge "])
def test_a_prefix_is_one_of_nine_in_lower_case(text: str) -> None:
    assert split_prefix(text, default_zone=UTC) is None


def test_a_value_of_a_search_is_read_in_the_zone_of_the_service() -> None:
    assert split_prefix("le2026-11-20", default_zone=LIMA) == (
        "le",
        parse_range("2026-11-20", default_zone=LIMA),
    )


@pytest.mark.parametrize(
    "text", ["2026", "2026-11-20", "2026-11-20T10:00:00Z", "2026-11-20T10:00:00.5Z"]
)
def test_the_ends_of_a_stretch_are_whole_milliseconds(text: str) -> None:
    found = parse_range(text, default_zone=UTC)

    assert found is not None
    assert [type(end) for end in found] == [int, int]
