"""One running service for the tests over HTTP; each test makes tenants of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fhirpub.logs import configure
from fhirpub.testing.service import Integrator, RunningService


@pytest.fixture(autouse=True, scope="session")
def quiet() -> Iterator[None]:
    """Keep log lines out of the output, whatever thread they come from."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        configure(level="debug", form="json", stream=nowhere)
        yield
        configure(level="error", form="json")


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """The service with its default configuration."""
    with RunningService(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    """Somebody of a tenant with nothing in it."""
    return service.integrator()
