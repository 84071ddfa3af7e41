"""The document of a service with the usual settings."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.testing.service import RunningService
from fhirpub.web.openapi.document import document as made


@pytest.fixture(scope="session")
def document(service: RunningService) -> Any:
    """The OpenAPI document, which no test changes."""
    return made(service.services)
