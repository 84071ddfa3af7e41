"""A function that installs a plugin."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin_examples import write_metadata
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
        write_metadata(home, distribution, {name: module}, version="1.2", group=group)
        (home / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(home)
        modules.append(module)
        return module

    yield installed
    for module in modules:
        sys.modules.pop(module, None)
