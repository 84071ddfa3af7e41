"""Programs that check the files in deploy/, from the PATH or from scripts/deploy-tools."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.mongod.executable import cache_folder


def tool(name: str) -> Path:
    """Return a program; without it the test is skipped."""
    found = shutil.which(name) or shutil.which(name, path=str(cache_folder() / "deploy-tools"))
    if found is None:
        pytest.skip(f"no {name}: scripts/deploy-tools installs it")
    return Path(found)
