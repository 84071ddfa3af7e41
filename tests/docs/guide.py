"""The guide for integrators: its text, its blocks, and how they are run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from fhirpub.testing.service import Integrator

TEXT = (Path(__file__).parents[2] / "docs" / "integrators.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def block(word: str) -> str:
    """Return the block with a word in it."""
    return str(next(item for item in BLOCKS if word in item))


def followed(blocks: list[str], folder: Path, given: dict[str, str]) -> str:
    """Run blocks of the guide, with its placeholders filled in."""
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


def body_of(name: str) -> str:
    """Return the JSON that the guide writes into a file."""
    return block(name).partition("<<'JSON'\n")[2].partition("\nJSON\n")[0]
