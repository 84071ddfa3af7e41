"""One running service for the tests over HTTP; each test makes tenants of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fhirpub.logs import configure
from fhirpub.testing.service import Integrator, RunningService


@pytest.fixture(autouse=True, scope="session")
def quiet() -> None:
    """Keep refusals out of the output."""
    configure(level="error", form="text")


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """The service with its default configuration."""
    with RunningService(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    """Somebody of a tenant with nothing in it."""
    return service.integrator()
