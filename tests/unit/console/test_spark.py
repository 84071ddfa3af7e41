"""Charts of counts."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

from fhirpub.console.spark import spark


def count(succeeded: int, failed: int) -> dict[str, int]:
    return {"succeeded": succeeded, "failed": failed}


def test_the_highest_bar_fills_the_chart() -> None:
    chart = fromstring(spark([count(1, 0), count(3, 1)], title="Day"))

    bars = [(bar.get("class"), bar.get("height")) for bar in chart if bar.tag.endswith("rect")]
    assert bars == [("ok", "10.0"), ("ok", "30.0"), ("failed", "10.0")]


def test_a_chart_of_nothing_has_no_bars() -> None:
    chart = fromstring(spark([count(0, 0)], title="Day"))

    assert [one.tag.rpartition("}")[2] for one in chart] == ["line"]


def test_a_chart_says_what_it_shows() -> None:
    assert fromstring(spark([], title="Day")).get("aria-label") == "Day"


def test_what_failed_stands_on_what_succeeded() -> None:
    chart = fromstring(spark([count(3, 1)], title="Day"))

    tops = [bar.get("y") for bar in chart if bar.tag.endswith("rect")]
    assert tops == ["10.0", "0.0"]


def test_bars_stand_in_the_middle_of_steps_of_equal_width() -> None:
    chart = fromstring(spark([count(1, 0), count(0, 1)], title="Day"))

    bars = [(bar.get("x"), bar.get("width")) for bar in chart if bar.tag.endswith("rect")]
    assert bars == [("1", "10"), ("13", "10")]


def test_a_chart_is_as_wide_as_its_steps_and_has_room_for_its_line() -> None:
    chart = fromstring(spark([count(1, 0)] * 3, title="Day"))

    line = chart[-1]
    assert chart.get("viewBox") == "0 0 36 41"
    assert (line.get("x2"), line.get("y1"), line.get("y2")) == ("36", "40.5", "40.5")


def test_a_bar_as_high_as_the_chart_is_that_of_one() -> None:
    chart = fromstring(spark([count(1, 0)], title="Day"))

    assert [bar.get("height") for bar in chart if bar.tag.endswith("rect")] == ["40.0"]
