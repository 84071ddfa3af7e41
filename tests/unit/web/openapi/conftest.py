"""The document of a service with the usual settings."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.testing.service import RunningService
from fhirpub.web.openapi.document import document as made


@pytest.fixture
def document(service: RunningService) -> Any:
    """The OpenAPI document."""
    return made(service.services)
