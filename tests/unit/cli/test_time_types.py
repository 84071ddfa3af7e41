"""Durations and times as options of commands."""

from __future__ import annotations

import click
import pytest

from fhirpub.cli.time_types import Span, UtcTimeType
from fhirpub.runtime.clock import now_ms


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("0s", 0), ("90s", 90), ("15m", 900), ("24h", 86_400), ("7d", 604_800)),
        ("999999s", 999_999),
    ],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: int) -> None:
    assert Span().convert(text, None, None) == seconds


def test_a_duration_that_is_a_number_already_stays() -> None:
    assert Span().convert(86_400, None, None) == 86_400


@pytest.mark.parametrize(
    "text", ["", "90", "s", "1.5h", "-1h", "1H", "1w", "1000000s", " 1h", "1h\n", "1h30m", "٣h"]
)
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(click.BadParameter, match="such as 90s, 15m, 24h or 7d"):
        Span().convert(text, None, None)


@pytest.mark.parametrize(("text", "milliseconds"), [("24h", 86_400_000), ("1m", 60_000)])
def test_a_duration_as_a_time_lies_so_long_in_the_past(text: str, milliseconds: int) -> None:
    before = now_ms()

    found = UtcTimeType().convert(text, None, None)

    assert before - milliseconds <= found <= now_ms() - milliseconds


def test_a_time_is_read_in_milliseconds_of_utc() -> None:
    assert UtcTimeType().convert("1970-01-01T01:00:02+01:00", None, None) == 2_000


def test_a_time_that_is_a_number_already_stays() -> None:
    assert UtcTimeType().convert(5, None, None) == 5


@pytest.mark.parametrize("text", ["", "2026-11-21", "2026-11-21T10:00:00", "yesterday"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(click.BadParameter, match="2026-11-21T10:00:00Z, or 24h for a day ago"):
        UtcTimeType().convert(text, None, None)
