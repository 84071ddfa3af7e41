"""The dashboard and the alert rules ask for the metrics that there are, and each alert fires."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fhirpub.runtime.metrics import Metrics
from tests.deploy.tools import run

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
RULES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))[
    "groups"
][0]["rules"]
TESTS = Path(__file__).parent / "alerts_test.yaml"
GUIDE = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
OF_PROMETHEUS = {"job", "instance", "le"}
NAME = re.compile(r"\b(fhirpub_\w+?)(?:_total|_bucket|_info)?\b(?=[\[{) ]|$)")


def generate(*words: str, program: str = "generate.py") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, program, *words]
    return subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)


def expressions() -> list[str]:
    panels = [item for item in DASHBOARD["panels"] if item["type"] != "row"]
    return [
        *(target["expr"] for panel in panels for target in panel["targets"]),
        *(rule["expr"] for rule in RULES),
    ]


def labels_of(name: str) -> set[str]:
    """Return the labels of a metric. Those of `Info` are its values."""
    if name == "fhirpub":
        return {"version"}
    collectors = Metrics(serves=True, sends=True)._registry._names_to_collectors
    found = collectors.get(name) or collectors[f"{name}_total"]
    return set(vars(found).get("_labelnames", ()))


def test_the_files_are_what_the_metrics_and_the_tables_give() -> None:
    done = generate("--check")

    assert done.returncode == 0, done.stderr


def test_a_metric_that_is_not_there_ends_the_generator() -> None:
    absent = generate("import panels; panels.rate('fhirpub_nothing')", program="-c")
    other = generate("import panels; panels.rate('fhirpub_requests_under_way')", program="-c")

    assert "fhirpub_nothing is missing" in absent.stderr
    assert "fhirpub_requests_under_way is gauge" in other.stderr


def test_a_metric_that_no_panel_shows_ends_the_generator() -> None:
    hide = "import panels; panels.ROWS.pop('Webhooks'); import generate; generate.check_names()"

    assert "shown by no panel: fhirpub_webhook" in generate(hide, program="-c").stderr


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_groups_and_selects_by_labels_that_there_are(expression: str) -> None:
    asked = set(re.findall(r"[{,](\w+)=", expression))
    for group in re.findall(r" by \(([^)]*)\)", expression):
        asked |= set(group.split(", "))
    names = {"fhirpub" if name == "fhirpub_info" else name for name in NAME.findall(expression)}

    known = {label for name in names for label in labels_of(name)}
    assert asked <= known | OF_PROMETHEUS


def test_the_legends_are_labels_that_the_queries_group_by() -> None:
    panels = [item for item in DASHBOARD["panels"] if item["type"] != "row"]
    for panel in panels:
        for target in panel["targets"]:
            shown = re.findall(r"{{(\w+)}}", target["legendFormat"])
            grouped = re.findall(r" by \(([^)]*)\)", target["expr"])
            assert set(shown) <= {name for group in grouped for name in group.split(", ")}


def test_grafana_reads_each_field_of_the_dashboard() -> None:
    done = run("strict-types", FOLDER / "dashboard.json")

    assert done.returncode == 0, done.stderr


def test_prometheus_accepts_the_rules() -> None:
    done = run("promtool", "check", "rules", FOLDER / "alerts.yaml")

    assert done.returncode == 0, done.stderr
    assert f"{len(RULES)} rules found" in done.stdout


def test_each_alert_fires_on_its_trouble_and_on_nothing_else() -> None:
    done = run("promtool", "test", "rules", TESTS)

    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_tested_on_a_healthy_service_and_on_one_in_trouble() -> None:
    names = {rule["alert"] for rule in RULES}
    healthy, sick = yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"]

    assert {item["alertname"] for item in healthy["alert_rule_test"]} == names
    assert not any("exp_alerts" in item for item in healthy["alert_rule_test"])
    assert {item["alertname"] for item in sick["alert_rule_test"]} == names
    assert all(item["exp_alerts"] for item in sick["alert_rule_test"])


def test_the_guide_says_what_to_do_about_each_alert() -> None:
    section = GUIDE.partition("\n### What to be woken for\n")[2].partition("\n### ")[0]

    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [
        rule["alert"] for rule in RULES
    ]
