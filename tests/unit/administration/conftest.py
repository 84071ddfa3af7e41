from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.administration import endpoints, tenants
from tests.unit.administration.office import URL, Office, opened


@pytest.fixture
async def office(tmp_path: Path) -> AsyncGenerator[Office]:
    async with opened(tmp_path) as office:
        yield office


@pytest.fixture
async def lab(office: Office) -> str:
    """The id of a tenant."""
    return str((await office.run(tenants.ADD, name="Lab"))["id"])


@pytest.fixture
async def other(office: Office) -> str:
    """The id of another tenant."""
    return str((await office.run(tenants.ADD, name="Other"))["id"])


@pytest.fixture
async def lis(office: Office, lab: str) -> str:
    """The id of an endpoint of the tenant."""
    added = await office.run(endpoints.ADD, tenant=lab, url=URL, description="lis")
    return str(added["id"])
