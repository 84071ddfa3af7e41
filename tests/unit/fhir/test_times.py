"""Times as HTTP and FHIR write them, whatever the machine's time zone."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.fhir.times import from_http, http_date, instant

NOVEMBER = 784_111_777_000  # 1994-11-06T08:49:37Z


@pytest.fixture(params=["UTC", "America/Lima", "Asia/Kolkata"])
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
