"""The metrics that the operators' guide describes exist."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from prometheus_client import Metric

from fhirpub.config.loader import load
from fhirpub.runtime.metrics import Metrics

GUIDE = (Path(__file__).parents[2] / "docs" / "operators.md").read_text(encoding="utf-8")
SECTION = GUIDE.partition("\n## Metrics\n")[2].partition("\n## ")[0]
ROW = re.compile(r"^\| `(fhirpub_\w+)` \|([^|]*)\|", re.MULTILINE)
SUFFIXES = {"counter": "_total", "info": "_info"}


def ours() -> list[Metric]:
    found = Metrics(serves=True, sends=True).collect()
    return [metric for metric in found if metric.name.startswith("fhirpub")]


def shown_as(metric: Metric) -> str:
    return metric.name + SUFFIXES.get(metric.type, "")


def test_the_tables_name_the_metrics_that_there_are() -> None:
    rows = [name for name, _labels in ROW.findall(SECTION)]

    assert sorted(rows) == sorted(map(shown_as, ours()))


def test_the_tables_name_their_labels() -> None:
    made = Metrics(serves=True, sends=True)
    families = made._registry._names_to_collectors
    documented = {
        name: [part.strip("` ") for part in labels.split(",") if part.strip()]
        for name, labels in ROW.findall(SECTION)
    }

    for name, labels in documented.items():
        if name != "fhirpub_info":
            assert list(vars(families[name])["_labelnames"]) == labels, name


def test_the_blocks_are_what_they_say_they_are(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
    (toml,) = [text for language, text in blocks if language == "toml"]
    one, several = [yaml.safe_load(text) for language, text in blocks if language == "yaml"]

    file = tmp_path / "fhirpub.toml"
    file.write_text(f"{toml}\n[server]\nworkers = 4\n")
    config = load(file, environment={})
    ports = [f"127.0.0.1:{config.metrics.port + n}" for n in range(config.server.workers)]
    of_several = several["scrape_configs"][0]["static_configs"]
    assert one["scrape_configs"][0]["static_configs"] == [{"targets": ports[:1]}]
    assert of_several[0]["targets"] == ports
