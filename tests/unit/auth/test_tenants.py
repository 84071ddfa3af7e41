from __future__ import annotations

import pytest

from fhirpub.auth.tenants import add_tenant, change_tenant
from fhirpub.errors import NoSuchRecord
from tests.unit.auth.conftest import HandClock, MemoryAccess


async def test_an_added_tenant_is_kept_with_its_salt() -> None:
    access = MemoryAccess()

    tenant = await add_tenant(access, "Lab Uno", clock=HandClock(now=5))

    assert await access.tenant(tenant.id) == tenant
    assert (tenant.name, tenant.created, len(tenant.salt)) == ("Lab Uno", 5, 32)


async def test_a_disabled_tenant_keeps_everything_else() -> None:
    access = MemoryAccess()
    tenant = await add_tenant(access, "Lab Uno", clock=HandClock())

    disabled = await change_tenant(access, tenant.id, disabled=True)

    assert disabled.disabled
    assert disabled.salt == tenant.salt
    assert await access.tenant(tenant.id) == disabled


async def test_an_unknown_tenant_cannot_be_disabled() -> None:
    with pytest.raises(NoSuchRecord):
        await change_tenant(MemoryAccess(), "nobody", disabled=True)
