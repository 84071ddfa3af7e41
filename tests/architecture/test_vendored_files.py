"""Files of other projects that are part of this one."""

from __future__ import annotations

import re
from pathlib import Path

from fhirpub.console.assets import ASSETS

ROOT = Path(__file__).parents[2]


def test_htmx_is_of_the_version_that_the_script_fetches() -> None:
    script = (ROOT / "scripts" / "vendor-htmx").read_text(encoding="utf-8")
    (version,) = re.findall(r"^version=(.+)$", script, re.MULTILINE)

    assert f'version:"{version}"'.encode() in ASSETS["htmx.min.js"].content
