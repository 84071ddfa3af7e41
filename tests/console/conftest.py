"""A service with a console, and those who visit it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from fhirpub.testing.service import Integrator, RunningService
from tests.console.tabs import SETTINGS, Tab, open_operator, open_tab


@pytest.fixture(scope="module")
def console(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service that serves the console, with an administrative key."""
    folder, config = tmp_path_factory.mktemp("console"), SETTINGS
    if url := store_url("console"):  # a file of keys is made beside a file of SQLite alone
        keys = folder / "keys"
        keys.write_text("A" * 43 + "=\n")
        config = replace(config, storage=replace(config.storage, keys_file=str(keys)))
    with RunningService(folder, config=config, store_url=url) as running:
        yield running


@pytest.fixture
def lab(console: RunningService) -> Integrator:
    """A client of a new tenant."""
    return console.integrator()


@pytest.fixture
def tab(lab: Integrator) -> Tab:
    """A tab in which a person of that client is signed in."""
    return open_tab(lab)


@pytest.fixture
def operator(console: RunningService) -> Tab:
    """A tab in which an operator is signed in."""
    return open_operator(console)
