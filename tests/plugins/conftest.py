"""One service with every type of the included plugins, for all tests of plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.testing.service import RunningService

SHELF = (
    "diagnosticreport encounter medicationrequest servicerequest devicerequest observation".split()
    + "specimen imagingstudy documentreference vaccination".split()
)


@pytest.fixture(scope="session")
def service(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """The service with all types of the shelf."""
    config = Config(plugins=PluginsConfig(enabled=SHELF))
    folder = tmp_path_factory.mktemp("shelf")
    with RunningService(folder, config=config, store_url=store_url("shelf")) as running:
        yield running
