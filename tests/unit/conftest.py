"""An embedded store, for what works on one, and plugins that are installed for a test."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from tests.plugin_examples import write_metadata


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An empty store in a file."""
    store = SqliteStore(tmp_path / "fhirpub.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
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
