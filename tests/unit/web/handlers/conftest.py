"""A service that demands scopes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fhirpub.config.settings import AuthConfig, Config
from fhirpub.testing.service import RunningService


@pytest.fixture(scope="module")
def strict_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service in which the scopes of a token count."""
    config = Config(auth=AuthConfig(enforce_scopes=True))
    with RunningService(tmp_path_factory.mktemp("strict"), config=config) as running:
        yield running
