"""Programs that check the files in deploy/, from the PATH or from scripts/deploy-tools."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cache import cache_folder


def tool(name: str) -> Path:
    """Return a program; without it the test is skipped."""
    found = shutil.which(name) or shutil.which(name, path=str(cache_folder() / "deploy-tools"))
    if found is None:
        pytest.skip(f"no {name}: scripts/deploy-tools installs it")
    return Path(found)


def run(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program; return its status and what it wrote. Without it the test is skipped."""
    command: list[str | Path] = [tool(name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
