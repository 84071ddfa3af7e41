"""Draws the panels of the dashboard from a Prometheus, without Grafana, for docs/operators.md.

``python picture.py http://127.0.0.1:9090 OUT.png --minutes 15`` needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

HERE = Path(__file__).parent
_CHOSEN = {"$job": ".*", "$instance": ".*", "$__rate_interval": "1m"}
"""Every process; and what Grafana computes from a scrape interval of 15 seconds."""
_STEPS = 200
_COLUMNS = 24
_UNIT_INCHES = 0.62
_MAX_LEGEND = 9
_COLORS = plt.get_cmap("tab20").colors

Series = tuple[str, list[float], list[float]]


def main() -> None:
    """Ask for every panel, and draw them as the dashboard places them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prometheus")
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--until", type=float, default=time.time())  # noqa: TID251
    words = parser.parse_args()
    period = (words.until - words.minutes * 60, words.until)
    panels = json.loads((HERE / "dashboard.json").read_text(encoding="utf-8"))["panels"]
    lines = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    plt.rcParams.update({"font.size": 7, "axes.titlesize": 8, "axes.titlelocation": "left"})
    size = (_COLUMNS * _UNIT_INCHES * 0.95, lines * _UNIT_INCHES * 0.42)
    figure = plt.figure(figsize=size)
    for panel in panels:
        place = panel["gridPos"]
        if panel["type"] == "row":
            figure.text(
                0.006, 1 - (place["y"] + 0.75) / lines, panel["title"], weight="bold", size=9
            )
            continue
        box = (
            (place["x"] + 0.9) / _COLUMNS,
            1 - (place["y"] + place["h"] - 1.15) / lines,
            (place["w"] - 1.3) / _COLUMNS,
            (place["h"] - 2.0) / lines,
        )
        draw(figure.add_axes(box), panel, list(answers(words.prometheus, panel, period)))
    figure.savefig(words.out, dpi=100)


def answers(
    prometheus: str, panel: Mapping[str, Any], period: tuple[float, float]
) -> Iterator[Series]:
    """Yield the series of a panel's queries: their legend, times in minutes and values."""
    begin, end = period
    for target in panel["targets"]:
        expression = target["expr"]
        for name, value in _CHOSEN.items():
            expression = expression.replace(name, value)
        asked = {"query": expression, "start": begin, "end": end, "step": (end - begin) / _STEPS}
        with urlopen(f"{prometheus}/api/v1/query_range?{urlencode(asked)}") as answer:  # noqa: S310
            found = json.load(answer)["data"]["result"]
        for one in found:
            values = [(float(at), float(value)) for at, value in one["values"]]
            yield (
                _legend(target["legendFormat"], one["metric"]),
                [(at - begin) / 60 for at, _value in values],
                [value for _at, value in values],
            )


def _legend(text: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), text)


def draw(axes: Axes, panel: Mapping[str, Any], series: list[Series]) -> None:
    """Draw one panel."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    axes.set_title(panel["title"])
    if panel["type"] == "stat":
        axes.axis("off")
        name = panel["options"]["textMode"] == "name"
        shown = [legend if name else in_words(values[-1], unit) for legend, _at, values in series]
        axes.text(0, 0.35, ", ".join(shown), size=17, color="#1f7a4d", va="center")
        return
    series = [one for one in series if any(math.isfinite(value) for value in one[2])]
    if panel["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"] == "normal":
        _stack(axes, series)
    else:
        for number, (legend, at, values) in enumerate(series):
            axes.plot(at, values, label=legend, linewidth=1, color=_COLORS[number * 2 % 20])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: in_words(value, unit)))
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, alpha=0.25)
    if not series:
        axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", color="grey")
    elif len(series) <= _MAX_LEGEND:
        axes.legend(fontsize=5.5, loc="upper left", framealpha=0.6, ncols=1)


def _stack(axes: Axes, series: list[Series]) -> None:
    times = sorted({at for _legend, ats, _values in series for at in ats})
    known = [dict(zip(at, values, strict=True)) for _legend, at, values in series]
    rows = [[one.get(at, 0.0) for at in times] for one in known]
    if rows:
        labels = [legend for legend, _at, _values in series]
        axes.stackplot(times, *rows, labels=labels, alpha=0.75, colors=_COLORS)


def in_words(value: float, unit: str) -> str:
    """Return a value in its unit, as Grafana shows it."""
    match unit:
        case "s":
            return f"{value:.3g} s" if value >= 1 else f"{value * 1000:.3g} ms"
        case "bytes":
            return f"{value / 2**20:.0f} MiB"
        case "percentunit":
            return f"{value:.2%}"
        case "reqps" | "ops":
            return f"{value:.3g}/s"
    return f"{value:.3g}"


if __name__ == "__main__":
    main()
