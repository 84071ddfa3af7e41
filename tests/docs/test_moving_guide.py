"""The guide for laboratories that move to fhirpub, followed word by word in an empty folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from fhirpub.testing.service import Integrator, RunningService

TEXT = (Path(__file__).parents[2] / "docs" / "moving.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def follow(lab: Integrator, folder: Path) -> str:
    """Run all blocks with the client's credentials, and return what they print."""
    script = "set -e\n" + "\n".join(BLOCKS)
    known = {
        "BASE": lab.service.base_url,
        "FHIRPUB_CLIENT_ID": lab.client_id,
        "FHIRPUB_CLIENT_SECRET": lab.client_secret,
    }
    for name, value in known.items():
        script = re.sub(rf"^{name}=.*$", f"{name}='{value}'", script, flags=re.MULTILINE)
    assert "=…" not in script
    program = folder / "bin" / "fhirpub"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fhirpub "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{Path(sys.executable).parent}:{os.defpath}"
    run = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={"PATH": path, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return run.stdout


def test_the_guide_leads_from_an_empty_folder_to_published_reports(
    service: RunningService, tmp_path: Path
) -> None:
    lab = service.integrator()

    printed = follow(lab, tmp_path)

    assert re.findall(r"/s\): (.*)", printed) == [
        "2 created, 1 refused",
        "1 created, 2 replayed",
        "1 replayed",
    ]
    assert re.search(
        r"^1 +time-invalid +must be a valid date: .* reports.ndjson:3 ", printed, re.MULTILINE
    )
    assert lab.get("/fhir/r4/DiagnosticReport?_count=1").json["total"] == 3
    lines = [json.loads(line) for line in (tmp_path / "moved.ndjson").read_text().splitlines()]
    assert [line["result"] for line in lines].count("created") == 3
    assert (tmp_path / "watched" / "done" / "scans" / "R-2.pdf").exists()
