"""Writes the dashboard for Grafana and the alert rules for Prometheus, and copies for the chart.

``python deploy/monitoring/generate.py`` writes them, ``--check`` fails if a file differs. A query
of a metric that fhirpub/runtime/metrics.py does not have ends the run, and so does a metric that
no panel shows.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from alerts import ALERTS
from panels import METRICS, ROWS, Panel

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "deploy" / "monitoring", ROOT / "deploy" / "helm" / "files")
"""The files, and a copy in the chart, which can read only its own folder."""
_SUFFIXES = {
    "counter": ("_total",),
    "info": ("_info",),
    "histogram": ("_bucket", "_count", "_sum"),
    "gauge": ("",),
}
_OPTIONS = {
    "timeseries": {
        "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "colorMode": "value",
        "graphMode": "area",
        "justifyMode": "auto",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "showPercentChange": False,
        "wideLayout": True,
    },
}
"""Every option that the panels of Grafana require."""
_NAME = re.compile(r"\b(?:fhirpub|process|python)_\w+")
_COLUMNS = 24
_HEAD = """\
# Written by `python deploy/monitoring/generate.py`. The alerts: docs/operators.md.
"""


def series() -> set[str]:
    """Return the name of every series that a process may show."""
    return {item.name + suffix for item in METRICS.values() for suffix in _SUFFIXES[item.type]}


def rules() -> str:
    """Return the file of the alert rules."""
    made = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.after,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary},
        }
        for alert in ALERTS
    ]
    groups = {"groups": [{"name": "fhirpub", "rules": made}]}
    text: str = yaml.safe_dump(groups, sort_keys=False, width=99)
    return _HEAD + text


def dashboard() -> str:
    """Return the file of the dashboard, in the form that Grafana imports."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    made = {
        "uid": "fhirpub",
        "title": "fhirpub",
        "tags": ["fhirpub"],
        "editable": True,
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "templating": {"list": list(_variables(source))},
        "panels": list(_panels(source)),
    }
    return json.dumps(made, indent=1) + "\n"


def _variables(source: dict[str, str]) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Source"}
    for name, query in (
        ("job", "label_values(fhirpub_info, job)"),
        ("instance", 'label_values(fhirpub_info{job=~"$job"}, instance)'),
    ):
        yield {
            "name": name,
            "type": "query",
            "datasource": source,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "includeAll": True,
            "multi": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        }


def _panels(source: dict[str, str]) -> Iterator[dict[str, Any]]:
    number = line = 0
    for title, panels in ROWS.items():
        number += 1
        place = {"x": 0, "y": line, "w": _COLUMNS, "h": 1}
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "gridPos": place,
            "collapsed": False,
            "panels": [],
        }
        line, column = line + 1, 0
        height = 4 if panels[0].kind == "stat" else 8
        for panel in panels:
            if column + panel.width > _COLUMNS:
                line, column = line + height, 0
            number += 1
            place = {"x": column, "y": line, "w": panel.width, "h": height}
            yield {"id": number, "gridPos": place, "datasource": source, **_panel(panel)}
            column += panel.width
        line += height


def _panel(panel: Panel) -> dict[str, Any]:
    custom = {"fillOpacity": 10, "stacking": {"mode": "normal" if panel.stacked else "none"}}
    options: dict[str, Any] = _OPTIONS[panel.kind]
    if panel.kind == "stat":
        custom, options = {}, options | {"textMode": panel.shows}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": _description(panel),
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "custom": custom},
            "overrides": [],
        },
        "options": options,
        "targets": [
            {"refId": chr(65 + place), "expr": query.expression, "legendFormat": query.legend}
            for place, query in enumerate(panel.queries)
        ],
    }


def _description(panel: Panel) -> str:
    """Return what the metrics of a panel mean, as in their exposition."""
    text = " ".join(query.expression for query in panel.queries)
    names = [name for name in METRICS if re.search(rf"\b{name}(?:_total|_bucket|_info)?\b", text)]
    return " ".join(METRICS[name].documentation for name in names)


def check_names() -> None:
    """End the run if a query asks for what is not there, or a metric of ours is not shown."""
    panels = [query.expression for row in ROWS.values() for one in row for query in one.queries]
    asked = {name for text in panels for name in _NAME.findall(text)}
    alerts = {name for alert in ALERTS for name in _NAME.findall(alert.expression)}
    if unknown := (asked | alerts) - series():
        sys.exit(f"no metric of fhirpub/runtime/metrics.py: {', '.join(sorted(unknown))}")
    ours = [item for item in METRICS.values() if item.name.startswith("fhirpub")]
    if hidden := [
        item.name
        for item in ours
        if not asked & {item.name + suffix for suffix in _SUFFIXES[item.type]}
    ]:
        sys.exit(f"shown by no panel: {', '.join(hidden)}")


def main() -> None:
    """Write the files, or compare them."""
    check_names()
    made = {"dashboard.json": dashboard(), "alerts.yaml": rules()}
    paths = {folder / name: text for folder in FOLDERS for name, text in made.items()}
    if "--check" in sys.argv[1:]:
        old = [str(path.relative_to(ROOT)) for path, text in paths.items() if _differs(path, text)]
        sys.exit(f"run `python deploy/monitoring/generate.py`: {', '.join(old)}" if old else 0)
    for path, text in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _differs(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text(encoding="utf-8") != text


if __name__ == "__main__":
    main()
