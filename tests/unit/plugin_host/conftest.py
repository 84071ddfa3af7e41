"""A function that installs a plugin."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.plugin_host.installing import Install


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that installs a distribution with one plugin."""
    modules: list[str] = []

    def installed(
        name: str, source: str, *, distribution: str = "", group: str = "fhirpub.plugins"
    ) -> str:
        distribution = distribution or f"dist-{name}"
        module = f"trial_{distribution.replace('-', '_')}"
        home = tmp_path / distribution
        metadata = home / f"{module}-1.2.dist-info"
        metadata.mkdir(parents=True)
        (home / f"{module}.py").write_text(source)
        (metadata / "METADATA").write_text(f"Name: {distribution}\nVersion: 1.2\n")
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")
        monkeypatch.syspath_prepend(home)
        modules.append(module)
        return module

    yield installed
    for module in modules:
        sys.modules.pop(module, None)
