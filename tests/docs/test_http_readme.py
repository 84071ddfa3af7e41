"""The description of the HTTP server agrees with its code and its limits."""

from __future__ import annotations

import re

from fhirpub.config.settings import LimitsConfig, ServerConfig
from fhirpub.http.head import MAX_FIELDS
from fhirpub.web.error_mapping import HEAD_BYTES
from tests.docs.project_files import ROOT

PACKAGE = ROOT / "fhirpub" / "http"
TEXT = (PACKAGE / "README.md").read_text(encoding="utf-8")
PATH = re.compile(r"`((?:app|http|web|tests)/[\w./-]+)`")


def limits() -> dict[str, str]:
    """Return the value of each row of the table of limits by the place where it is set."""
    section = TEXT.partition("\n## Limits\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| ([^|]+) \| [^|]+ \|$", section, re.MULTILINE)
    return {re.split("[,(]", place)[0].strip(): value for value, place in rows}


def test_it_names_every_module() -> None:
    named = re.findall(r"^\| `(\w+\.py)` \| \S", TEXT, re.MULTILINE)

    assert sorted(named) == sorted(path.name for path in PACKAGE.glob("*.py"))


def test_every_path_that_it_names_exists() -> None:
    named = set(PATH.findall(TEXT))
    roots = (ROOT, ROOT / "fhirpub")

    assert named
    assert not [path for path in named if not any((root / path).exists() for root in roots)]


def test_its_limits_are_those_of_the_code_and_the_settings() -> None:
    described, by_default = limits(), LimitsConfig()

    assert described["`HEAD_BYTES` in `web/error_mapping.py`"] == f"{HEAD_BYTES:,} bytes"
    assert described["`[limits] drain_bytes`"] == f"{by_default.drain_bytes:,} bytes"
    assert described["`[limits] request_bytes`"] == f"{by_default.request_bytes:,} bytes"
    assert described["`[limits] idle_seconds`"] == f"{by_default.idle_seconds:g} s"
    assert described["`[limits] head_seconds`"] == f"{by_default.head_seconds:g} s"
    assert described["`[limits] connections`"] == f"{by_default.connections:,}"
    assert described["`[limits] connections_per_address`"] == str(
        by_default.connections_per_address
    )
    assert described["`MAX_FIELDS` in `http/head.py`"] == str(MAX_FIELDS)
    assert described["`[limits] body_seconds`"] == f"{by_default.body_seconds:g} s"
    assert described["`[server] drain_seconds`"] == f"{ServerConfig().drain_seconds:g} s"
