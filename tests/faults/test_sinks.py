"""Processes that send to a sink are killed again and again; no event is lost, and order is kept.

With FHIRPUB_TEST_FULL set, there are 10,000 events and 20 kills instead of 200 and 2.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from tests.faults.stores import mostly_on
from tests.faults.webhook_checks import Reporters, Truth, impatient, kill_while, truth_of
from tests.plugin_examples import example, install

pytestmark = pytest.mark.slow

EVENTS, KILLS = (10_000, 20) if variable("FHIRPUB_TEST_FULL") else (200, 2)


@pytest.fixture
def service(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ServiceProcess]:
    home = tmp_path / "home"
    install(home, "file", example("A sink that appends events to files"))
    monkeypatch.syspath_prepend(home)
    monkeypatch.setenv("PYTHONPATH", str(home), prepend=os.pathsep)
    settings = {
        "storage": {"url": store_url},
        "webhooks": impatient(tmp_path),
        "plugins": {"enabled": ["diagnosticreport", "file"]},
        "file": {"folder": str(tmp_path)},
    }
    with ServiceProcess(tmp_path, workers=2, settings=settings) as process:
        yield process


@mostly_on("mongodb")
def test_no_event_is_lost_and_order_is_kept_whichever_process_is_killed(
    service: ServiceProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, begun = service.integrator(), time.monotonic()
    words = ["--tenant", lab.tenant.id, "--url", "sink:file/all"]
    endpoint = service.command("endpoint", "add", *words)["id"]
    with Reporters(lab, 4) as reporters:
        kill_while(reporters, service, events=EVENTS, kills=KILLS, random=Random(20261127))
    truth = truth_of(service.config.storage.url)
    service.terminate()
    service.wait()

    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_bytes().splitlines()]
    first = check(lines, truth)
    attempts = sum(len(one.attempts) for one in truth.deliveries[endpoint])
    assert len(lines) <= attempts, "a repeat without an attempt that explains it"
    with capsys.disabled():
        took = f"{time.monotonic() - begun:.0f} s"
        repeats = len(lines) - len(first)
        sys.stdout.write(f"\n{len(first)} events, {KILLS} kills, {repeats} repeats, {took}\n")


def check(lines: Sequence[Any], truth: Truth) -> Sequence[Any]:
    """Assert that all events arrived, in order; return them without repeats."""
    first = {line["event_id"]: line for line in reversed(lines)}
    assert set(first) == truth.events
    assert sorted(line["sequence"] for line in first.values()) == list(range(1, len(first) + 1))
    versions: dict[str, list[int]] = defaultdict(list)
    for line in sorted(first.values(), key=lines.index):
        versions[line["data"]["id"]].append(int(line["data"]["version_id"]))
    assert all(found == sorted(found) for found in versions.values())
    return list(first.values())
