"""A service with a console, and those who visit it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from fhirpub.config.administration import AdminConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.testing.service import Integrator, RunningService
from tests.console.tabs import Tab, open_operator, open_tab

KEY = "fhirpub_admin_of_tests"


@pytest.fixture(scope="module")
def console(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service that serves the console, with an administrative key."""
    config = Config(
        console=ConsoleConfig(enabled=True),
        admin=AdminConfig(bootstrap_key_hash=hashlib.sha256(KEY.encode()).hexdigest()),
        plugins=PluginsConfig(enabled=["diagnosticreport", "observation"]),
        webhooks=WebhooksConfig(allow_networks=["127.0.0.0/8"]),
    )
    folder = tmp_path_factory.mktemp("console")
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
