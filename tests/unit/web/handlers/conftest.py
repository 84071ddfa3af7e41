"""Services with limits, and identifiers."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.settings import AuthConfig, Config, LimitsConfig
from fhirpub.testing.service import Integrator, RunningService
from tests.unit.web.handlers.asking import MOST


@pytest.fixture(scope="module")
def strict_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service in which the scopes of a token count."""
    config = Config(auth=AuthConfig(enforce_scopes=True))
    with RunningService(tmp_path_factory.mktemp("strict"), config=config) as running:
        yield running


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that takes small bodies only."""
    config = Config(limits=LimitsConfig(request_bytes=MOST))
    with RunningService(tmp_path_factory.mktemp("small"), config=config) as running:
        yield running


@pytest.fixture
def few(small: RunningService) -> Integrator:
    """A client of a service that takes small bodies only."""
    return small.integrator()


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose clients may send a thousand bytes a day."""
    config = Config(quotas=QuotasConfig(client_bytes_per_day=1_000))
    with RunningService(tmp_path_factory.mktemp("counted"), config=config) as running:
        yield running


@pytest.fixture
def value() -> str:
    """The identifier of a report that is not registered."""
    return uuid4().hex
