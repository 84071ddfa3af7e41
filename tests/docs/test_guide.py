"""The guide for integrators, followed word by word with bash and curl."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fhirpub.testing.service import Integrator, RunningService

GUIDE = Path(__file__).parents[2] / "docs" / "integrators.md"
BLOCKS = re.findall(
    r"^```sh\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)
_SECTION = GUIDE.read_text(encoding="utf-8").partition("\n## 5. ")[2].partition("\n## ")[0]
SEARCHES = [
    each.replace(r"\|", "|") for each in re.findall(r"^\| `(.*?=.*?)` \|", _SECTION, re.MULTILINE)
]
"""The searches of the guide's table; each finds the report that the guide has published."""

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the guide needs curl")


def followed(blocks: list[str], folder: Path, given: dict[str, str]) -> str:
    """Run blocks of the guide, with what the reader puts in for its placeholders."""
    script = "set -e\n" + "\n".join(blocks)
    for name, value in given.items():
        script = re.sub(rf"^{name}=.*$", f"{name}='{value}'", script, flags=re.MULTILINE)
    assert "=…" not in script
    run = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    return run.stdout


def given(lab: Integrator) -> dict[str, str]:
    return {
        "BASE": lab.service.base_url,
        "AUDIENCE": "https://fhirpub.local/fhir",
        "CLIENT_ID": lab.client_id,
        "CLIENT_SECRET": lab.client_secret,
        "TOKEN": lab.token,
    }


def test_the_guide_leads_from_credentials_to_a_token(
    service: RunningService, tmp_path: Path
) -> None:
    lab = service.integrator()

    answer = json.loads(followed(BLOCKS[:2], tmp_path, given(lab)))

    assert answer["token_type"] == "Bearer"
    assert len(BLOCKS) == 7


def test_the_guide_publishes_reads_updates_and_finds_a_report(
    service: RunningService, tmp_path: Path
) -> None:
    lab = service.integrator()
    settings, _token, keep, publish, read, update, find = BLOCKS
    known = given(lab)
    published = followed([settings, keep, publish], tmp_path, known)
    known["ID"] = re.findall(r"DiagnosticReport/([^/]+)/_history/1", published)[0]

    rest = followed([settings, keep, read, update, find], tmp_path, known)

    assert published.startswith("HTTP/1.1 201")
    assert re.findall(r"HTTP/1.1 (\d+)", rest) == ["200", "204"]
    assert json.loads(rest.splitlines()[-1])["total"] == 1
    assert len(SEARCHES) > 20
    for search in SEARCHES:
        path = f"/fhir/r4/DiagnosticReport?{search.replace('|', '%7C')}"
        answer = lab.get(path, Prefer="handling=strict")
        assert answer.status == 200, search
        assert answer.json.get("total", 1) == 1, search


def test_the_guides_report_causes_no_remark(service: RunningService, tmp_path: Path) -> None:
    lab = service.integrator()
    settings, _token, keep, publish, *_rest = BLOCKS

    published = followed([settings, keep, publish], tmp_path, given(lab))

    issues = json.loads(published.splitlines()[-1])["parameter"][1]["resource"]["issue"]
    assert [each["severity"] for each in issues] == ["information"]
