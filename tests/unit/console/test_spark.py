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
