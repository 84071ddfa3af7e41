"""A report that is revised, and a ward for what reads no store."""

from __future__ import annotations

import pytest

from fhirpub.storage.contract import Version
from tests.unit.interactions.patients.people import Ward
from tests.unit.interactions.revision.revising import numbered, registered, storeless


@pytest.fixture
async def report(ward: Ward) -> Version:
    """A preliminary report with two results."""
    return await registered(ward, numbered(1), numbered(2))


@pytest.fixture(scope="module")
def storeless_ward() -> Ward:
    """A ward of which nothing is read: what is compared is given."""
    return storeless()
