"""A report that is revised."""

from __future__ import annotations

import pytest

from fhirpub.storage.contract import Version
from tests.unit.interactions.patients.people import Ward
from tests.unit.interactions.revision.revising import numbered, registered


@pytest.fixture
async def report(ward: Ward) -> Version:
    """A preliminary report with two results."""
    return await registered(ward, numbered(1), numbered(2))
