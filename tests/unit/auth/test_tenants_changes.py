"""Tenants with a given id, and what a change leaves as it was."""

from __future__ import annotations

import pytest

from fhirpub.auth.tenants import (
    add_tenant,
    change_tenant,
    require_enabled_tenant,
    require_tenant,
)
from fhirpub.errors import ConfigurationError, NoSuchRecord
from tests.unit.auth.conftest import HandClock, MemoryAccess


async def test_a_tenant_has_the_id_that_is_given() -> None:
    access = MemoryAccess()

    tenant = await add_tenant(access, "Lab", clock=HandClock(), tenant_id="t-1")

    assert tenant.id == "t-1"
    assert await access.tenant("t-1") == tenant


async def test_without_an_id_each_tenant_is_another() -> None:
    access = MemoryAccess()

    first, second = [await add_tenant(access, "Lab", clock=HandClock()) for _ in range(2)]

    assert first.id != second.id
    assert first.salt != second.salt
    assert len(await access.tenants()) == 2


async def test_an_id_that_is_taken_returns_the_tenant_that_has_it() -> None:
    access = MemoryAccess()
    first = await add_tenant(access, "Lab", clock=HandClock(now=1), tenant_id="t-1")

    again = await add_tenant(access, "Other", clock=HandClock(now=2), tenant_id="t-1")

    assert again == first
    assert await access.tenants() == [first]


async def test_a_renamed_tenant_stays_disabled() -> None:
    access = MemoryAccess()
    tenant = await add_tenant(access, "Lab", clock=HandClock())
    await change_tenant(access, tenant.id, disabled=True)

    renamed = await change_tenant(access, tenant.id, name="Ward")

    assert (renamed.name, renamed.disabled) == ("Ward", True)
    assert await access.tenant(tenant.id) == renamed


async def test_a_tenant_is_enabled_again() -> None:
    access = MemoryAccess()
    tenant = await add_tenant(access, "Lab", clock=HandClock())
    await change_tenant(access, tenant.id, disabled=True)

    assert await change_tenant(access, tenant.id, disabled=False) == tenant


async def test_a_disabled_tenant_is_given_nothing_but_is_there() -> None:
    access = MemoryAccess()
    tenant = await add_tenant(access, "Lab", clock=HandClock(), tenant_id="t-1")
    assert await require_enabled_tenant(access, "t-1") == tenant

    disabled = await change_tenant(access, "t-1", disabled=True)

    assert await require_tenant(access, "t-1") == disabled
    with pytest.raises(ConfigurationError, match=r"^the tenant t-1 is disabled$"):
        await require_enabled_tenant(access, "t-1")


async def test_an_unknown_tenant_is_named() -> None:
    with pytest.raises(NoSuchRecord, match="there is no tenant t-9"):
        await require_tenant(MemoryAccess(), "t-9")
    with pytest.raises(NoSuchRecord):
        await require_enabled_tenant(MemoryAccess(), "t-9")
